//! What an acknowledgement, another answer or none says of the effect.
//!
//! Guarantee: done is what the expected stream acknowledged; not done is only what the server says that it did not take. What else comes
//! leaves the effect unknown.

use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::{Error, ErrorCode as Said};
use bytes::Bytes;
use ichido_core::digest::{BodyRules, Digest};
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};
use ichido_store::message::Note;

use super::super::Came;
use super::line::{Fault, Seen};

/// The status by which NATS says that nobody listens.
const NO_RESPONDERS: u16 = 503;

/// What a try came to.
pub(super) fn judge(stream: &str, seen: Seen) -> Came {
    match seen {
        Seen::Replied(payload) => replied(stream, &payload),
        Seen::NoResponders => {
            let why = "nobody took it: no stream listens to the subject at the moment";
            let note = Note { status: Some(NO_RESPONDERS), ..said(why) };
            failed(ErrorCode::Broker5xx, Effect::NotDone, Advice::Retry, PaceReport::Failure, note)
        }
        Seen::TooLarge { why } => {
            let note =
                said(format!("not sent: it is more than the server takes: {why}; raise max_payload there"));
            failed(ErrorCode::BadRequest, Effect::NotDone, Advice::GiveUp, PaceReport::Success, note)
        }
        Seen::Denied => {
            let note =
                said("the server does not allow us to publish to the subject; mend the user's permissions");
            failed(ErrorCode::Unauthorized, Effect::NotDone, Advice::GiveUp, PaceReport::Success, note)
        }
        Seen::Late => lost("no acknowledgement came in time"),
        Seen::Broken => lost("the connection was lost before the acknowledgement came"),
    }
}

/// There was no connection.
pub(super) fn not_sent(fault: &Fault) -> Came {
    let (code, advice) = if fault.is_unauthorized {
        (ErrorCode::Unauthorized, Advice::GiveUp)
    } else {
        (ErrorCode::NetworkTimeout, Advice::Retry)
    };
    failed(code, Effect::NotDone, advice, PaceReport::Failure, said(&fault.why))
}

fn replied(stream: &str, payload: &Bytes) -> Came {
    match serde_json::from_slice(payload) {
        Ok(Response::Ok(ack)) => acknowledged(stream, &ack, payload),
        Ok(Response::Err { error }) => refused(&error),
        Err(_) => {
            let why = "the answer is no acknowledgement of a stream; somebody else answers on the subject";
            failed(ErrorCode::AnswerUnusable, Effect::Unknown, Advice::Retry, PaceReport::Success, said(why))
        }
    }
}

fn acknowledged(stream: &str, ack: &PublishAck, payload: &Bytes) -> Came {
    if ack.stream != stream {
        let why = format!("stream {} acknowledged it, and {stream} was expected to", ack.stream);
        return failed(
            ErrorCode::AnswerUnusable,
            Effect::Unknown,
            Advice::Retry,
            PaceReport::Success,
            said(why),
        );
    }
    if ack.sequence == 0 {
        let note = said("the stream knows the key, and has not stored the message yet");
        return failed(ErrorCode::InProgress, Effect::Unknown, Advice::Retry, PaceReport::Success, note);
    }
    let receipt = Some(format!("{}:{}", ack.stream, ack.sequence));
    let (code, advice) = if ack.duplicate {
        (Some(ErrorCode::ConflictProcessed), Advice::AcceptAsProcessed)
    } else {
        (None, Advice::Accept)
    };
    let verdict = Verdict::said(code, Effect::Done, advice, None, Some(PaceReport::Success));
    // What an earlier call under this key gave is not known: the audit's word for that is `sha256:from-conflict`.
    let result_digest = (!ack.duplicate).then(|| digest(payload));
    Came::judged(verdict, Note { result_digest, receipt, ..Note::default() })
}

/// The stream, or the server for it, says that something is wrong.
fn refused(error: &Error) -> Came {
    use PaceReport::{Failure, Success, Throttled};
    let note = Note { status: u16::try_from(error.code()).ok(), ..said(error.to_string()) };
    let (code, effect, advice, report) = match error.error_code() {
        Said::STREAM_MESSAGE_EXCEEDS_MAXIMUM | Said::STREAM_HEADER_EXCEEDS_MAXIMUM => {
            (ErrorCode::BadRequest, Effect::NotDone, Advice::GiveUp, Success)
        }
        // Another publish under this key is under way.
        Said::STREAM_DUPLICATE_MESSAGE_CONFLICT => {
            (ErrorCode::InProgress, Effect::Unknown, Advice::Retry, Success)
        }
        Said::STREAM_TOO_MANY_REQUESTS => (ErrorCode::RateLimited, Effect::NotDone, Advice::Retry, Throttled),
        // The stream is full and discards what is new; other failures to store may have stored a part.
        Said::STREAM_STORE_FAILED if says_full(error) => {
            (ErrorCode::Broker5xx, Effect::NotDone, Advice::Retry, Failure)
        }
        // Each is found before the message is looked at.
        Said::INSUFFICIENT_RESOURCES
        | Said::STORAGE_RESOURCES_EXCEEDED
        | Said::MEMORY_RESOURCES_EXCEEDED
        | Said::ACCOUNT_RESOURCES_EXCEEDED
        | Said::JETSTREAM_NOT_ENABLED
        | Said::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
        | Said::STREAM_NOT_MATCH
        | Said::STREAM_SEALED => (ErrorCode::Broker5xx, Effect::NotDone, Advice::Retry, Failure),
        _ => (ErrorCode::Broker5xx, Effect::Unknown, Advice::Retry, Failure),
    };
    failed(code, effect, advice, report, note)
}

/// `maximum messages exceeded`, `maximum bytes exceeded`, `maximum messages per subject exceeded`.
fn says_full(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("maximum") && text.contains("exceeded")
}

fn lost(why: &str) -> Came {
    failed(ErrorCode::NetworkTimeout, Effect::Unknown, Advice::Retry, PaceReport::Failure, said(why))
}

fn failed(code: ErrorCode, effect: Effect, advice: Advice, report: PaceReport, note: Note) -> Came {
    Came::judged(Verdict::said(Some(code), effect, advice, None, Some(report)), note)
}

fn said(why: impl Into<String>) -> Note {
    Note { excerpt: Some(why.into()), ..Note::default() }
}

/// The digest of the acknowledgement (SPEC D10).
fn digest(payload: &Bytes) -> Digest {
    let rules = BodyRules { bytes_max: payload.len(), ..BodyRules::default() };
    Digest::of_body("application/json", payload, &rules).unwrap_or_else(|_| Digest::of_bytes(payload))
}

#[cfg(test)]
mod tests;
