//! A long `Retry-After` is known at once, holds back only the model that sent it, and can be ended.
// SPEC B10, D6.

use std::sync::Arc;
use std::time::Duration;

use ichido::worker::Paces;
use ichido_core::retry::{Retry, Schedule};
use ichido_llm::judge::{FallbackReason, Judge, JudgeEnd, JudgePause, Outcome, Settings, Stop};
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
    // The next run knows it before it asks, and how slow the pace is.
    let next = on(&store, model());
    next.known(&numbered(6)).await.unwrap();
    assert!(is_an_hour(next.paused()), "{:?}", next.paused());
    assert!(next.learned_spacing().is_some());
    // A person ends it.
    Paces::new(store.clone()).forget("model scripted-1 at here").await.unwrap();
    next.known(&numbered(6)).await.unwrap();
    assert_eq!((next.paused(), next.learned_spacing()), (None, None));
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
    assert!(report.outcomes.iter().all(|outcome| *outcome == Outcome::Fallback(FallbackReason::Paused)));
    let counts = report.counts;
    assert!(counts.calls <= 2 && counts.lost == 0, "no more than were in flight: {counts:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// The provider accepts nothing for two hours, whatever it accepted before.
#[tokio::test(start_paused = true)]
async fn one_long_retry_after_pauses_the_run_at_once() {
    let model = Scripted::after(Duration::from_millis(10)).first("item 50", &[ScriptedCall::Wait("7200")]);
    let model = Arc::new(model.otherwise(|_| ScriptedCall::Says(YES)));
    let judge = judge(&model, at_once(4));
    let look = async {
        tokio::time::sleep(MINUTE).await;
        (judge.paused(), judge.counts().calls, judge.endpoints()[0].pause)
    };
    let stop = Stop::new();
    let (report, (paused, calls, of_endpoint)) = tokio::join!(judge.run(numbered(200), &stop), look);
    assert!(is_an_hour(paused), "{paused:?}");
    assert_eq!((paused.unwrap().requested, of_endpoint.is_some()), (Some(2 * HOUR), true));
    assert!((51..=55).contains(&calls), "no more than were in flight: {calls}");
    assert_eq!(words(&report.unwrap()), ["judged"; 200]);
    let moments = model.moments("item 50");
    assert!(HOUR <= moments[1].saturating_sub(moments[0]), "{moments:?}");
    let late = model.seen().iter().filter(|seen| HOUR <= seen.at).count();
    assert!(140 <= late, "the others waited as well: {late}");
    assert_eq!(judge.paused(), None);
}

/// A person ends the pause in another terminal, and the article that was refused is asked as well.
#[tokio::test]
async fn run_that_waits_goes_on_when_a_person_ends_the_pause() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 4).await.unwrap();
    let model = Arc::new(model().first("item 0", &[ScriptedCall::Wait("7200")]));
    let schedule =
        Schedule::Exponential { base: Duration::from_millis(10), factor: 2, cap: Duration::from_millis(50) };
    let settings = Settings { retry: Retry { schedule, ..Retry::LLM }, ..at_once(1) };
    let judge: Judge<Label> =
        Judge::with_store(Arc::clone(&model) as Arc<dyn Model>, form(), settings, &store, "labels").unwrap();
    let resume = async {
        while judge.paused().is_none() {
            tokio::task::yield_now().await;
        }
        Paces::new(store.clone()).forget("model scripted-1 at here").await.unwrap();
    };
    let stop = Stop::new();
    let (report, ()) = tokio::join!(judge.run(numbered(4), &stop), resume);
    assert_eq!(words(&report.unwrap()), ["judged"; 4]);
    assert_eq!(model.moments("item 0").len(), 2);
}
