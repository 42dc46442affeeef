//! A long `Retry-After` is known at once, holds back only the model that sent it, and can be ended.
// SPEC B10, D6.

use std::sync::Arc;
use std::time::Duration;

use ichido::worker::Paces;
use ichido_llm::judge::{Judge, JudgeEnd, JudgePause, Settings, Stop};
use ichido_llm::models::Model;
use ichido_store::Store;
use ichido_store::testing::{postgres, sqlite};
use tokio::time::Instant;

use super::scripted::{Label, Scripted, ScriptedCall, YES, at_once, form, judge, numbered, words};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

fn on(store: &Store, model: Scripted) -> Judge<Label> {
    let settings = Settings { deadline: Some(Duration::from_secs(1)), ..at_once(2) };
    Judge::with_store(Arc::new(model) as Arc<dyn Model>, form(), settings, store, "labels").unwrap()
}

fn model() -> Scripted {
    Scripted::after(Duration::ZERO)
}

/// Returns whether a pause is about an hour long.
fn is_an_hour(pause: Option<JudgePause>) -> bool {
    pause.is_some_and(|pause| HOUR < pause.left + MINUTE && pause.left <= HOUR)
}

async fn pause_holds_back_one_model_at_one_endpoint(store: Store) {
    let throttled = on(&store, model().otherwise(|_| ScriptedCall::Wait("7200")));
    assert_eq!(throttled.paused(), None);
    let report = throttled.run(numbered(4), &Stop::new()).await.unwrap();
    assert_eq!(report.ended, JudgeEnd::Deadline);
    assert!(report.counts.calls <= 2, "no more than were in flight: {:?}", report.counts);
    assert!(is_an_hour(throttled.paused()), "{:?}", throttled.paused());
    // Neither another model nor another endpoint is held back.
    for other in [model().named("scripted-2"), model().at(&["elsewhere"])] {
        let other = on(&store, other);
        let report = other.run(numbered(4), &Stop::new()).await.unwrap();
        assert_eq!((words(&report), other.paused()), (vec!["judged"; 4], None));
    }
    // With a free endpoint besides, the model is not paused.
    let both = on(&store, model().at(&["here", "there"]));
    both.known(&numbered(6)).await.unwrap();
    assert_eq!(both.paused(), None);
    // The next run knows it before it asks.
    let next = on(&store, model());
    next.known(&numbered(6)).await.unwrap();
    assert!(is_an_hour(next.paused()), "{:?}", next.paused());
    // A person ends it.
    Paces::new(store.clone()).resume("model scripted-1 at here").await.unwrap();
    next.known(&numbered(6)).await.unwrap();
    assert_eq!(next.paused(), None);
    let report = next.run(numbered(6), &Stop::new()).await.unwrap();
    assert!(words(&report)[..5].iter().all(|word| *word == "judged"), "{:?}", words(&report));
}

#[tokio::test]
async fn pause_holds_back_one_model_at_one_endpoint_only() {
    let file = sqlite::fresh_file();
    pause_holds_back_one_model_at_one_endpoint(Store::open(&file.url, 4).await.unwrap()).await;
    let database = postgres::fresh_database().await;
    pause_holds_back_one_model_at_one_endpoint(Store::open(&database.url, 4).await.unwrap()).await;
}

/// A Lambda function that waits is paid for.
// SPEC B9.
#[tokio::test(start_paused = true)]
async fn run_ends_at_once_if_the_pause_outlasts_its_deadline() {
    let model = Arc::new(model().otherwise(|_| ScriptedCall::Wait("3600")));
    let settings = Settings { deadline: Some(15 * MINUTE), ..at_once(2) };
    let began = Instant::now();
    let report = judge(&model, settings).run(numbered(10), &Stop::new()).await.unwrap();
    assert_eq!((report.ended, report.outcomes.len()), (JudgeEnd::Deadline, 10));
    let counts = report.counts;
    assert!(counts.calls <= 2 && counts.lost == 0, "no more than were in flight: {counts:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// One refusal after many answers holds back only its own item. When nothing else is left, the run is paused.
#[tokio::test(start_paused = true)]
async fn run_that_waits_for_its_last_item_is_paused() {
    let model = Scripted::after(Duration::from_millis(10)).first("item 50", &[ScriptedCall::Wait("3600")]);
    let model = Arc::new(model.otherwise(|_| ScriptedCall::Says(YES)));
    let judge = judge(&model, at_once(1));
    let look = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        let early = judge.paused();
        tokio::time::sleep(MINUTE).await;
        (early, judge.paused(), judge.counts().answered)
    };
    let stop = Stop::new();
    let (report, (early, late, answered)) = tokio::join!(judge.run(numbered(60), &stop), look);
    assert_eq!((early, answered), (None, 59), "the others are not held back");
    assert!(is_an_hour(late), "{late:?}");
    assert_eq!(words(&report.unwrap()), ["judged"; 60]);
    let moments = model.moments("item 50");
    assert!(HOUR <= moments[1].saturating_sub(moments[0]), "{moments:?}");
    assert_eq!(judge.paused(), None);
}
