//! The broker's responses.
// Spec: D18.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use serde_json::{Map, Value, json};

use super::behaviour::Behaviour;
use super::effect_log::{EffectLog, OrderRefusal, RecordedOrder};
use super::failure_mode::FailureMode;

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// How the broker replies to a caller.
pub(crate) enum BrokerReply {
    Answer(Response<ResponseBody>),
    /// It resets the connection.
    Reset,
    /// It sends nothing for as long as the caller waits.
    Silence,
}

/// A complete body, or half of one.
pub(crate) enum ResponseBody {
    Whole(Option<Bytes>),
    /// Ends too early.
    Half {
        /// The part before the end.
        start: Option<Bytes>,
        /// Whether that part was flushed.
        has_left: bool,
    },
}

/// The body ends here on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the response is cut off")]
pub(crate) struct CutShort;

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Half { start, has_left } => match start.take() {
                Some(start) => Poll::Ready(Some(Ok(Frame::data(start)))),
                None if *has_left => Poll::Ready(Some(Err(CutShort))),
                // The server flushes its buffer when there is nothing more for now.
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
            // The declared length differs from the real one.
            Self::Half { .. } => SizeHint::default(),
        }
    }
}

/// Builds a JSON response.
pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response<ResponseBody> {
    text_response(status, body.to_string())
}

fn text_response(status: StatusCode, body: String) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::Whole(Some(Bytes::from(body))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Builds an error response by name, with the key if there is one.
pub(crate) fn error_response(status: StatusCode, error: &str, key: &str) -> Response<ResponseBody> {
    let mut body = json!({ "error": error });
    if !key.is_empty() {
        body["idempotency_key"] = json!(key);
    }
    json_response(status, &body)
}

/// Renders an order; `key` is the key that the response names.
fn order_json(order: RecordedOrder, key: Option<&str>) -> Value {
    let mut body = json!({
        "broker_order_id": order_id(order),
        "accepted_at": order.accepted_at.to_string(),
        "status": "accepted",
        "fills": [],
    });
    if let Some(key) = key {
        body["idempotency_key"] = json!(key);
    }
    body
}

fn order_id(order: RecordedOrder) -> String {
    format!("mock-{}", order.number)
}

/// Responds to a query for a key.
pub(crate) fn query_response(log: &EffectLog, key: &str) -> Response<ResponseBody> {
    match log.entries.get(key).and_then(|entry| entry.first) {
        Some((order, _)) => json_response(StatusCode::OK, &order_json(order, Some(key))),
        None => error_response(StatusCode::NOT_FOUND, "no_such_order", key),
    }
}

/// Responds to an order that took effect.
pub(crate) fn effect_response(
    order: RecordedOrder,
    key: &str,
    is_replay: bool,
    fault: Option<FailureMode>,
) -> BrokerReply {
    let right = order_json(order, Some(key));
    let mut answer = match fault {
        Some(FailureMode::ResetAfter) => return BrokerReply::Reset,
        Some(FailureMode::SilenceAfter) => return BrokerReply::Silence,
        Some(FailureMode::ServerErrorAfter) => {
            error_response(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "")
        }
        Some(FailureMode::CutAfter) => half(&right.to_string()),
        Some(FailureMode::Malformed) => text_response(StatusCode::OK, right.to_string().replace('}', "")),
        Some(FailureMode::WrongKey) => {
            json_response(StatusCode::OK, &order_json(order, Some("the-key-of-somebody-else")))
        }
        Some(FailureMode::NoKey) => json_response(StatusCode::OK, &order_json(order, None)),
        Some(FailureMode::ConflictProcessed) => {
            let mut body = right;
            body["error"] = json!("already_processed");
            json_response(StatusCode::CONFLICT, &body)
        }
        _ => json_response(StatusCode::OK, &right),
    };
    if is_replay {
        answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    BrokerReply::Answer(answer)
}

/// Builds a response that declares its full length and ends in the middle.
fn half(text: &str) -> Response<ResponseBody> {
    let start = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    let mut answer = Response::new(ResponseBody::Half { start: Some(start), has_left: false });
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    answer
}

/// Responds to an order that failed without effect.
pub(crate) fn failure_response(fault: FailureMode, key: &str, behaviour: &Behaviour) -> BrokerReply {
    let (status, error) = match fault {
        FailureMode::ResetBefore => return BrokerReply::Reset,
        FailureMode::SilenceBefore => return BrokerReply::Silence,
        FailureMode::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
        FailureMode::ConflictInProgress => (StatusCode::CONFLICT, "in_progress"),
        FailureMode::ConflictOther => (StatusCode::CONFLICT, "market_closed"),
        FailureMode::BadRequest => (StatusCode::BAD_REQUEST, "bad_order"),
        FailureMode::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    let mut answer = error_response(status, error, key);
    if fault == FailureMode::RateLimited {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(behaviour.retry_after.as_secs()));
    }
    BrokerReply::Answer(answer)
}

/// Responds to an order that was refused.
pub(crate) fn refusal_response(why: OrderRefusal, key: &str) -> BrokerReply {
    let status = match why {
        OrderRefusal::OldFence => StatusCode::PRECONDITION_FAILED,
        OrderRefusal::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        OrderRefusal::Full => StatusCode::SERVICE_UNAVAILABLE,
    };
    BrokerReply::Answer(error_response(status, why.as_str(), key))
}

/// Renders everything that the broker did.
pub(crate) fn effects_json(log: &EffectLog) -> Value {
    let keys: Map<String, Value> = log
        .entries
        .iter()
        .map(|(key, entry)| {
            let entry_json = json!({
                "calls": entry.calls,
                "effects": entry.effects,
                "fences": entry.fences,
                "max_fence": entry.max_fence,
                "broker_order_id": entry.first.map(|(order, _)| order_id(order)),
            });
            (key.clone(), entry_json)
        })
        .collect();
    let faults: Map<String, Value> = FailureMode::ALL
        .iter()
        .map(|(fault, name, _)| ((*name).to_owned(), json!(log.faults.get(fault).copied().unwrap_or(0))))
        .collect();
    let refusals: Map<String, Value> = OrderRefusal::ALL
        .iter()
        .map(|why| (why.as_str().to_owned(), json!(log.refusals.get(why).copied().unwrap_or(0))))
        .collect();
    json!({
        "calls": log.calls,
        "effects": log.entries.values().map(|entry| entry.effects).sum::<u64>(),
        "max_effects": log.entries.values().map(|entry| entry.effects).max().unwrap_or(0),
        "faults": faults,
        "refusals": refusals,
        "keys": keys,
    })
}
