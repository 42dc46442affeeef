//! What is retried, when, and how often.
// SPEC B1 to B3, B6.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::verdict::{ErrorCode, NetworkFault};
use ichido_llm::judge::{FallbackReason, JudgeEnd, Outcome, Stop};

use super::scripted::{Scripted, ScriptedCall, YES, at_once, judge, numbered, prompts, words};

/// Runs an item that fails once like this and is then answered. Returns how often it was asked and its outcome.
async fn once(step: ScriptedCall) -> (usize, &'static str) {
    let model = Arc::new(Scripted::after(Duration::from_millis(10)).first("a", &[step]));
    let report = judge(&model, at_once(1)).run(prompts(["a"]), &Stop::new()).await.unwrap();
    let word = match &report.outcomes[0] {
        Outcome::Judged(_) => "judged",
        Outcome::Fallback(why) => why.as_str(),
    };
    (model.seen().len(), word)
}

#[tokio::test(start_paused = true)]
async fn throttled_and_unreached_are_retried_invalid_and_unknown_are_not() {
    for step in [
        ScriptedCall::Named("ThrottlingException"),
        ScriptedCall::Named("ServiceUnavailableException"),
        ScriptedCall::Named("ModelNotReadyException"),
        ScriptedCall::Named("rate_limit_exceeded"),
        ScriptedCall::Named("overloaded_error"),
        ScriptedCall::Status(429),
        ScriptedCall::Status(503),
        ScriptedCall::Status(529),
        ScriptedCall::Breaks(NetworkFault::ConnectRefused),
        ScriptedCall::Breaks(NetworkFault::Timeout),
        ScriptedCall::Says("I think it is a yes"),
        ScriptedCall::Says(r#"{"label":"PERHAPS"}"#),
        ScriptedCall::CutOff(r#"{"label":"#),
    ] {
        assert_eq!(once(step).await, (2, "judged"), "{step:?}");
    }
    for step in [
        ScriptedCall::Named("ValidationException"),
        ScriptedCall::Named("AccessDeniedException"),
        ScriptedCall::Named("ServiceQuotaExceededException"),
        ScriptedCall::Named("insufficient_quota"),
        ScriptedCall::Named("SomethingNewException"),
        ScriptedCall::Status(400),
        ScriptedCall::Status(401),
        ScriptedCall::Status(403),
        ScriptedCall::Status(402),
        ScriptedCall::Status(418),
        ScriptedCall::Status(599),
    ] {
        assert_eq!(once(step).await, (1, "refused"), "{step:?}");
    }
    assert_eq!(once(ScriptedCall::Declines).await, (1, "unusable_answer"));
}

#[tokio::test(start_paused = true)]
async fn retry_wait_doubles_with_up_to_half_jitter() {
    for _ in 0..50 {
        let throttled = [ScriptedCall::Named("ThrottlingException"); 4];
        let model = Arc::new(Scripted::after(Duration::ZERO).first("a", &throttled));
        let report = judge(&model, at_once(1)).run(prompts(["a"]), &Stop::new()).await.unwrap();
        assert_eq!(words(&report), ["judged"]);
        let moments = model.moments("a");
        let waits: Vec<Duration> = moments.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        for (wait, seconds) in waits.iter().zip([2, 4, 8, 16]) {
            let (least, most) = (Duration::from_secs(seconds), Duration::from_millis(seconds * 1_500 + 5));
            assert!(least <= *wait && *wait <= most, "{waits:?}");
        }
        assert_eq!(waits.len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_waits_as_long_as_server_asks() {
    let model = Arc::new(Scripted::after(Duration::ZERO).first("a", &[ScriptedCall::Wait("30")]));
    judge(&model, at_once(1)).run(prompts(["a"]), &Stop::new()).await.unwrap();
    let moments = model.moments("a");
    assert!(Duration::from_secs(30) <= moments[1].saturating_sub(moments[0]), "{moments:?}");
}

#[tokio::test(start_paused = true)]
async fn exhausted_item_gets_fallback_and_batch_continues() {
    let model = Scripted::after(Duration::from_millis(10))
        .first("b", &[ScriptedCall::Named("ThrottlingException"); 9]);
    let model = Arc::new(model);
    let report = judge(&model, at_once(1)).run(prompts(["a", "b", "c"]), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["judged", "retries_spent", "judged"]);
    assert_eq!(model.moments("b").len(), 5, "four retries after the first attempt");
    let Outcome::Fallback(why) = &report.outcomes[1] else { panic!("{report:?}") };
    assert!(matches!(why, FallbackReason::Spent { code: ErrorCode::RateLimited, .. }), "{why:?}");
    assert_eq!(report.ended, JudgeEnd::Whole);
    let counts = report.counts;
    assert_eq!((counts.calls, counts.retries, counts.throttled, counts.fallbacks), (7, 4, 5, 1));
    // The others did not wait for it.
    assert!(model.moments("c")[0] < model.moments("b")[1]);
}

#[tokio::test(start_paused = true)]
async fn unusable_answers_have_their_own_retry_budget() {
    let model = Scripted::after(Duration::from_millis(10))
        .first("a", &[ScriptedCall::Says("no idea"); 9])
        // Four throttled calls and two bad answers exhaust neither budget.
        .first("b", &[
            ScriptedCall::Says("hm"),
            ScriptedCall::Status(429),
            ScriptedCall::Status(429),
            ScriptedCall::Says("hm"),
            ScriptedCall::Status(429),
            ScriptedCall::Status(429),
            ScriptedCall::Says(YES),
        ]);
    let model = Arc::new(model);
    let report = judge(&model, at_once(2)).run(prompts(["a", "b"]), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["unusable_answer", "judged"]);
    assert_eq!(model.moments("a").len(), 3, "two more after the first");
    assert_eq!(report.counts.unusable, 5);
}

#[tokio::test(start_paused = true)]
async fn call_with_unknown_outcome_counts_as_possibly_billed() {
    let lost = [
        ScriptedCall::Breaks(NetworkFault::Timeout),
        ScriptedCall::Breaks(NetworkFault::ConnectRefused),
        ScriptedCall::Status(500),
    ];
    let model = Arc::new(Scripted::after(Duration::from_millis(10)).first("a", &lost));
    let report = judge(&model, at_once(1)).run(prompts(["a"]), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["judged"]);
    assert_eq!(report.counts.lost, 2, "a connection that was refused carried nothing");
    let Outcome::Judged(judged) = &report.outcomes[0] else { panic!("{report:?}") };
    assert_eq!(judged.lost, 2);
}

#[tokio::test(start_paused = true)]
async fn access_denied_to_all_is_a_setup_error() {
    for (name, code) in
        [("AccessDeniedException", ErrorCode::Unauthorized), ("insufficient_quota", ErrorCode::QuotaSpent)]
    {
        let model = Arc::new(
            Scripted::after(Duration::from_millis(10)).otherwise(move |_| ScriptedCall::Named(name)),
        );
        let report = judge(&model, at_once(2)).run(numbered(100), &Stop::new()).await.unwrap();
        assert!(
            matches!(&report.ended, JudgeEnd::SetUp { code: found, .. } if *found == code),
            "{:?}",
            report.ended
        );
        assert_eq!(report.outcomes.len(), 100, "one result for each");
        assert!(words(&report).iter().all(|word| ["refused", "set_up"].contains(word)));
        assert!(model.seen().len() <= 7, "far fewer than a hundred calls: {}", model.seen().len());
        // Two items that are all of the batch count, too.
        let report = judge(&model, at_once(2)).run(numbered(2), &Stop::new()).await.unwrap();
        assert!(matches!(report.ended, JudgeEnd::SetUp { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn access_denied_to_some_affects_only_them() {
    let model = Scripted::after(Duration::from_millis(10)).otherwise(|seen| match seen.user.as_str() {
        "item 0" => ScriptedCall::Says(YES),
        user if user.ends_with('5') => ScriptedCall::Says(YES),
        _ => ScriptedCall::Named("AccessDeniedException"),
    });
    let model = Arc::new(model);
    let report = judge(&model, at_once(1)).run(numbered(40), &Stop::new()).await.unwrap();
    assert_eq!(report.ended, JudgeEnd::Whole);
    assert_eq!(model.seen().len(), 40);
    assert_eq!(words(&report).iter().filter(|word| **word == "judged").count(), 5);
}

#[tokio::test(start_paused = true)]
async fn missing_address_or_model_is_a_setup_error() {
    for (step, code, max_calls) in [
        (ScriptedCall::Breaks(NetworkFault::ConnectRefused), ErrorCode::ConnectFailed, 100),
        (ScriptedCall::Status(404), ErrorCode::BadRequest, 7),
    ] {
        let model = Arc::new(Scripted::after(Duration::from_millis(10)).otherwise(move |_| step));
        let report = judge(&model, at_once(2)).run(numbered(100), &Stop::new()).await.unwrap();
        assert!(
            matches!(&report.ended, JudgeEnd::SetUp { code: found, .. } if *found == code),
            "{:?}",
            report.ended
        );
        assert_eq!(report.outcomes.len(), 100);
        assert!(model.seen().len() <= max_calls, "{step:?}: {}", model.seen().len());
    }
}

#[tokio::test(start_paused = true)]
async fn recovered_endpoint_is_called_after_longest_wait() {
    let model = Scripted::after(Duration::from_millis(10)).otherwise(|seen| {
        if seen.at < Duration::from_mins(2) { ScriptedCall::Status(503) } else { ScriptedCall::Says(YES) }
    });
    let model = Arc::new(model);
    judge(&model, at_once(2)).run(numbered(40), &Stop::new()).await.unwrap();
    let first_after =
        model.seen().iter().map(|seen| seen.at).find(|at| Duration::from_mins(2) <= *at).unwrap();
    assert!(first_after < Duration::from_secs(145), "{first_after:?}");
}

#[tokio::test(start_paused = true)]
async fn excessive_retry_hint_is_capped() {
    let model = Arc::new(Scripted::after(Duration::ZERO).first("a", &[ScriptedCall::Wait("999999999")]));
    let judge = judge(&model, at_once(1));
    judge.run(prompts(["a"]), &Stop::new()).await.unwrap();
    let moments = model.moments("a");
    let wait = moments[1].saturating_sub(moments[0]);
    assert!(wait <= Duration::from_mins(91), "an hour, and up to half as much again: {wait:?}");
}
