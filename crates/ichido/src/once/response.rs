//! Responses: captured from the handler for the first caller and the store, and replayed to duplicates.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::Response;
use http_body::{Body as _, Frame};
use ichido_core::digest::{BodyRules, Digest};
use ichido_core::ledger::{RequestOutcome, Settlement, settle};
use ichido_core::time::Timestamp;
use ichido_store::ledger as stored;
use uuid::Uuid;

use super::body::Body;
use super::claim::{EnqueuedMessage, RetryTransaction};
use super::claim_guard::panicked;
use super::fields;
use super::handler::{Panicked, catch_panic};
use super::problem::{Code, Problem};
use super::settings::Settings;

/// A response, captured as far as it can be stored.
pub(crate) struct CapturedResponse<R: http_body::Body> {
    /// For the first caller; complete.
    pub(crate) response: Response<Body<R>>,
    outcome: RequestOutcome,
    /// The body, if it can be stored.
    body: Option<Bytes>,
    message_id: Option<Uuid>,
    pub(crate) run_again: bool,
}

impl<R: http_body::Body<Data = Bytes>> CapturedResponse<R> {
    /// Captures a response.
    ///
    /// Reads the body only if the outcome is stored, and only within the limits.
    pub(crate) async fn from(response: Response<R>, settings: &Settings) -> Self {
        let (mut parts, body) = response.into_parts();
        let run_again = parts.extensions.remove::<RetryTransaction>().is_some();
        let message_id = parts.extensions.remove::<EnqueuedMessage>().map(|made| made.0);
        let declared = parts.extensions.remove::<RequestOutcome>();
        let mut outcome = declared.unwrap_or(RequestOutcome::Responded { status: parts.status.as_u16() });
        let is_stored = matches!(settlement(outcome, settings), Settlement::Keep { .. });
        let (body, stored_body) = if is_stored {
            match read(body, settings).await {
                BodyRead::Whole { body, bytes } => (body, Some(bytes)),
                BodyRead::GoesOn(body) => (body, None),
                BodyRead::Broken(body) => {
                    outcome = RequestOutcome::Lost;
                    (body, None)
                }
                BodyRead::Panicked => {
                    let (response, outcome) = (panicked(), RequestOutcome::Panicked);
                    return Self { response, outcome, body: None, message_id: None, run_again: false };
                }
            }
        } else {
            (Body::pass_through(body), None)
        };
        Self {
            response: Response::from_parts(parts, body),
            outcome,
            body: stored_body,
            message_id,
            run_again,
        }
    }

    /// Returns what to store.
    pub(crate) fn to_outcome(&self, settings: &Settings) -> stored::KeyOutcome {
        match settlement(self.outcome, settings) {
            Settlement::Keep { outcome: settled, .. } => {
                let (response, result_digest) = self.to_stored();
                let (message_id, ttl) = (self.message_id, settings.policy.ttl());
                stored::KeyOutcome::Keep { settled, response, result_digest, message_id, ttl }
            }
            Settlement::Release => stored::KeyOutcome::Release,
            Settlement::Hold if self.outcome.is_answered() => stored::KeyOutcome::HoldAnswered,
            Settlement::Hold => stored::KeyOutcome::Hold,
        }
    }

    /// Returns the stored response, with the digest of the body.
    // Spec: D10.
    fn to_stored(&self) -> (stored::StoredResponse, Option<Digest>) {
        let headers = self.response.headers();
        let digest = self.body.as_ref().map(|body| {
            let media = fields::media(headers);
            let rules = BodyRules { max_bytes: body.len(), ..BodyRules::default() };
            let exact = (!media.is_encoded).then(|| Digest::of_body(&media.text, body, &rules).ok());
            // Invalid JSON has no canonical form.
            exact.flatten().unwrap_or_else(|| Digest::of_bytes(body))
        });
        let response = stored::StoredResponse {
            status: self.response.status().as_u16(),
            headers: fields::stored_headers(headers),
            body: self.body.as_ref().map(|body| body.to_vec()),
        };
        (response, digest)
    }
}

