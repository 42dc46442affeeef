//! One attempt and its outcome.

use std::time::Duration;

use bytes::Bytes;
use ichido::destination::http::{DeliveryRule, Http, HttpSettings, MAX_TIMEOUT, ResponseMeaning};
use ichido::destination::{DeliveryAttempt, DeliveryOutcome, ReconcileOutcome};
use ichido_core::fence::Fence;
use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::{Advice, Effect, ErrorCode, Verdict};
use ichido_store::message::{Note, QueueName};
use uuid::Uuid;

/// Longer than a test may take: if it ends, it ends for another reason.
const PLENTY: Duration = MAX_TIMEOUT;
/// After this a test hangs. It measures nothing.
const HUNG: Duration = Duration::from_mins(2);
/// How long a call waits for a response that never comes. Connecting gets as long, on a slow machine too.
pub(crate) const SHORT: Duration = Duration::from_secs(2);

/// Settings whose timeouts no test reaches unless it means to.
pub(crate) fn settings(url: String) -> HttpSettings {
    HttpSettings {
        connect_timeout: PLENTY,
        response_timeout: PLENTY,
        total_timeout: PLENTY,
        ..HttpSettings::new(url, Guarantee::None)
    }
}

/// The destination of these settings.
pub(crate) fn resolved(settings: &HttpSettings) -> Http {
    settings.resolve().unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect("a key")
}

/// An attempt of an order under this key.
pub(crate) fn order(key_text: &str) -> DeliveryAttempt {
    DeliveryAttempt {
        message: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0007),
        queue: QueueName::parse("orders").expect("a name"),
        identity: "ann".to_owned(),
        key: key(key_text),
        fence: Fence::new(42).expect("a fence"),
        attempt: 3,
        hops: Hops::read([r#"bff;t=1800000000000;r="7f1c""#]),
        trace: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        content_type: "application/json".to_owned(),
        body: Bytes::from_static(br#"{"symbol":"ACME","qty":"10"}"#),
    }
}

/// The result of a lookup.
pub(crate) async fn asked(http: &Http, key_text: &str) -> ReconcileOutcome {
    tokio::time::timeout(HUNG, http.reconcile(&key(key_text))).await.expect("it ends in its time")
}

/// The outcome of an attempt, which is never snoozed.
pub(crate) async fn tried(http: &Http, call: &DeliveryAttempt) -> (Verdict, Note) {
    match tokio::time::timeout(HUNG, http.call(call)).await.expect("it ends in its time") {
        DeliveryOutcome::Judged { verdict, note } => (verdict, note),
        DeliveryOutcome::Snoozed { .. } => panic!("it was put off"),
    }
}

/// The outcome in short: code, effect and advice.
pub(crate) async fn outcome(http: &Http, call: &DeliveryAttempt) -> (Option<&'static str>, Effect, Advice) {
    let (verdict, note) = tried(http, call).await;
    assert_eq!(verdict.code, note.code, "the audit says what was judged");
    (verdict.code.map(ErrorCode::as_str), verdict.effect, verdict.advice)
}

/// A rule for a 409 with this error.
pub(crate) fn conflict(error: &str, means: ResponseMeaning) -> DeliveryRule {
    let at = Some(("/error".to_owned(), error.to_owned()));
    DeliveryRule { status: "409".to_owned(), at, means }
}
