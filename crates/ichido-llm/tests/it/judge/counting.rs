//! The counts of a batch.
// SPEC B12.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::verdict::NetworkFault;
use ichido_llm::judge::Stop;

use super::scripted::{Scripted, ScriptedCall, at_once, judge, prompts};
use crate::llm::recorder::RecordedCounters;

#[tokio::test(start_paused = true)]
async fn model_calls_are_counted_in_metrics() {
    let model = Scripted::after(Duration::from_millis(10))
        .first(
            "a",
            &[
                ScriptedCall::Status(429),
                ScriptedCall::Says("prose"),
                ScriptedCall::Breaks(NetworkFault::Timeout),
            ],
        )
        .first("b", &[ScriptedCall::Named("ValidationException")]);
    let (model, counts) = (Arc::new(model), RecordedCounters::default());
    let judge = metrics::with_local_recorder(&counts, || judge(&model, at_once(1)));
    judge.run(prompts(["a", "b", "c"]), &Stop::new()).await.unwrap();
    let seen = ["calls", "retries", "throttled", "unusable_answers", "fallbacks", "possibly_billed_twice"];
    assert_eq!(seen.map(|name| counts.get(name)), [6, 3, 1, 1, 1, 1]);
}
