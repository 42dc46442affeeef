//! Every way in which a call can end without an answer, row by row.
// SPEC B1.

use std::time::Duration;

use fake_llm::action::{ProviderFault, ScriptedAction};
use fake_llm::pace::{Latency, Limit, Rate, RetryAfter};
use fake_llm::script::{Script, ScriptRule};
use fake_llm::start;
use ichido_core::verdict::{Advice, Effect, ErrorCode};

use super::fixture::{BOTH, Dialect, KEY, assert_understood, doing, playing, prompt};
use Advice::{GiveUp, Retry};
use Effect::{NotDone, Unknown};
use ErrorCode::{
    BadRequest, Broker5xx, ConnectFailed, NetworkTimeout, QuotaSpent, RateLimited, Unauthorized,
};

/// How long a call waits for an answer that never comes. Connecting has the same timeout, on a slow machine too.
const SHORT: Duration = Duration::from_secs(2);

type Row = (ProviderFault, u16, ErrorCode, Effect, Advice);

async fn assert_rows(dialect: Dialect, rows: &[Row]) {
    for (fault, status, code, effect, advice) in rows {
        let fake = doing(ScriptedAction::Fail(*fault));
        let call_error = dialect.call_error(&fake).await;
        let verdict = call_error.verdict;
        let seen = (call_error.status, verdict.code, verdict.effect, verdict.advice);
        assert_eq!(seen, (Some(*status), Some(*code), *effect, *advice), "{dialect:?} {fault:?}");
        assert_eq!(call_error.may_be_billed(), *effect == Unknown, "{dialect:?} {fault:?}");
        assert_eq!(fake.seen().all.requests, 1, "one request, whatever comes of it: {dialect:?} {fault:?}");
        assert_understood(&fake);
    }
}

#[tokio::test]
async fn openai_errors_are_classified() {
    let rows = [
        (ProviderFault::Throttle, 429, RateLimited, NotDone, Retry),
        (ProviderFault::SpendLimit, 429, QuotaSpent, NotDone, GiveUp),
        (ProviderFault::Overloaded, 503, Broker5xx, Unknown, Retry),
        (ProviderFault::Unavailable, 503, Broker5xx, Unknown, Retry),
        (ProviderFault::NotReady, 503, Broker5xx, Unknown, Retry),
        (ProviderFault::Internal, 500, Broker5xx, Unknown, Retry),
        (ProviderFault::BadGateway, 502, Broker5xx, Unknown, Retry),
        (ProviderFault::TimedOut, 408, NetworkTimeout, Unknown, Retry),
        (ProviderFault::Denied, 403, Unauthorized, NotDone, GiveUp),
        (ProviderFault::Invalid, 400, BadRequest, NotDone, GiveUp),
        (ProviderFault::NotFound, 404, BadRequest, NotDone, GiveUp),
        (ProviderFault::Unknown, 418, BadRequest, NotDone, GiveUp),
    ];
    assert_rows(Dialect::OpenAi, &rows).await;
}

#[tokio::test]
async fn anthropic_errors_are_classified() {
    let rows = [
        (ProviderFault::Throttle, 429, RateLimited, NotDone, Retry),
        (ProviderFault::SpendLimit, 429, QuotaSpent, NotDone, GiveUp),
        (ProviderFault::Overloaded, 529, RateLimited, NotDone, Retry),
        (ProviderFault::Unavailable, 503, Broker5xx, Unknown, Retry),
        (ProviderFault::Internal, 500, Broker5xx, Unknown, Retry),
        (ProviderFault::BadGateway, 502, Broker5xx, Unknown, Retry),
        (ProviderFault::TimedOut, 504, Broker5xx, Unknown, Retry),
        (ProviderFault::Denied, 403, Unauthorized, NotDone, GiveUp),
        (ProviderFault::Invalid, 400, BadRequest, NotDone, GiveUp),
        (ProviderFault::NotFound, 404, BadRequest, NotDone, GiveUp),
        (ProviderFault::Unknown, 418, BadRequest, NotDone, GiveUp),
    ];
    assert_rows(Dialect::Anthropic, &rows).await;
}

