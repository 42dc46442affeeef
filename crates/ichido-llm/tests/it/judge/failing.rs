//! What is retried, when, and how often.
// SPEC B1 to B3, B6.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::verdict::{ErrorCode, NetworkFault};
use ichido_llm::judge::{FallbackReason, JudgeEnd, Outcome, Stop};

use tokio::time::Instant;

use super::scripted::{Scripted, ScriptedCall, YES, at_once, judge, numbered, parallel, prompts, words};

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
        (ScriptedCall::Breaks(NetworkFault::ConnectRefused), ErrorCode::ConnectFailed, 7),
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

/// With the default settings, and a waiting person.
// SPEC B6.
#[tokio::test(start_paused = true)]
async fn run_ends_within_seconds_if_nothing_listens_there() {
    let refused = ScriptedCall::Breaks(NetworkFault::ConnectRefused);
    for count in [1, 2, 100] {
        let model = Arc::new(Scripted::after(Duration::from_millis(1)).otherwise(move |_| refused));
        let began = Instant::now();
        let report = judge(&model, parallel(2)).run(numbered(count), &Stop::new()).await.unwrap();
        let expected = JudgeEnd::SetUp { code: ErrorCode::ConnectFailed, why: "as scripted".into() };
        assert_eq!(report.ended, expected);
        assert_eq!(report.outcomes.len(), count);
        let words = words(&report);
        assert_eq!(words[0], "unreached", "it was asked");
        assert!(words.iter().all(|word| ["unreached", "set_up"].contains(word)), "{words:?}");
        assert_eq!(words[count - 1] == "set_up", 2 < count, "the last of many was not: {words:?}");
        // One article alone makes its five calls, with their backoff.
        let most = if count == 1 {
            50
        } else if count == 2 {
            15
        } else {
            9
        };
        assert!(began.elapsed() < Duration::from_secs(most), "{count}: {:?}", began.elapsed());
        assert!((5..=7).contains(&report.counts.calls), "{count}: {:?}", report.counts);
    }
}

/// A server that restarts is not a wrong address, and neither is one of several endpoints that is down.
#[tokio::test(start_paused = true)]
async fn run_goes_on_if_somebody_listened_before_or_elsewhere() {
    let refused = ScriptedCall::Breaks(NetworkFault::ConnectRefused);
    let restarts = Scripted::after(Duration::from_millis(10)).otherwise(move |seen| {
        let is_down = (Duration::from_secs(5)..Duration::from_secs(12)).contains(&seen.at);
        if is_down { refused } else { ScriptedCall::Says(YES) }
    });
    let one_is_down = Scripted::after(Duration::from_millis(10))
        .at(&["east", "west"])
        .otherwise(move |seen| if seen.endpoint == 0 { refused } else { ScriptedCall::Says(YES) });
    for model in [restarts, one_is_down].map(Arc::new) {
        let report = judge(&model, parallel(2)).run(numbered(12), &Stop::new()).await.unwrap();
        assert_eq!(report.ended, JudgeEnd::Whole);
        assert!(words(&report).iter().all(|word| *word == "judged"), "{:?}", words(&report));
    }
}

// SPEC B1.
#[tokio::test(start_paused = true)]
async fn answer_that_is_cut_off_is_asked_once_more_with_twice_the_tokens() {
    let model = Scripted::after(Duration::from_millis(10))
        .first("a", &[ScriptedCall::CutOff("{\"label\":")])
        .first("b", &[ScriptedCall::CutOff(""); 9])
        // Both budgets are separate.
        .first("c", &[ScriptedCall::Says("hm"), ScriptedCall::CutOff(""), ScriptedCall::Says("hm")]);
    let model = Arc::new(model);
    let report = judge(&model, at_once(1)).run(prompts(["a", "b", "c"]), &Stop::new()).await.unwrap();
    assert_eq!(words(&report), ["judged", "cut_off", "judged"]);
    let Outcome::Fallback(why) = &report.outcomes[1] else { panic!("{report:?}") };
    assert_eq!(*why, FallbackReason::CutOff { max_tokens: 100 });
    let allowed = |user: &str| -> Vec<u32> {
        model.seen().iter().filter(|seen| seen.user == user).map(|seen| seen.max_tokens).collect()
    };
    assert_eq!(allowed("a"), [50, 100]);
    assert_eq!(allowed("b"), [50, 100]);
    assert_eq!(allowed("c"), [50, 50, 100, 100]);
    assert_eq!((report.counts.cut_off, report.counts.unusable), (4, 6));
    assert_eq!(report.ended, JudgeEnd::Whole);
}