/// Decides what to do with a claim. The store supplies the time.
pub(crate) fn settlement(outcome: RequestOutcome, settings: &Settings) -> Settlement {
    settle(outcome, &settings.policy, Timestamp::EPOCH)
}

/// How far a body was read.
enum BodyRead<R: http_body::Body> {
    Whole {
        body: Body<R>,
        bytes: Bytes,
    },
    /// It is too large, a stream, or ends with trailers, which the store cannot hold.
    GoesOn(Body<R>),
    Broken(Body<R>),
    Panicked,
}

async fn read<R: http_body::Body<Data = Bytes>>(body: R, settings: &Settings) -> BodyRead<R> {
    let max_bytes = settings.max_response_bytes;
    let hint = body.size_hint();
    let mut rest = Box::pin(body);
    let mut front = VecDeque::new();
    if (max_bytes as u64) < hint.lower() {
        return BodyRead::GoesOn(Body::resumed(front, rest));
    }
    let reading = read_up_to(max_bytes, &mut rest, &mut front);
    let ended = match hint.upper() {
        Some(_) => reading.await,
        // It may never end: a body that does not end soon is a stream.
        None => tokio::time::timeout(settings.response_whole_within, reading)
            .await
            .unwrap_or(Ok(Ok(BodyEnd::NotYet))),
    };
    let Ok(ended) = ended else { return BodyRead::Panicked };
    match ended {
        Ok(BodyEnd::Now) => {
            let bytes = concatenated(&front);
            BodyRead::Whole { body: Body::buffered(bytes.clone(), None), bytes }
        }
        Ok(BodyEnd::NotYet) => BodyRead::GoesOn(Body::resumed(front, rest)),
        Err(error) => BodyRead::Broken(Body::failed(front, error)),
    }
}

enum BodyEnd {
    Now,
    NotYet,
}

async fn read_up_to<R: http_body::Body<Data = Bytes>>(
    max_bytes: usize,
    rest: &mut Pin<Box<R>>,
    front: &mut VecDeque<Frame<Bytes>>,
) -> Result<Result<BodyEnd, R::Error>, Panicked> {
    let mut bytes = 0;
    while !rest.is_end_stream() {
        let frame = match poll_fn(|cx| catch_panic(|| rest.as_mut().poll_frame(cx))).await? {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Ok(Err(error)),
            None => break,
        };
        bytes += frame.data_ref().map_or(0, Bytes::len);
        let is_trailers = frame.is_trailers();
        front.push_back(frame);
        if is_trailers || max_bytes < bytes {
            return Ok(Ok(BodyEnd::NotYet));
        }
    }
    Ok(Ok(BodyEnd::Now))
}

fn concatenated(frames: &VecDeque<Frame<Bytes>>) -> Bytes {
    let mut parts = frames.iter().filter_map(Frame::data_ref);
    match (parts.next(), parts.next()) {
        (None, _) => Bytes::new(),
        (Some(only), None) => only.clone(),
        (Some(first), Some(second)) => {
            let mut joined = BytesMut::from(first.as_ref());
            joined.extend_from_slice(second);
            parts.for_each(|part| joined.extend_from_slice(part));
            joined.freeze()
        }
    }
}

/// Rebuilds a stored response for a duplicate.
pub(crate) fn replay<R: http_body::Body<Data = Bytes>>(
    stored: stored::StoredResponse,
    marker: &'static str,
) -> Result<Response<Body<R>>, Problem> {
    let mut response = Response::builder().status(stored.status);
    for (name, value) in stored.headers {
        response = response.header(name, value);
    }
    let body = Body::buffered(Bytes::from(stored.body.unwrap_or_default()), None);
    // The marker is not stored: each replay adds its own.
    response.header(marker, "true").body(body).map_err(|_| {
        let detail = "the response stored under this idempotency key cannot be read; nothing was run";
        Problem::new(Code::RecordUnreadable, detail)
    })
}
