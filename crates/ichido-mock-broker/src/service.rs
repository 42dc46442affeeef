//! Handles one request to the broker.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use ichido_core::digest::{BodyRules, Digest};
use ichido_core::json::{Document, Pointer};
use ichido_core::key::{self, IdempotencyKey};
use ichido_core::sync::lock;
use ichido_http::clock;
use ichido_http::url::percent_decoded;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::behaviour::Behaviour;
use super::effect_log::{EffectLog, OrderOutcome, OrderRequest};
use super::failure_mode::FailureMode;
use super::response::{
    BrokerReply, ResponseBody, effect_response, effects_json, error_response, failure_response,
    json_response, query_response, refusal_response,
};

/// The largest body that is read.
const MAX_BODY_BYTES: usize = 4 << 20;
/// How long a body may take to arrive.
const BODY_WAIT: Duration = Duration::from_secs(30);
/// Where an order repeats its key.
// Spec: D18.
const KEY_POINTER: &str = "/idempotency_key";
/// The path prefix of order queries.
const BY_KEY: &str = "/orders/by-key/";

/// The broker: its record, its behaviour and its random numbers.
pub struct Broker(Mutex<BrokerState>);

struct BrokerState {
    log: EffectLog,
    behaviour: Behaviour,
    dice: fastrand::Rng,
}

impl Broker {
    /// Creates a broker. The same seed produces the same failures.
    pub fn new(behaviour: Behaviour, seed: u64) -> Self {
        Self(Mutex::new(BrokerState {
            log: EffectLog::default(),
            behaviour,
            dice: fastrand::Rng::with_seed(seed),
        }))
    }

    fn state(&self) -> MutexGuard<'_, BrokerState> {
        // A panic could leave wrong counts, but this is for tests: it is better to continue and show the error.
        lock(&self.0)
    }

    /// Handles one request.
    pub(crate) async fn handle(&self, request: Request<Incoming>) -> BrokerReply {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        match (head.method, path) {
            (Method::GET, "/mock/effects") => {
                BrokerReply::Answer(json_response(StatusCode::OK, &effects_json(&self.state().log)))
            }
            (Method::GET, "/mock/faults") => {
                BrokerReply::Answer(json_response(StatusCode::OK, &self.state().behaviour.to_json()))
            }
            (Method::PUT, "/mock/faults") => match read(body).await {
                Ok(body) => BrokerReply::Answer(self.change(&body)),
                Err(refusal) => BrokerReply::Answer(*refusal),
            },
            (Method::GET, path) if path.starts_with(BY_KEY) => {
                let key = key_in_path(&path[BY_KEY.len()..]);
                BrokerReply::Answer(query_response(&self.state().log, &key))
            }
            (Method::POST, path) if !path.starts_with("/mock/") => match read(body).await {
                Ok(body) => self.order(&head.headers, &body).await,
                Err(refusal) => BrokerReply::Answer(*refusal),
            },
            _ => BrokerReply::Answer(error_response(StatusCode::NOT_FOUND, "no_such_page", "")),
        }
    }

    fn change(&self, body: &[u8]) -> Response<ResponseBody> {
        let mut state = self.state();
        match state.behaviour.changed(body) {
            Ok(behaviour) => {
                state.behaviour = behaviour;
                json_response(StatusCode::OK, &state.behaviour.to_json())
            }
            Err(wrong) => {
                json_response(StatusCode::BAD_REQUEST, &json!({ "error": "bad_settings", "problems": wrong }))
            }
        }
    }

    async fn order(&self, headers: &HeaderMap, body: &Bytes) -> BrokerReply {
        let deduplicates = self.state().behaviour.deduplicates;
        let order_request = match order_request(headers, body, deduplicates) {
            Ok(order_request) => order_request,
            Err((status, error)) => return BrokerReply::Answer(error_response(status, error, "")),
        };
        let (reply, wait) = self.state().take(&order_request);
        // The effect comes first, so a caller that does not wait for the response misses one that happened.
        sleep(wait).await;
        reply
    }
}

impl BrokerState {
    /// Processes an order. Returns the reply and its delay.
    fn take(&mut self, order_request: &OrderRequest) -> (BrokerReply, Duration) {
        let dice = self.dice.f64();
        let key = order_request.key.as_str();
        let latency = self.behaviour.latency;
        match self.log.take(order_request, &self.behaviour, dice, clock::now()) {
            OrderOutcome::Taken { order, is_replay, fault } => {
                let slow =
                    if fault == Some(FailureMode::Slow) { self.behaviour.slow } else { Duration::ZERO };
                (effect_response(order, key, is_replay, fault), latency + slow)
            }
            OrderOutcome::Failed(fault) => (failure_response(fault, key, &self.behaviour), latency),
            OrderOutcome::Refused(why) => (refusal_response(why, key), latency),
        }
    }
}

/// Reads the body, or returns the response if it is too large or too late.
///
/// The response is boxed, because it is large and rare.
async fn read(body: Incoming) -> Result<Bytes, Box<Response<ResponseBody>>> {
    let (status, error) = match timeout(BODY_WAIT, Limited::new(body, MAX_BODY_BYTES).collect()).await {
        Ok(Ok(body)) => return Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        Ok(Err(_)) => (StatusCode::BAD_REQUEST, "body_broken"),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "body_late"),
    };
    Err(Box::new(error_response(status, error, "")))
}

/// Parses an order, or returns the status and error to refuse it with.
fn order_request(
    headers: &HeaderMap,
    body: &Bytes,
    deduplicates: bool,
) -> Result<OrderRequest, (StatusCode, &'static str)> {
    let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let key = match key::read(fields) {
        Ok(Some(key)) => Some(key),
        Ok(None) if !deduplicates => None,
        Ok(None) => return Err((StatusCode::BAD_REQUEST, "key_missing")),
        Err(_) => return Err((StatusCode::BAD_REQUEST, "bad_key")),
    };
    if !agrees(key.as_ref(), body) {
        return Err((StatusCode::UNPROCESSABLE_ENTITY, "keys_disagree"));
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let digest =
        Digest::of_body(media_type, body, &BodyRules { max_bytes: MAX_BODY_BYTES, ..BodyRules::default() });
    Ok(OrderRequest {
        key: key.map_or_else(String::new, |key| key.as_str().to_owned()),
        fence: text("ichido-fence").and_then(|fence| fence.parse().ok()),
        body: body.clone(),
        digest: digest.unwrap_or_else(|_| Digest::of_bytes(body)),
    })
}

/// Whether the key in the body, if present, equals the one in the header.
// Spec: D11.
fn agrees(key: Option<&IdempotencyKey>, body: &[u8]) -> bool {
    let (Ok(document), Ok(pointer)) = (Document::parse(body, MAX_BODY_BYTES), Pointer::parse(KEY_POINTER))
    else {
        return true;
    };
    let in_body = document.at(&pointer).and_then(|value| value.as_str().map(Cow::into_owned));
    match (key, in_body) {
        (Some(key), Some(in_body)) => key.agrees_with_body(&in_body).is_ok(),
        (None, _) | (_, None) => true,
    }
}

/// Decodes the key in a path. Invalid percent-encoding is used as it is.
fn key_in_path(text: &str) -> String {
    percent_decoded(text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_a_path_is_read_back() {
        for (written, read) in
            [("a%2Fb%3fc", "a/b?c"), ("plain", "plain"), ("50%", "50%"), ("%zz%4", "%zz%4")]
        {
            assert_eq!(key_in_path(written), read);
        }
    }
}
