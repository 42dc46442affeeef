//! What Bedrock refuses, row by row, and what is shown of it.
// SPEC B1.

use std::time::Duration;

use fake_llm::Script;
use fake_llm::action::{ProviderFault, ScriptedAction};
use fake_llm::pace::RetryAfter;
use fake_llm::script::ScriptRule;
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport};
use serde_json::json;

use crate::fixture::{TOKEN, assert_requests, call_error, failing, prompt};
use crate::raw::Raw;

#[tokio::test]
async fn each_refusal_is_judged_by_its_name_or_its_status() {
    use Advice::{GiveUp, Retry};
    use Effect::{NotDone, Unknown};
    use ErrorCode::{BadRequest, Broker5xx, NetworkTimeout, QuotaSpent, RateLimited, Unauthorized};
    let rows = [
        (ProviderFault::Throttle, 429, Some("ThrottlingException"), RateLimited, NotDone, Retry),
        (ProviderFault::ThrottleTokens, 429, Some("ThrottlingException"), RateLimited, NotDone, Retry),
        (ProviderFault::Unavailable, 503, Some("ServiceUnavailableException"), Broker5xx, Unknown, Retry),
        (ProviderFault::Internal, 500, Some("InternalServerException"), Broker5xx, Unknown, Retry),
        (ProviderFault::Overloaded, 529, None, RateLimited, NotDone, Retry),
        (ProviderFault::TimedOut, 408, Some("ModelTimeoutException"), NetworkTimeout, Unknown, GiveUp),
        (ProviderFault::NotReady, 429, Some("ModelNotReadyException"), Broker5xx, NotDone, Retry),
        (ProviderFault::ModelError(429), 424, Some("ModelErrorException"), RateLimited, NotDone, Retry),
        (ProviderFault::ModelError(503), 424, Some("ModelErrorException"), Broker5xx, Unknown, Retry),
        (ProviderFault::ModelError(400), 424, Some("ModelErrorException"), BadRequest, NotDone, GiveUp),
        // Not a failure's status, so the error name decides.
        (ProviderFault::ModelError(200), 424, Some("ModelErrorException"), Broker5xx, Unknown, GiveUp),
        (ProviderFault::SpendLimit, 400, Some("ServiceQuotaExceededException"), QuotaSpent, NotDone, GiveUp),
        (ProviderFault::Denied, 403, Some("AccessDeniedException"), Unauthorized, NotDone, GiveUp),
        (ProviderFault::Invalid, 400, Some("ValidationException"), BadRequest, NotDone, GiveUp),
        (ProviderFault::NotFound, 404, Some("ResourceNotFoundException"), BadRequest, NotDone, GiveUp),
        (ProviderFault::Unknown, 418, Some("TeapotException"), BadRequest, NotDone, GiveUp),
        (ProviderFault::BadGateway, 502, None, Broker5xx, Unknown, Retry),
    ];
    for (fault, status, name, code, effect, advice) in rows {
        let fake = failing(fault);
        let call_error = call_error(fake.url()).await;
        let verdict = call_error.verdict;
        assert_eq!((verdict.code, verdict.effect, verdict.advice), (Some(code), effect, advice), "{fault:?}");
        assert_eq!((call_error.status, call_error.name.as_deref()), (Some(status), name), "{fault:?}");
        assert_eq!(call_error.may_be_billed(), effect == Unknown, "{fault:?}");
        // One call, whatever the SDK would do automatically, and the SDK's header says so.
        assert_requests(&fake, 1);
        let said = fake.seen().last_request.unwrap().headers["amz-sdk-request"].clone();
        assert_eq!(said, "attempt=1; max=1", "{fault:?}");
    }
}

#[tokio::test]
async fn retry_hint_of_server_is_used() {
    let rule = ScriptRule {
        retry_after: Some(RetryAfter::Seconds(7)),
        ..ScriptRule::new(ScriptedAction::Fail(ProviderFault::Throttle))
    };
    let fake = fake_llm::start(Script { rules: vec![rule], ..Script::default() });
    let call_error = call_error(fake.url()).await;
    assert_eq!(call_error.verdict.hint, Some(Duration::from_secs(7)));
    assert_eq!(call_error.verdict.pace_report(), Some(PaceReport::Throttled));
}

#[tokio::test]
async fn daily_token_limit_is_a_quota_not_a_throttle() {
    let named = "x-amzn-errortype: ThrottlingException\r\n";
    let of_day = r#"{"message": "Too many tokens per day, please wait before trying again."}"#;
    let of_minute = r#"{"message": "Too many tokens, please wait before trying again."}"#;
    for (body, code, advice) in
        [(of_day, ErrorCode::QuotaSpent, Advice::GiveUp), (of_minute, ErrorCode::RateLimited, Advice::Retry)]
    {
        let raw = Raw::answering(429, named, body).await;
        let verdict = call_error(raw.url()).await.verdict;
        assert_eq!(
            (verdict.code, verdict.effect, verdict.advice),
            (Some(code), Effect::NotDone, advice),
            "{body}"
        );
    }
}

#[tokio::test]
async fn error_name_falls_back_to_body() {
    let body = r#"{"__type": "com.amazon.bedrock#ServiceQuotaExceededException", "message": "spent"}"#;
    let raw = Raw::answering(400, "", body).await;
    let call_error = call_error(raw.url()).await;
    assert_eq!(call_error.verdict.code, Some(ErrorCode::QuotaSpent));
    assert_eq!(call_error.name.as_deref(), Some("ServiceQuotaExceededException"));
}

#[tokio::test]
async fn refusal_shows_request_id_and_no_secret() {
    let fake = failing(ProviderFault::Denied);
    let denied = call_error(fake.url()).await.why;
    assert!(
        denied.starts_with("AccessDeniedException: You don't have access to the model. (request 0000"),
        "{denied}"
    );

    let echo = json!({"message": format!("malformed input: {}", prompt().user)}).to_string();
    let raw = Raw::answering(400, "x-amzn-errortype: ValidationException\r\n", &echo).await;
    let echoed = call_error(raw.url()).await;
    assert!(!format!("{echoed:?}").contains("Alpha"), "{echoed:?}");

    let signed = json!({"message": format!("The signature does not match.\n\nx-amz-security-token:{TOKEN}")});
    let raw =
        Raw::answering(403, "x-amzn-errortype: InvalidSignatureException\r\n", &signed.to_string()).await;
    let refused = call_error(raw.url()).await;
    assert_eq!(refused.verdict.code, Some(ErrorCode::Unauthorized));
    assert_eq!(refused.why, "InvalidSignatureException: The signature does not match.");
}
