//! What the broker answers, in the form of SPEC D18.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use serde_json::{Map, Value, json};

use super::behaviour::Behaviour;
use super::book::{Book, Order, Refusal};
use super::fault::Fault;

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What is said to a caller.
pub(crate) enum Reply {
    Answer(Response<AnswerBody>),
    /// The connection is reset.
    Reset,
    /// Nothing, for as long as the caller waits.
    Silence,
}

/// A body, or half of one.
pub(crate) enum AnswerBody {
    Whole(Option<Bytes>),
    /// Ends before its time.
    Half {
        /// What comes before the end.
        start: Option<Bytes>,
        /// Whether that had time to leave.
        has_left: bool,
    },
}

/// The body was meant to end here.
#[derive(Debug, thiserror::Error)]
#[error("the answer is cut")]
pub(crate) struct Cut;

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Half { start, has_left } => match start.take() {
                Some(start) => Poll::Ready(Some(Ok(Frame::data(start)))),
                None if *has_left => Poll::Ready(Some(Err(Cut))),
                // The server writes out what it has when there is nothing more for the moment.
                None => {
                    *has_left = true;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            },
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            // It says one length in its field, and has another.
            Self::Half { .. } => SizeHint::default(),
        }
    }
}

/// JSON with a status.
pub(crate) fn json_answer(status: StatusCode, body: &Value) -> Response<AnswerBody> {
    text_answer(status, body.to_string())
}

fn text_answer(status: StatusCode, body: String) -> Response<AnswerBody> {
    let mut answer = Response::new(AnswerBody::Whole(Some(Bytes::from(body))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// An error by name, tied to the key if there is one.
pub(crate) fn error_answer(status: StatusCode, error: &str, key: &str) -> Response<AnswerBody> {
    let mut body = json!({ "error": error });
    if !key.is_empty() {
        body["idempotency_key"] = json!(key);
    }
    json_answer(status, &body)
}

/// An order as it is answered; `key` is the one it is said to be of.
fn told(order: Order, key: Option<&str>) -> Value {
    let mut body = json!({
        "broker_order_id": name_of(order),
        "accepted_at": order.accepted_at.to_string(),
        "status": "accepted",
        "fills": [],
    });
    if let Some(key) = key {
        body["idempotency_key"] = json!(key);
    }
    body
}

fn name_of(order: Order) -> String {
    format!("paper-{}", order.number)
}

/// The answer to a question about a key.
pub(crate) fn found(book: &Book, key: &str) -> Response<AnswerBody> {
    match book.entries.get(key).and_then(|entry| entry.first) {
        Some((order, _)) => json_answer(StatusCode::OK, &told(order, Some(key))),
        None => error_answer(StatusCode::NOT_FOUND, "no_such_order", key),
    }
}

/// The answer to an order that took effect.
pub(crate) fn taken(order: Order, key: &str, is_replay: bool, fault: Option<Fault>) -> Reply {
    let right = told(order, Some(key));
    let mut answer = match fault {
        Some(Fault::ResetAfter) => return Reply::Reset,
        Some(Fault::SilenceAfter) => return Reply::Silence,
        Some(Fault::ServerErrorAfter) => {
            error_answer(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "")
        }
        Some(Fault::CutAfter) => half(&right.to_string()),
        Some(Fault::Malformed) => text_answer(StatusCode::OK, right.to_string().replace('}', "")),
        Some(Fault::WrongKey) => json_answer(StatusCode::OK, &told(order, Some("the-key-of-somebody-else"))),
        Some(Fault::NoKey) => json_answer(StatusCode::OK, &told(order, None)),
        Some(Fault::ConflictProcessed) => {
            let mut body = right;
            body["error"] = json!("already_processed");
            json_answer(StatusCode::CONFLICT, &body)
        }
        _ => json_answer(StatusCode::OK, &right),
    };
    if is_replay {
        answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Reply::Answer(answer)
}

/// Says how long it is, and ends in the middle.
fn half(text: &str) -> Response<AnswerBody> {
    let start = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    let mut answer = Response::new(AnswerBody::Half { start: Some(start), has_left: false });
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    answer
}

/// The answer to an order that took no effect because it was to fail.
pub(crate) fn failed(fault: Fault, key: &str, behaviour: &Behaviour) -> Reply {
    let (status, error) = match fault {
        Fault::ResetBefore => return Reply::Reset,
        Fault::SilenceBefore => return Reply::Silence,
        Fault::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
        Fault::ConflictInProgress => (StatusCode::CONFLICT, "in_progress"),
        Fault::ConflictOther => (StatusCode::CONFLICT, "market_closed"),
        Fault::BadRequest => (StatusCode::BAD_REQUEST, "bad_order"),
        Fault::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    let mut answer = error_answer(status, error, key);
    if fault == Fault::RateLimited {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(behaviour.retry_after.as_secs()));
    }
    Reply::Answer(answer)
}

/// The answer to an order that was refused.
pub(crate) fn refused(why: Refusal, key: &str) -> Reply {
    let status = match why {
        Refusal::OldFence => StatusCode::PRECONDITION_FAILED,
        Refusal::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Refusal::Full => StatusCode::SERVICE_UNAVAILABLE,
    };
    Reply::Answer(error_answer(status, why.as_str(), key))
}

/// All that the broker did.
pub(crate) fn effects(book: &Book) -> Value {
    let keys: Map<String, Value> = book
        .entries
        .iter()
        .map(|(key, entry)| {
            let told = json!({
                "calls": entry.calls,
                "effects": entry.effects,
                "fences": entry.fences,
                "fence_max": entry.fence_max,
                "broker_order_id": entry.first.map(|(order, _)| name_of(order)),
            });
            (key.clone(), told)
        })
        .collect();
    let faults: Map<String, Value> = Fault::ALL
        .iter()
        .map(|(fault, name, _)| ((*name).to_owned(), json!(book.faults.get(fault).copied().unwrap_or(0))))
        .collect();
    let refusals: Map<String, Value> = Refusal::ALL
        .iter()
        .map(|why| (why.as_str().to_owned(), json!(book.refusals.get(why).copied().unwrap_or(0))))
        .collect();
    json!({
        "calls": book.calls,
        "effects": book.entries.values().map(|entry| entry.effects).sum::<u64>(),
        "effects_max": book.entries.values().map(|entry| entry.effects).max().unwrap_or(0),
        "faults": faults,
        "refusals": refusals,
        "keys": keys,
    })
}
