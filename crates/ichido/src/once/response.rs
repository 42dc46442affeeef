//! A response, from the handler to the first caller and to the store, and from the store to everybody else.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::Response;
use http_body::{Body as _, Frame};
use ichido_core::digest::{BodyRules, Digest};
use ichido_core::ledger::{Outcome, Settlement, settle};
use ichido_core::time::Timestamp;
use ichido_store::ledger as stored;
use uuid::Uuid;

use super::body::Body;
use super::claim::{Made, RunAgain};
use super::claim_guard::panicked;
use super::fields;
use super::handler::{Panicked, catch_panic};
use super::problem::{Code, Problem};
use super::settings::Settings;

/// A response that was listened to for as long as it can be kept.
pub(crate) struct CapturedResponse<R: http_body::Body> {
    /// For the first caller: nothing is missing from it.
    pub(crate) response: Response<Body<R>>,
    pub(crate) outcome: Outcome,
    /// The body, where it can be kept.
    body: Option<Bytes>,
    pub(crate) message_id: Option<Uuid>,
    pub(crate) run_again: bool,
}

impl<R: http_body::Body<Data = Bytes>> CapturedResponse<R> {
    /// Takes a response in. A body is read only where the outcome is to be kept, and only up to the bounds.
    pub(crate) async fn from(response: Response<R>, settings: &Settings) -> Self {
        let (mut parts, body) = response.into_parts();
        let run_again = parts.extensions.remove::<RunAgain>().is_some();
        let message_id = parts.extensions.remove::<Made>().map(|made| made.0);
        let declared = parts.extensions.remove::<Outcome>();
        let mut outcome = declared.unwrap_or(Outcome::Responded { status: parts.status.as_u16() });
        let is_stored = matches!(settlement(outcome, settings), Settlement::Keep { .. });
        let (body, stored_body) = if is_stored {
            match read(body, settings).await {
                BodyRead::Whole { body, bytes } => (body, Some(bytes)),
                BodyRead::GoesOn(body) => (body, None),
                BodyRead::Broken(body) => {
                    outcome = Outcome::Lost;
                    (body, None)
                }
                BodyRead::Panicked => {
                    let (response, outcome) = (panicked(), Outcome::Panicked);
                    return Self { response, outcome, body: None, message_id: None, run_again: false };
                }
            }
        } else {
            (Body::passed(body), None)
        };
        Self {
            response: Response::from_parts(parts, body),
            outcome,
            body: stored_body,
            message_id,
            run_again,
        }
    }

    /// What the store is to keep of it, with the digest of its body (SPEC D10).
    pub(crate) fn to_stored(&self) -> (stored::Response, Option<Digest>) {
        let headers = self.response.headers();
        let digest = self.body.as_ref().map(|body| {
            let media = fields::media(headers);
            let rules = BodyRules { bytes_max: body.len(), ..BodyRules::default() };
            let exact = (!media.is_encoded).then(|| Digest::of_body(&media.text, body, &rules).ok());
            // What is not clear JSON has no canonical form.
            exact.flatten().unwrap_or_else(|| Digest::of_bytes(body))
        });
        let response = stored::Response {
            status: self.response.status().as_u16(),
            headers: fields::stored_headers(headers),
            body: self.body.as_ref().map(|body| body.to_vec()),
        };
        (response, digest)
    }
}

/// What is to be done with a claim. When that is, the store says.
pub(crate) fn settlement(outcome: Outcome, settings: &Settings) -> Settlement {
    settle(outcome, &settings.policy, Timestamp::EPOCH)
}

/// How far a body was read.
enum BodyRead<R: http_body::Body> {
    Whole {
        body: Body<R>,
        bytes: Bytes,
    },
    /// It is over the bound, or a stream, or ends with trailers, which the store has no place for.
    GoesOn(Body<R>),
    Broken(Body<R>),
    Panicked,
}

async fn read<R: http_body::Body<Data = Bytes>>(body: R, settings: &Settings) -> BodyRead<R> {
    let bytes_max = settings.response_bytes_max;
    let hint = body.size_hint();
    let mut rest = Box::pin(body);
    let mut front = VecDeque::new();
    if (bytes_max as u64) < hint.lower() {
        return BodyRead::GoesOn(Body::resumed(front, rest));
    }
    let reading = read_up_to(bytes_max, &mut rest, &mut front);
    let ended = match hint.upper() {
        Some(_) => reading.await,
        // It may never end: what is not over soon is a stream.
        None => tokio::time::timeout(settings.response_whole_within, reading)
            .await
            .unwrap_or(Ok(Ok(BodyEnd::NotYet))),
    };
    let Ok(ended) = ended else { return BodyRead::Panicked };
    match ended {
        Ok(BodyEnd::Now) => {
            let bytes = concatenated(&front);
            BodyRead::Whole { body: Body::whole(bytes.clone(), None), bytes }
        }
        Ok(BodyEnd::NotYet) => BodyRead::GoesOn(Body::resumed(front, rest)),
        Err(error) => BodyRead::Broken(Body::broken(front, error)),
    }
}

enum BodyEnd {
    Now,
    NotYet,
}

async fn read_up_to<R: http_body::Body<Data = Bytes>>(
    bytes_max: usize,
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
        if is_trailers || bytes_max < bytes {
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

/// A stored response as a duplicate gets it.
pub(crate) fn replay<R: http_body::Body<Data = Bytes>>(
    stored: stored::Response,
    marker: &'static str,
) -> Result<Response<Body<R>>, Problem> {
    let mut response = Response::builder().status(stored.status);
    for (name, value) in stored.headers {
        response = response.header(name, value);
    }
    let body = Body::whole(Bytes::from(stored.body.unwrap_or_default()), None);
    // No marker is stored: each replay gets its own.
    response.header(marker, "true").body(body).map_err(|_| {
        let detail = "the response that is stored under this idempotency key cannot be read; nothing was run";
        Problem::new(Code::RecordUnreadable, detail)
    })
}
