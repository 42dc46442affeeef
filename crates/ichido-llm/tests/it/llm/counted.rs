//! The counts of a destination's calls to a model.
// SPEC B12.

use fake_llm::action::{AnswerShape, ProviderFault, ScriptedAction};
use fake_llm::pace::Latency;
use fake_llm::script::{Script, ScriptRule};
use ichido::destination::DeliveryAttempt;

use super::destination::{ARTICLES, DestinationFixture, article, call};
use super::fixture::Dialect;
use super::recorder::RecordedCounters;

#[tokio::test]
async fn calls_are_counted_by_outcome() {
    let answer = |action| ScriptRule { first: Some(1), ..ScriptRule::new(action) };
    let rules = vec![
        answer(ScriptedAction::DropCompleted),
        answer(ScriptedAction::Fail(ProviderFault::Throttle)),
        answer(ScriptedAction::Answer(AnswerShape::CutOff)),
        answer(ScriptedAction::Fail(ProviderFault::Unavailable)),
    ];
    let fake = fake_llm::start(Script { rules, ..Script::default() });
    let fixture = DestinationFixture::new(Dialect::OpenAi, fake).await;
    let counts = RecordedCounters::default();
    let llm = metrics::with_local_recorder(&counts, || fixture.llm());
    for attempt in 1..=5 {
        llm.call(&DeliveryAttempt { attempt, ..call(ARTICLES, &article()) }).await;
    }
    let seen = ["calls", "retries", "throttled", "unusable_answers", "possibly_billed_twice"];
    assert_eq!(seen.map(|name| counts.get(name)), [5, 4, 1, 1, 2]);
}

#[tokio::test]
async fn abandoned_call_may_be_billed() {
    let slow = Script { latency: Some(Latency::FixedMs(60_000)), ..Script::default() };
    let fixture = DestinationFixture::new(Dialect::Anthropic, fake_llm::start(slow)).await;
    let counts = RecordedCounters::default();
    let llm = metrics::with_local_recorder(&counts, || fixture.llm());
    let asks = call(ARTICLES, &article());
    let outcome = async {
        while fixture.requests() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = llm.call(&asks) => panic!("it takes a minute"),
        () = outcome => (),
    }
    assert_eq!((counts.get("calls"), counts.get("possibly_billed_twice")), (1, 1));
}
