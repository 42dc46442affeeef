//! Validates and parses submitted messages, the same over HTTP and from the command line.
//!
//! Guarantee: two bodies under one key count as the same request exactly when they mean the same: JSON by its canonical form,
//! everything else by its bytes. The store keeps the caller's bytes. Ambiguous JSON is refused with its location. A queue's
//! schema applies to new messages only: a request that was accepted once gets the same response again, whatever the schema says
//! now.

// Spec: C9, D1, D11.

use std::num::NonZeroU32;

use ichido_core::digest::is_json;
use ichido_core::json::{CanonicalForm, Document, JsonError, LineColumn};
use ichido_core::key::IdempotencyKey;
use ichido_store::Store;
use ichido_store::error::StoreError;
pub use ichido_store::message::QueueName;
pub use ichido_store::message::limits::MAX_REQUEST_BYTES;
use ichido_store::message::limits::{MAX_CONTENT_TYPE_BYTES, MAX_IDENTITY_BYTES};
use ichido_store::message::{Enqueued, InvalidBody, MessageFilter, NewMessage, RequestBody};

use crate::body_key;
use crate::config::Intake;
use crate::labels::Labels;
use crate::schedule::Schedule;
use crate::schema::{Schema, SchemaViolations};

/// Parses a queue name, or returns what is wrong with it.
pub fn queue_name(text: &str) -> Result<QueueName, &'static str> {
    QueueName::parse(text)
        .ok_or("is not a valid queue name; use 1 to 128 letters, digits, `.`, `_`, `-` and `:`")
}

/// A message that a caller submits.
pub(crate) struct Submission {
    pub(crate) queue: QueueName,
    pub(crate) identity: String,
    pub(crate) key: IdempotencyKey,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// The hops from its header.
    pub(crate) hops: Option<String>,
    pub(crate) trace: Option<String>,
    /// The maximum number of attempts, from the queue.
    pub(crate) max_attempts: NonZeroU32,
    /// When it is first sent. It is not part of the digest.
    pub(crate) schedule: Schedule,
    /// The queue's schema, and which members its digest leaves out.
    pub(crate) intake: Intake,
}

/// Why a submission is refused. No message here repeats what was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubmissionError {
    #[error("the identity must have 1 to {MAX_IDENTITY_BYTES} bytes without control characters")]
    Identity,
    #[error(
        "the content type must be one media type of at most {MAX_CONTENT_TYPE_BYTES} visible characters, such as application/json"
    )]
    ContentType,
    #[error(
        "the body has more than {MAX_REQUEST_BYTES} bytes, the maximum of a message; send less, or a reference to it"
    )]
    TooLarge,
    #[error("the body is not valid JSON: {fault} in line {line}, column {column}; fix it, or send a different Content-Type", fault = .error.fault, line = .at.line, column = .at.column)]
    Json { error: JsonError, at: LineColumn },
    #[error(
        "the body's idempotency_key differs from the request's key; send the same key in both, or remove it from the body"
    )]
    KeyMismatch,
    #[error(
        "the queue has a schema and accepts only JSON; send the body as JSON with Content-Type: application/json"
    )]
    NotJson,
    #[error(
        "the body does not match the queue's schema: {0}; nothing was enqueued; fix it, and send it with the same key"
    )]
    Schema(SchemaViolations),
}

/// A submission that was parsed.
pub(crate) struct ParsedSubmission {
    pub(crate) message: NewMessage,
    /// Why the queue's schema refuses it as a new message. Check with [`find_existing`] first whether its key was used before.
    pub(crate) schema_error: Option<SubmissionError>,
}

/// Whether a text can be the name of a party: an identity, or a person in the audit trail.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=MAX_IDENTITY_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Validates a submission and turns it into a message.
pub(crate) fn parse(submission: Submission) -> Result<ParsedSubmission, SubmissionError> {
    let Submission { queue, identity, key, content_type, body, hops, trace, max_attempts, schedule, intake } =
        submission;
    if !is_name(&identity) {
        return Err(SubmissionError::Identity);
    }
    if !is_media_type(&content_type) {
        return Err(SubmissionError::ContentType);
    }
    if MAX_REQUEST_BYTES < body.len() {
        return Err(SubmissionError::TooLarge);
    }
    let document = Document::parse(&body, MAX_REQUEST_BYTES).ok();
    body_key::agrees_in(&key, document.as_ref()).map_err(|_| SubmissionError::KeyMismatch)?;
    let Labels { trace_id, item } = intake.labels.read(document.as_ref());
    let form = CanonicalForm { leave_out: (*intake.digest_without).clone(), ..CanonicalForm::default() };
    let request = RequestBody::new(content_type, body, form).map_err(|InvalidBody { error, bytes }| {
        SubmissionError::Json { error, at: LineColumn::new(&bytes, error.position) }
    })?;
    let schema_error =
        intake.schema.and_then(|schema| check_schema(&schema, request.content_type(), request.bytes()).err());
    let message = NewMessage::new(queue, &identity, key, request);
    let message = NewMessage { hops, trace, trace_id, item, max_attempts, ..message };
    Ok(ParsedSubmission { message: schedule.apply(message), schema_error })
}

/// Returns what enqueuing would return for a used key; `None` if the key is new.
pub(crate) async fn find_existing(
    store: &Store,
    message: &NewMessage,
) -> Result<Option<Enqueued>, StoreError> {
    let filter = MessageFilter {
        queue: Some(message.queue.clone()),
        identity: Some(message.identity.clone()),
        key: Some(message.key.clone()),
        ..MessageFilter::default()
    };
    let found = store.messages().list(&filter, 1).await?.pop();
    let Some(found) = found else { return Ok(None) };
    if message.request.is_same(&found.content_type, found.request_digest) {
        Ok(Some(Enqueued::Replay { id: found.id }))
    } else {
        Err(StoreError::KeyConflict { id: found.id })
    }
}