#[tokio::test]
async fn call_with_lost_response_may_be_billed() {
    for dialect in BOTH {
        for (action, billed) in [(ScriptedAction::Drop, 0), (ScriptedAction::DropCompleted, 1)] {
            let fake = doing(action);
            let call_error = dialect.call_error(&fake).await;
            let verdict = call_error.verdict;
            assert_eq!((verdict.code, verdict.advice), (Some(NetworkTimeout), Retry), "{dialect:?}");
            assert!(call_error.may_be_billed(), "either is possible: {dialect:?}");
            let seen = fake.seen();
            assert_eq!((seen.all.requests, seen.all.completed), (1, billed), "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn slow_call_is_abandoned_and_may_be_billed() {
    for dialect in BOTH {
        let latency = Some(Latency::FixedMs(60_000));
        let fake = start(Script { latency, ..Script::default() });
        let mut service = dialect.service(&fake, &[""]);
        (service.timeout, service.connect_timeout) = (SHORT, SHORT);
        let call_error =
            dialect.model(service).ask(0, &prompt()).await.outcome.expect_err("no response in time");
        assert!(call_error.may_be_billed(), "{}", call_error.why);
        assert_eq!((call_error.status, call_error.verdict.code), (None, Some(NetworkTimeout)));
    }
}

#[tokio::test]
async fn call_to_unreachable_endpoint_is_not_billed() {
    for dialect in BOTH {
        let service = {
            let fake = start(Script::default());
            dialect.service(&fake, &[""])
        };
        let call_error = dialect.model(service).ask(0, &prompt()).await.outcome.expect_err("nothing listens");
        assert!(!call_error.may_be_billed(), "{}", call_error.why);
        assert_eq!((call_error.verdict.code, call_error.verdict.effect), (Some(ConnectFailed), NotDone));
    }
}

#[tokio::test]
async fn retry_hint_is_read_in_every_format() {
    for dialect in BOTH {
        for (hint, least, most) in [
            (RetryAfter::Seconds(7), 7_000, 7_000),
            (RetryAfter::Ms(250), 250, 250),
            (RetryAfter::DateInSeconds(90), 1_000, 90_000),
        ] {
            let throttle = ScriptRule {
                retry_after: Some(hint.clone()),
                ..ScriptRule::new(ScriptedAction::Fail(ProviderFault::Throttle))
            };
            let fake = playing(throttle);
            let hint_ms = dialect.call_error(&fake).await.verdict.hint.expect("a hint").as_millis();
            assert!((least..=most).contains(&hint_ms), "{dialect:?} {hint:?}: {hint_ms}");
        }
    }
}

#[tokio::test]
async fn without_hint_exhausted_counter_sets_the_wait() {
    for dialect in BOTH {
        let one = |number: u32| number.try_into().expect("more than 0");
        let rate = Rate::Bucket { calls: one(1), per_ms: one(600_000), burst: one(1) };
        let limits = vec![Limit { rate, endpoint: None, hint: false }];
        let fake = start(Script { limits, ..Script::default() });
        assert!(dialect.ask(&fake).await.outcome.is_ok());
        let call_error = dialect.call_error(&fake).await;
        let hint = call_error.verdict.hint.expect("the reset of the counter");
        // A time is written in whole seconds, rounded up.
        assert!(hint <= Duration::from_secs(601) && Duration::from_mins(5) < hint, "{dialect:?} {hint:?}");
        let fake = doing(ScriptedAction::Fail(ProviderFault::Throttle));
        assert_eq!(dialect.call_error(&fake).await.verdict.hint, None, "nothing says how long: {dialect:?}");
    }
}

#[tokio::test]
async fn error_shows_name_and_no_secret() {
    for dialect in BOTH {
        let fake = doing(ScriptedAction::Fail(ProviderFault::NotFound));
        let call_error = dialect.call_error(&fake).await;
        let name = match dialect {
            Dialect::OpenAi => "model_not_found",
            Dialect::Anthropic => "not_found_error",
        };
        assert_eq!(call_error.name.as_deref(), Some(name));
        assert!(call_error.why.starts_with(&format!("404 Not Found: {name}: ")), "{}", call_error.why);
        // Without a key the provider says what is missing; what it says about keys is not shown.
        let mut service = dialect.service(&fake, &[""]);
        service.api_key = None;
        let call_error = dialect.model(service).ask(0, &prompt()).await.outcome.expect_err("no key");
        assert_eq!(call_error.verdict.code, Some(Unauthorized));
        assert!(
            !format!("{call_error:?}").contains("token") && !format!("{call_error:?}").contains(KEY),
            "{call_error:?}"
        );
    }
}
