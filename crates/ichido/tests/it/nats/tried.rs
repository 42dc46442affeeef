//! One attempt and its outcome.

use std::time::Duration;

use bytes::Bytes;
use ichido::destination::nats::{MAX_TIMEOUT, MIN_SETTLE_GRACE, Nats, NatsSettings, NatsStartError};
use ichido::destination::{DeliveryAttempt, DeliveryOutcome};
use ichido_core::fence::Fence;
use ichido_core::hops::Hops;
use ichido_core::verdict::{Advice, Effect, ErrorCode, Verdict};
use ichido_store::message::{Note, QueueName};
use nats_for_tests::{SUBJECT, SharedServer};
use uuid::Uuid;

use crate::worker::fixture::key;

/// Longer than a test may take: if it ends, it ends for another reason.
const PLENTY: Duration = MAX_TIMEOUT;
/// After this a test hangs. It measures nothing.
const HUNG: Duration = Duration::from_mins(2);
/// How long a call waits for a response that never comes. Sending gets as long, on a slow machine too.
const SHORT: Duration = Duration::from_secs(2);

pub(crate) type AttemptSummary = (Option<&'static str>, Effect, Advice);
pub(crate) const DONE: AttemptSummary = (None, Effect::Done, Advice::Accept);
pub(crate) const BEFORE: AttemptSummary =
    (Some("CONFLICT_PROCESSED"), Effect::Done, Advice::AcceptAsProcessed);
pub(crate) const NOT_SENT: AttemptSummary = (Some("CONNECT_FAILED"), Effect::NotDone, Advice::Retry);
pub(crate) const MAYBE_SENT: AttemptSummary = (Some("NETWORK_TIMEOUT"), Effect::Unknown, Advice::Retry);
pub(crate) const NOT_TAKEN: AttemptSummary = (Some("BROKER_5XX"), Effect::NotDone, Advice::Retry);
pub(crate) const WRONG: AttemptSummary = (Some("BAD_REQUEST"), Effect::NotDone, Advice::GiveUp);
pub(crate) const DENIED: AttemptSummary = (Some("UNAUTHORIZED"), Effect::NotDone, Advice::GiveUp);

/// Settings whose timeouts no test reaches unless it means to.
pub(crate) fn settings(url: String) -> NatsSettings {
    NatsSettings {
        connect_timeout: PLENTY,
        timeout: PLENTY,
        settle_grace: MIN_SETTLE_GRACE,
        ..NatsSettings::new(url, SUBJECT)
    }
}

/// The same on a shared server.
pub(crate) fn shared_settings(server: &SharedServer) -> NatsSettings {
    NatsSettings { subject: server.subject().to_owned(), ..settings(server.url()) }
}

/// The destination of these settings, or why there is none.
pub(crate) async fn connect(settings: &NatsSettings) -> Result<Nats, NatsStartError> {
    let plan = settings.resolve().unwrap_or_else(|problems| panic!("{problems}"));
    tokio::time::timeout(HUNG, plan.connect()).await.expect("it ends in its time")
}

pub(crate) async fn connected(settings: &NatsSettings) -> Nats {
    connect(settings).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A destination with short timeouts. They may be too short to start on a busy machine, so it retries until it started.
pub(crate) async fn impatient(url: String) -> Nats {
    let settings = NatsSettings { connect_timeout: SHORT, timeout: SHORT, ..settings(url) };
    loop {
        match connect(&settings).await {
            Ok(nats) => return nats,
            Err(NatsStartError::Unreachable { .. } | NatsStartError::Unreadable { .. }) => (),
            Err(error) => panic!("{error}"),
        }
    }
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

/// The outcome of an attempt, which is never snoozed.
pub(crate) async fn tried(nats: &Nats, call: &DeliveryAttempt) -> (Verdict, Note) {
    match tokio::time::timeout(HUNG, nats.call(call)).await.expect("it ends in its time") {
        DeliveryOutcome::Judged { verdict, note } => (verdict, note),
        DeliveryOutcome::Snoozed { .. } => panic!("it was put off"),
    }
}

/// The outcome in short: code, effect and advice.
pub(crate) async fn outcome(nats: &Nats, call: &DeliveryAttempt) -> AttemptSummary {
    let (verdict, note) = tried(nats, call).await;
    assert_eq!(verdict.code, note.code, "the audit says what was judged");
    (verdict.code.map(ErrorCode::as_str), verdict.effect, verdict.advice)
}
