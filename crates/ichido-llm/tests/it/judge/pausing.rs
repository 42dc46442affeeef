//! A long `Retry-After` is known at once, holds back only the model that sent it, and can be ended.
// SPEC B10, D6.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ichido::worker::Paces;
use ichido_core::retry::{Retry, Schedule};
use ichido_llm::articles::plan::{Plan, PlanInputs};
use ichido_llm::articles::progress::Progress;
use ichido_llm::judge::{
    FallbackReason, Judge, JudgeEnd, JudgePause, KnownJudgements, Outcome, Settings, Stop,
};
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

/// The provider accepts nothing for so long, whatever it accepted before.
#[tokio::test(start_paused = true)]
async fn one_long_retry_after_pauses_the_run_at_once() {
    let calls = [
        (ScriptedCall::Wait("30"), MINUTE / 2),
        (ScriptedCall::Wait("1800"), HOUR / 2),
        (ScriptedCall::Unavailable("1800"), HOUR / 2),
        (ScriptedCall::Wait("3600"), HOUR),
        (ScriptedCall::Wait("7200"), HOUR),
    ];
    for (call, expected) in calls {
        let model = Scripted::after(Duration::from_millis(10)).first("item 50", &[call]);
        let model = Arc::new(model.otherwise(|_| ScriptedCall::Says(YES)));
        let judge = judge(&model, at_once(4));
        let look = async {
            until(|| judge.paused().is_some()).await;
            tokio::time::sleep(MINUTE / 6).await;
            (judge.paused().unwrap(), judge.counts().calls, judge.endpoints()[0].pause)
        };
        let stop = Stop::new();
        let (report, (paused, calls, of_endpoint)) = tokio::join!(judge.run(numbered(200), &stop), look);
        assert!(is_about(paused.left + MINUTE / 6, expected), "{call:?}: {paused:?}");
        let longer = matches!(call, ScriptedCall::Wait("7200")).then_some(2 * HOUR);
        assert_eq!((paused.requested, of_endpoint.is_some()), (longer, true), "{call:?}");
        assert!((51..=55).contains(&calls), "{call:?}: no more than were in flight: {calls}");
        assert_eq!(words(&report.unwrap()), ["judged"; 200]);
        let moments = model.moments("item 50");
        assert!(expected <= moments[1].saturating_sub(moments[0]), "{call:?}: {moments:?}");
        let late = model.seen().iter().filter(|seen| expected <= seen.at).count();
        assert!(140 <= late, "{call:?}: the others waited as well: {late}");
        assert_eq!(judge.paused(), None);
    }
}

/// Waits until something holds, on the paused clock.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Returns whether a time is this long, or a moment shorter.
fn is_about(time: Duration, expected: Duration) -> bool {
    expected < time + Duration::from_secs(1) && time <= expected
}

/// The plan of a batch.
fn plan(count: usize) -> Plan {
    let known = KnownJudgements { answered: 0, missing: count, tokens: 0, lost: 0 };
    let inputs = PlanInputs {
        deadline: None,
        latency: Duration::from_secs(1),
        max_output_tokens: 200,
        pause: None,
        learned_spacing: None,
        price: None,
    };
    Plan::new(count, known, &at_once(4), &inputs)
}

