//! An answered question is not asked again, and calls that a dead run may have paid for are known.
// SPEC B7, B12.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ichido_llm::judge::{Judge, Outcome, Settings, Stop};
use ichido_llm::models::Model;
use ichido_store::Store;
use ichido_store::testing::{postgres, sqlite};
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::scripted::{Label, Scripted, ScriptedCall, at_once, form, judge, numbered, prompts, words};

#[tokio::test(start_paused = true)]
async fn second_run_asks_only_missing_items_and_fallbacks() {
    let model = Scripted::after(Duration::ZERO).first("b", &[ScriptedCall::Named("ValidationException")]);
    let model = Arc::new(model);
    let judge = judge(&model, at_once(1));
    let batch = || prompts(["a", "b", "c", "a"]);
    let known = judge.known(&batch()).await.unwrap();
    assert_eq!((known.answered, known.missing), (0, 3), "the same question is one");
    let report = judge.run(batch(), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["judged", "refused", "judged", "judged"]);
    assert_eq!(model.seen().len(), 3);
    let known = judge.known(&batch()).await.unwrap();
    assert_eq!((known.answered, known.missing), (2, 1));
    let report = judge.run(batch(), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["judged"; 4]);
    assert_eq!(model.moments("a").len(), 1);
    assert_eq!(model.moments("b").len(), 2);
    let was_known = |outcome: &Outcome<Label>| matches!(outcome, Outcome::Judged(judged) if judged.was_known);
    assert_eq!(report.outcomes.iter().map(was_known).collect::<Vec<_>>(), [true, false, true, true]);
}

fn on(store: &Store, model: &Arc<Scripted>, settings: Settings) -> Judge<Label> {
    Judge::with_store(Arc::clone(model) as Arc<dyn Model>, form(), settings, store, "labels").unwrap()
}

/// Runs on each database, in real time.
async fn on_both<F: Future<Output = ()>>(case: impl Fn(Store) -> F) {
    let file = sqlite::fresh_file();
    case(Store::open(&file.url, 4).await.unwrap()).await;
    let database = postgres::fresh_database().await;
    case(Store::open(&database.url, 4).await.unwrap()).await;
}

#[tokio::test]
async fn answers_are_stored_by_model_prompt_and_form() {
    on_both(|store| async move {
        let model = Arc::new(Scripted::after(Duration::ZERO));
        let report = on(&store, &model, at_once(4)).run(numbered(20), &Stop::new()).await.unwrap();
        assert_eq!(words(&report), ["judged"; 20]);
        let again = on(&store, &model, at_once(4)).run(numbered(20), &Stop::new()).await.unwrap();
        assert_eq!((model.seen().len(), again.counts.known), (20, 20));
        let moments = |outcomes: &[Outcome<Label>]| -> Vec<_> {
            outcomes
                .iter()
                .map(|outcome| match outcome {
                    Outcome::Judged(judged) => judged.at,
                    Outcome::Fallback(why) => panic!("{why}"),
                })
                .collect()
        };
        assert_eq!(moments(&report.outcomes), moments(&again.outcomes), "an answer has one time");
        let mut others = numbered(20);
        for prompt in &mut others {
            prompt.system = Some("Say no or yes.".to_owned());
        }
        let report = on(&store, &model, at_once(4)).run(others, &Stop::new()).await.unwrap();
        assert_eq!(report.counts.known, 0, "another profile is another question");
    })
    .await;
}

#[tokio::test]
async fn two_runs_at_once_ask_each_question_once() {
    on_both(|store| async move {
        let model = Arc::new(Scripted::after(Duration::from_millis(5)));
        let (ann, bob) = (on(&store, &model, at_once(4)), on(&store, &model, at_once(4)));
        let stop = Stop::new();
        let (ann, bob) = tokio::join!(ann.run(numbered(40), &stop), bob.run(numbered(40), &stop));
        for report in [ann.unwrap(), bob.unwrap()] {
            assert_eq!(words(&report), ["judged"; 40]);
            assert_eq!(report.counts.lost, 0);
        }
        assert_eq!(model.seen().len(), 40);
    })
    .await;
}

#[tokio::test]
async fn call_of_dead_run_is_reported_as_possibly_billed() {
    on_both(|store| async move {
        let model = Arc::new(Scripted::after(Duration::from_hours(1)));
        let dying = tokio::spawn({
            let judge = on(&store, &model, at_once(2));
            async move { judge.run(numbered(3), &Stop::new()).await }
        });
        while model.seen().len() < 2 {
            tokio::task::yield_now().await;
        }
        dying.abort();
        assert!(dying.await.is_err(), "it was aborted and reported nothing");
        store.advance_clock(Duration::from_secs(11));
        let model = Arc::new(Scripted::after(Duration::ZERO));
        let judge = on(&store, &model, at_once(2));
        let report = judge.run(numbered(3), &Stop::new()).await.unwrap();
        assert_eq!(words(&report), ["judged"; 3]);
        assert_eq!(report.counts.lost, 2);
        let lost: Vec<u32> = report
            .outcomes
            .iter()
            .map(|outcome| match outcome {
                Outcome::Judged(judged) => judged.lost,
                Outcome::Fallback(why) => panic!("{why}"),
            })
            .collect();
        assert_eq!(lost, [1, 1, 0]);
    })
    .await;
}

#[tokio::test]
async fn silent_store_does_not_delay_the_deadline() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 4).await.unwrap();
    let model = Arc::new(Scripted::after(Duration::ZERO));
    let mut other = SqliteConnection::connect(&file.url).await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let settings = Settings { deadline: Some(Duration::from_millis(200)), ..at_once(2) };
    let report = on(&store, &model, settings).run(numbered(5), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["deadline"; 5], "no error, and one outcome for each");
    assert_eq!(model.seen().len(), 0, "an unmarked call is not made");
    other.execute("ROLLBACK").await.unwrap();
    let report = on(&store, &model, at_once(2)).run(numbered(5), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["judged"; 5]);
}

/// Records whether the judge had to retry.
struct Warned(Arc<AtomicBool>);

impl Subscriber for Warned {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target() == "ichido_llm::judge::attempt"
    }

    fn event(&self, _: &Event<'_>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn answer_is_stored_after_store_outage() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 4).await.unwrap();
    let model = Arc::new(Scripted::after(Duration::from_millis(300)));
    let warned = Arc::new(AtomicBool::new(false));
    let _listening = tracing::subscriber::set_default(Warned(Arc::clone(&warned)));
    let judge = on(&store, &model, at_once(1));
    let running = tokio::spawn(async move { judge.run(numbered(1), &Stop::new()).await });
    while model.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    // The call is in flight, and its mark is written: nothing can be stored until this ends.
    let mut other = SqliteConnection::connect(&file.url).await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    while !warned.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    other.execute("ROLLBACK").await.unwrap();
    let report = running.await.unwrap().unwrap();
    assert_eq!(words(&report), ["judged"]);
    assert_eq!(model.seen().len(), 1, "it is not paid for twice");
}
