//! What an acknowledgement, another response or none says about the effect.
//!
//! Guarantee: done means that the expected stream acknowledged it; not done, that the server says it did not accept it.
//! Everything else leaves the effect unknown.

use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::{Error, ErrorCode as StreamError};
use bytes::Bytes;
use ichido_core::digest::{BodyRules, Digest};
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};
use ichido_store::message::Note;

use super::super::DeliveryOutcome;
use super::connection::{PublishOutcome, TransportError};

/// The NATS status for "no responders".
const NO_RESPONDERS: u16 = 503;

/// Judges an attempt by its outcome.
pub(super) fn judge(stream: &str, outcome: PublishOutcome) -> DeliveryOutcome {
    match outcome {
        PublishOutcome::Replied(payload) => replied(stream, &payload),
        PublishOutcome::NoResponders => {
            let why = "not stored: no stream listens on the subject at the moment";
            let note = Note { status: Some(NO_RESPONDERS), ..note_of(why) };
            failed(ErrorCode::Broker5xx, Effect::NotDone, Advice::Retry, PaceReport::Failure, note)
        }
        PublishOutcome::TooLarge { why } => {
            let note = note_of(format!(
                "not sent: too large for the server: {why}; raise max_payload on the server"
            ));
            failed(ErrorCode::BadRequest, Effect::NotDone, Advice::GiveUp, PaceReport::Success, note)
        }
        PublishOutcome::Denied => {
            let note =
                note_of("the server does not allow publishing to the subject; fix the user's permissions");
            failed(ErrorCode::Unauthorized, Effect::NotDone, Advice::GiveUp, PaceReport::Success, note)
        }
        PublishOutcome::Late => lost("no acknowledgement arrived in time"),
        PublishOutcome::Broken => lost("the connection was lost before the acknowledgement arrived"),
    }
}

/// Judges an attempt without a connection.
pub(super) fn not_sent(error: &TransportError) -> DeliveryOutcome {
    let (code, advice) = if error.is_unauthorized {
        (ErrorCode::Unauthorized, Advice::GiveUp)
    } else {
        (ErrorCode::ConnectFailed, Advice::Retry)
    };
    failed(code, Effect::NotDone, advice, PaceReport::Failure, note_of(&error.why))
}

fn replied(stream: &str, payload: &Bytes) -> DeliveryOutcome {
    match serde_json::from_slice(payload) {
        Ok(Response::Ok(ack)) => acknowledged(stream, &ack, payload),
        Ok(Response::Err { error }) => refused(&error),
        Err(_) => {
            let why =
                "the response is not a stream's acknowledgement; another subscriber replies on the subject";
            failed(
                ErrorCode::AnswerUnusable,
                Effect::Unknown,
                Advice::Retry,
                PaceReport::Success,
                note_of(why),
            )
        }
    }
}

fn acknowledged(stream: &str, ack: &PublishAck, payload: &Bytes) -> DeliveryOutcome {
    if ack.stream != stream {
        let why = format!("stream {} acknowledged it, but {stream} was expected to", ack.stream);
        return failed(
            ErrorCode::AnswerUnusable,
            Effect::Unknown,
            Advice::Retry,
            PaceReport::Success,
            note_of(why),
        );
    }
    if ack.sequence == 0 {
        let note = note_of("the stream knows the key but has not stored the message yet");
        return failed(ErrorCode::InProgress, Effect::Unknown, Advice::Retry, PaceReport::Success, note);
    }
    let receipt = Some(format!("{}:{}", ack.stream, ack.sequence));
    let (code, advice) = if ack.duplicate {
        (Some(ErrorCode::ConflictProcessed), Advice::AcceptAsProcessed)
    } else {
        (None, Advice::Accept)
    };
    let verdict = Verdict::declared(code, Effect::Done, advice, None, Some(PaceReport::Success));
    // The result of the earlier call under this key is unknown; the audit trail records `sha256:from-conflict`.
    let result_digest = (!ack.duplicate).then(|| digest(payload));
    DeliveryOutcome::judged(verdict, Note { result_digest, receipt, ..Note::default() })
}

/// Judges an error from the stream, or from the server on its behalf.
fn refused(error: &Error) -> DeliveryOutcome {
    use PaceReport::{Failure, Success, Throttled};
    let note = Note { status: u16::try_from(error.code()).ok(), ..note_of(error.to_string()) };
    let (code, effect, advice, report) = match error.error_code() {
        StreamError::STREAM_MESSAGE_EXCEEDS_MAXIMUM | StreamError::STREAM_HEADER_EXCEEDS_MAXIMUM => {
            (ErrorCode::BadRequest, Effect::NotDone, Advice::GiveUp, Success)
        }
        // Another publish under this key is in flight.
        StreamError::STREAM_DUPLICATE_MESSAGE_CONFLICT => {
            (ErrorCode::InProgress, Effect::Unknown, Advice::Retry, Success)
        }
        StreamError::STREAM_TOO_MANY_REQUESTS => {
            (ErrorCode::RateLimited, Effect::NotDone, Advice::Retry, Throttled)
        }
        // The stream is full and discards new messages; other store failures may have stored a part.
        StreamError::STREAM_STORE_FAILED if says_full(error) => {
            (ErrorCode::Broker5xx, Effect::NotDone, Advice::Retry, Failure)
        }
        // The server detects each of these before it looks at the message.
        StreamError::INSUFFICIENT_RESOURCES
        | StreamError::STORAGE_RESOURCES_EXCEEDED
        | StreamError::MEMORY_RESOURCES_EXCEEDED
        | StreamError::ACCOUNT_RESOURCES_EXCEEDED
        | StreamError::JETSTREAM_NOT_ENABLED
        | StreamError::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
        | StreamError::STREAM_NOT_MATCH
        | StreamError::STREAM_SEALED => (ErrorCode::Broker5xx, Effect::NotDone, Advice::Retry, Failure),
        _ => (ErrorCode::Broker5xx, Effect::Unknown, Advice::Retry, Failure),
    };
    failed(code, effect, advice, report, note)
}

/// `maximum messages exceeded`, `maximum bytes exceeded`, `maximum messages per subject exceeded`.
fn says_full(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("maximum") && text.contains("exceeded")
}

fn lost(why: &str) -> DeliveryOutcome {
    failed(ErrorCode::NetworkTimeout, Effect::Unknown, Advice::Retry, PaceReport::Failure, note_of(why))
}

fn failed(
    code: ErrorCode,
    effect: Effect,
    advice: Advice,
    report: PaceReport,
    note: Note,
) -> DeliveryOutcome {
    DeliveryOutcome::judged(Verdict::declared(Some(code), effect, advice, None, Some(report)), note)
}

fn note_of(why: impl Into<String>) -> Note {
    Note { excerpt: Some(why.into()), ..Note::default() }
}

/// Digests the acknowledgement.
// Spec: D10.
fn digest(payload: &Bytes) -> Digest {
    let rules = BodyRules { max_bytes: payload.len(), ..BodyRules::default() };
    Digest::of_body("application/json", payload, &rules).unwrap_or_else(|_| Digest::of_bytes(payload))
}

#[cfg(test)]
mod tests;