/// The run goes on at the other endpoint, and a person learns of the pause at once.
// SPEC B10, D6.
#[tokio::test(start_paused = true)]
async fn requested_pause_holds_back_its_endpoint_alone() {
    for (hint, asked) in [("45", 3 * MINUTE / 4), ("1800", HOUR / 2), ("3600", HOUR)] {
        let (calls, latency) = (AtomicUsize::new(0), Duration::from_millis(10));
        let model = Scripted::after(latency).at(&["here", "there"]).otherwise(move |seen| {
            let is_tenth = seen.endpoint == 0 && calls.fetch_add(1, Ordering::Relaxed) == 10;
            if is_tenth { ScriptedCall::Wait(hint) } else { ScriptedCall::Says(YES) }
        });
        let model = Arc::new(model);
        let judge = judge(&model, at_once(4));
        let look = async {
            until(|| judge.endpoints()[0].pause.is_some()).await;
            let (mut progress, counts) = (Progress::default(), judge.counts());
            let news = progress.news(&[], &[], &judge.endpoints(), &counts, &plan(200));
            (judge.endpoints()[0].pause.unwrap().left, judge.paused(), news, model.began().elapsed())
        };
        let stop = Stop::new();
        let (report, (left, paused, news, seen_at)) = tokio::join!(judge.run(numbered(200), &stop), look);
        assert_eq!(words(&report.unwrap()), ["judged"; 200], "{hint} s");
        assert!(model.began().elapsed() < MINUTE / 2, "{hint} s: the other endpoint takes all");
        assert!(is_about(left, asked) && paused.is_none(), "{hint} s: {left:?}, {paused:?}");
        assert!(news.starts_with("here: paused until ") && news.contains("; Ctrl-C to stop\n"), "{news}");
        assert!(news.contains(" articles left: "), "{news}");
        let late = model.seen().iter().filter(|seen| seen.endpoint == 0 && seen_at < seen.at).count();
        assert_eq!(late, 0, "{hint} s: it is left alone");
    }
}

/// Each endpoint is left alone for as long as it asked, and the run waits for the first of them.
// SPEC D6.
#[tokio::test(start_paused = true)]
async fn run_waits_for_the_first_of_its_endpoints() {
    let first = [AtomicBool::new(true), AtomicBool::new(true)];
    let model =
        Scripted::after(Duration::from_millis(10)).at(&["here", "there"]).otherwise(move |seen| {
            match (seen.endpoint, first[seen.endpoint].swap(false, Ordering::Relaxed)) {
                (0, true) => ScriptedCall::Wait("3600"),
                (_, true) => ScriptedCall::Wait("45"),
                (_, false) => ScriptedCall::Says(YES),
            }
        });
    let model = Arc::new(model);
    let judge = judge(&model, at_once(1));
    let look = async {
        until(|| judge.paused().is_some()).await;
        let (pause, counts) = (judge.paused(), judge.counts());
        let (_, news) = Progress::default().look(&counts, pause, Duration::ZERO, &plan(6));
        (pause.unwrap().left, news.unwrap())
    };
    let stop = Stop::new();
    let (report, (left, news)) = tokio::join!(judge.run(numbered(6), &stop), look);
    assert_eq!(words(&report.unwrap()), ["judged"; 6]);
    assert!(is_about(left, 3 * MINUTE / 4), "{left:?}");
    assert!(
        news.contains(" by the provider; Ctrl-C to stop") && news.contains("6 articles left: "),
        "{news}"
    );
    let moments = |endpoint| {
        let seen = model.seen().into_iter().filter(move |seen| seen.endpoint == endpoint);
        seen.map(|seen| seen.at).collect::<Vec<_>>()
    };
    let (here, there) = (moments(0), moments(1));
    assert_eq!(here.len(), 1, "its hour has not passed: {here:?}");
    assert!(3 * MINUTE / 4 <= there[1].saturating_sub(there[0]), "{there:?}");
}

/// A short wait is that of the refused article at this endpoint; another one may take it sooner.
// SPEC D6.
#[tokio::test(start_paused = true)]
async fn article_is_not_asked_again_before_its_endpoints_allow() {
    let steps = [ScriptedCall::Wait("20"), ScriptedCall::Wait("10")];
    let model = Scripted::after(Duration::ZERO).at(&["here", "there"]).first("item 0", &steps);
    let model = Arc::new(model);
    let report = judge(&model, at_once(1)).run(numbered(1), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["judged"]);
    let seen = model.seen();
    let [first, second, third] = &seen[..] else { unreachable!("{seen:?}") };
    assert!(first.endpoint != second.endpoint && second.at < Duration::from_secs(10), "{seen:?}");
    assert!(Duration::from_secs(20) <= third.at.saturating_sub(first.at), "{seen:?}");
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