/// Checks a body against a queue's schema, after ambiguous JSON was refused.
pub(crate) fn check_schema(schema: &Schema, content_type: &str, body: &[u8]) -> Result<(), SubmissionError> {
    if !is_json(content_type) {
        return Err(SubmissionError::NotJson);
    }
    schema.check(body).map_err(SubmissionError::Schema)
}

/// Whether a text is `type/subtype`, with or without parameters.
///
/// Only visible characters and spaces are allowed, because it is sent as a header field.
fn is_media_type(text: &str) -> bool {
    let visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let essence = text.split(';').next().unwrap_or_default().trim();
    let named = essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    text.len() <= MAX_CONTENT_TYPE_BYTES && visible && named
}

fn is_token(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ichido_core::digest::Digest;
    use ichido_core::json::{LeaveOut, Pointer};

    use super::*;

    fn offered(content_type: &str, body: &str) -> Result<NewMessage, SubmissionError> {
        parse(Submission {
            queue: QueueName::parse("orders").expect("a name"),
            identity: "ann".to_owned(),
            key: IdempotencyKey::parse("k-1").expect("a key"),
            content_type: content_type.to_owned(),
            body: body.as_bytes().to_vec(),
            hops: None,
            trace: None,
            max_attempts: NonZeroU32::MIN,
            schedule: Schedule::default(),
            intake: Intake { digest_without: Arc::new(without()), ..Intake::default() },
        })
        .map(|parsed| parsed.message)
    }

    fn without() -> LeaveOut {
        LeaveOut::new(vec![Pointer::parse("/trace_id").expect("a pointer")]).expect("one")
    }

    #[test]
    fn an_empty_body_is_not_json() {
        for content_type in ["application/json", "application/problem+json; charset=utf-8"] {
            let refused = offered(content_type, "").unwrap_err();
            assert!(matches!(refused, SubmissionError::Json { .. }), "{refused}");
        }
        assert!(offered("application/octet-stream", "").is_ok());
    }

    #[test]
    fn ignored_members_do_not_change_the_digest() {
        let first = offered("application/json", r#"{"symbol": "ACME", "trace_id": "t-1"}"#).unwrap();
        let again = offered("application/json", r#"{"symbol": "ACME", "trace_id": "t-2"}"#).unwrap();
        let other = offered("application/json", r#"{"symbol": "EMCA", "trace_id": "t-1"}"#).unwrap();
        assert_eq!(first.request.digest(), again.request.digest());
        assert_ne!(first.request.digest(), other.request.digest());
        assert_eq!(again.request.bytes(), br#"{"symbol": "ACME", "trace_id": "t-2"}"#, "the caller's bytes");
    }

    // Spec: D13, E3.
    #[test]
    fn a_message_gets_its_labels_from_its_body() {
        let body = r#"{"trace_id":"t-1","url":"https://a.test/"}"#;
        let message = offered("application/json", body).unwrap();
        assert_eq!(
            (message.trace_id.as_deref(), message.item.as_deref()),
            (Some("t-1"), Some("https://a.test/"))
        );
    }

    #[test]
    fn json_is_compared_by_meaning_and_stored_unchanged() {
        let first = offered("application/json", r#"{"qty": 1.0, "symbol": "ACME"}"#).unwrap();
        let again = offered("application/json; charset=utf-8", r#"{"symbol":"ACME","qty":1}"#).unwrap();
        assert_eq!(first.request.digest(), again.request.digest());
        assert_eq!(first.request.bytes(), br#"{"qty": 1.0, "symbol": "ACME"}"#);
        let text = offered("text/plain", r#"{"qty": 1.0, "symbol": "ACME"}"#).unwrap();
        let by_bytes = Digest::of_bytes(text.request.bytes());
        assert_eq!(*text.request.digest(), by_bytes, "other types go by their bytes");
    }

    #[test]
    fn ambiguous_json_is_refused_with_its_location() {
        let doubtful = offered("application/json", "{\"a\":1,\n \"a\":2}").unwrap_err();
        assert!(doubtful.to_string().contains("in line 2, column 2"), "{doubtful}");
        for body in ["{\"a\":NaN}", "[01]", "{", "\"\\ud800\""] {
            let refused = offered("application/merge-patch+json", body);
            assert!(matches!(refused, Err(SubmissionError::Json { .. })), "{body}");
            assert!(offered("text/plain", body).is_ok(), "{body}");
        }
    }

    #[test]
    fn a_body_that_repeats_another_key_is_refused_whatever_its_type() {
        for content_type in ["application/json", "text/plain"] {
            let other = offered(content_type, r#"{"idempotency_key":"k-2"}"#);
            assert!(matches!(other, Err(SubmissionError::KeyMismatch)), "{content_type}");
            assert!(offered(content_type, r#"{"idempotency_key":"k-1"}"#).is_ok(), "{content_type}");
        }
    }

    #[test]
    fn invalid_media_types_are_refused() {
        for wrong in ["", "json", "a/", "/b", "a b/c", "text/plain\r\nX: y", "text/é"] {
            assert!(matches!(offered(wrong, ""), Err(SubmissionError::ContentType)), "{wrong:?}");
        }
        let long = format!("text/{}", "x".repeat(MAX_CONTENT_TYPE_BYTES));
        assert!(matches!(offered(&long, ""), Err(SubmissionError::ContentType)));
    }
}