#[tokio::test(start_paused = true)]
async fn run_ends_early_if_every_answer_is_cut_off() {
    let model = Arc::new(Scripted::after(Duration::from_millis(10)).otherwise(|_| ScriptedCall::CutOff("")));
    for count in [2, 100] {
        let report = judge(&model, at_once(2)).run(numbered(count), &Stop::new()).await.unwrap();
        assert_eq!(report.ended, JudgeEnd::CutOff { max_tokens: 100 });
        assert_eq!(report.outcomes.len(), count);
        assert!(
            report.counts.calls <= 14,
            "five articles, twice, and what was in flight: {:?}",
            report.counts
        );
        assert!(words(&report).iter().all(|word| ["cut_off", "set_up"].contains(word)));
    }
    // One that fits now and then does not make the others fit: ten in a row end it.
    let model = Scripted::after(Duration::from_millis(10)).first("item 3", &[ScriptedCall::Says(YES)]);
    let model = Arc::new(model.otherwise(|_| ScriptedCall::CutOff("")));
    let report = judge(&model, at_once(1)).run(numbered(20), &Stop::new()).await.unwrap();
    assert_eq!((&report.ended, report.counts.calls), (&JudgeEnd::CutOff { max_tokens: 100 }, 27));
    let Outcome::Fallback(why) = &report.outcomes[19] else { panic!("{report:?}") };
    assert!(why.to_string().ends_with("because the answers did not fit into 100 tokens"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn items_start_with_twice_the_tokens_after_five_that_needed_them() {
    let model = Scripted::after(Duration::from_millis(10)).otherwise(|seen| {
        if seen.max_tokens < 100 { ScriptedCall::CutOff("") } else { ScriptedCall::Says(YES) }
    });
    let model = Arc::new(model.first("item 19", &[ScriptedCall::CutOff("")]));
    let report = judge(&model, at_once(1)).run(numbered(20), &Stop::new()).await.unwrap();
    assert_eq!((report.counts.cut_off, report.counts.calls), (6, 25), "five twice, and fifteen once");
    assert_eq!(report.counts.retries, 5);
    let Outcome::Fallback(why) = &report.outcomes[19] else { panic!("{report:?}") };
    assert_eq!(*why, FallbackReason::CutOff { max_tokens: 100 }, "twice is the limit");
    assert_eq!(report.ended, JudgeEnd::Whole);
}

/// A wrong base URL answers HTML, a wrong parameter is refused for every article, a proxy breaks every connection.
// SPEC B6.
#[tokio::test(start_paused = true)]
async fn run_ends_early_if_all_items_fail_for_the_same_reason() {
    for (step, code, max_calls) in [
        (ScriptedCall::Says("<html>"), ErrorCode::AnswerUnusable, 22),
        (ScriptedCall::Status(400), ErrorCode::BadRequest, 7),
        (ScriptedCall::Breaks(NetworkFault::Broken), ErrorCode::NetworkTimeout, 40),
    ] {
        let model = Arc::new(Scripted::after(Duration::from_millis(10)).otherwise(move |_| step));
        let report = judge(&model, at_once(2)).run(numbered(100), &Stop::new()).await.unwrap();
        assert!(
            matches!(&report.ended, JudgeEnd::SetUp { code: found, .. } if *found == code),
            "{step:?}: {:?}",
            report.ended
        );
        assert!(report.counts.calls <= max_calls, "{step:?}: {:?}", report.counts);
        // If one was answered, the others may be at fault.
        let some = Scripted::after(Duration::from_millis(10)).first("item 0", &[ScriptedCall::Says(YES)]);
        let some = Arc::new(some.otherwise(move |_| step));
        let report = judge(&some, at_once(1)).run(numbered(12), &Stop::new()).await.unwrap();
        assert_eq!(report.ended, JudgeEnd::Whole, "{step:?}");
    }
}

/// For those who watch a run.
#[tokio::test(start_paused = true)]
async fn items_that_are_given_up_are_known_during_the_run() {
    let refused = [ScriptedCall::Status(400)];
    let model = Scripted::after(Duration::from_secs(1)).first("b", &refused);
    let judge = judge(&Arc::new(model), at_once(1));
    let stop = Stop::new();
    let look = async {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        (judge.take_given_up(), judge.take_given_up())
    };
    // The first is there twice, and "b" is the third prompt.
    let run = judge.run(prompts(["a", "a", "b", "c", "d"]), &stop);
    let (report, (given_up, again)) = tokio::join!(run, look);
    assert_eq!(
        given_up.iter().map(|(index, why)| (*index, why.as_str())).collect::<Vec<_>>(),
        [(2, "refused")]
    );
    assert_eq!(again, []);
    let endpoint = &report.unwrap().endpoints[0];
    assert_eq!((endpoint.name.as_str(), endpoint.calls, endpoint.failed), ("here", 4, 1));
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
    let hour = Duration::from_hours(1);
    assert!(hour <= wait && wait <= hour + Duration::from_secs(4), "an hour, and our own wait: {wait:?}");
}
