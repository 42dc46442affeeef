//! The event feed over HTTP (server-sent events).

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::{StatusCode, Uri};
use http_body::Frame;
use ichido_http::server::permits::Full;
use tokio::sync::mpsc::Receiver;
use uuid::Uuid;

use super::api::ApiState;
use super::caller::ApiCaller;
use super::feed::SubscribeError;
use super::messages::{find_visible, unknown_message};
use super::problem::{Code, Problem};
use super::request::query_pairs;
use super::response::with_type;
use crate::limits::{FEED_LISTENERS_PER_TOKEN_MAX, FEED_MESSAGES_MAX};

/// When a listener may be admitted again.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(10);

/// Tells what happens, as it happens (server-sent events).
///
/// First the whole state, then each change within about a second: `queues` (as `GET /v1/queues`), `nodes`, `destinations`, `alerts` (those
/// that fire, as `GET /v1/alerts`), `actions` (one operator's action), and for each `message` that is named, `message` events with its
/// transitions, those so far included. After `reset` something was missed, and the whole state follows. A producer is told of its own
/// queues and messages. The stream ends after ten minutes, and is asked for again; within seconds, when its token is revoked or expires.
/// At most 16 are open with one token.
#[utoipa::path(
    get,
    path = "/v1/events",
    params(("message" = Option<Vec<Uuid>>, Query, explode, max_items = 20, description = "A message to watch; may be repeated, up to 20 times")),
    responses(
        (status = 200, description = "Events until one side hangs up", body = String, content_type = "text/event-stream"),
        (status = 429, description = "Too many listen with this token"),
        (status = 503, description = "Too many listen, or the server stops"),
    )
)]
pub(super) async fn stream_events(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<ApiCaller>,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut messages = Vec::new();
    for id in watched_ids(&uri)? {
        messages.push(find_visible(&api, &caller, &id.to_string()).await?.id);
    }
    let receiver = api.feed.subscribe(caller, messages).map_err(|error| match error {
        SubscribeError::Full(Full::All) => Problem::new(
            Code::FeedFull,
            format!("{} listen already, which is the most; ask again later", api.request_limits.listeners_max),
        )
        .after(FULL_RETRY_AFTER),
        SubscribeError::Full(Full::Own) => Problem::new(
            Code::TokenBusy,
            format!(
                "{FEED_LISTENERS_PER_TOKEN_MAX} listen with this token already, which is the most; close one, or use another token"
            ),
        )
        .after(FULL_RETRY_AFTER),
        SubscribeError::Stopping => Problem::new(Code::NotReady, "the server stops"),
    })?;
    Ok(with_type(StatusCode::OK, "text/event-stream", Body::new(EventStreamBody(receiver))))
}

/// Returns the ids of the messages to watch, without duplicates.
fn watched_ids(uri: &Uri) -> Result<Vec<Uuid>, Problem> {
    let mut ids = Vec::new();
    for (name, text) in query_pairs(uri)? {
        if name != "message" {
            let detail = "the query has a parameter that is not known here; known are: message";
            return Err(Problem::new(Code::ParameterInvalid, detail));
        }
        let id = Uuid::try_parse(&text).map_err(|_| unknown_message())?;
        if !ids.contains(&id) {
            ids.push(id);
        }
        if FEED_MESSAGES_MAX < ids.len() {
            let detail = format!("at most {FEED_MESSAGES_MAX} messages are watched at once; name fewer");
            return Err(Problem::new(Code::ParameterInvalid, detail));
        }
    }
    Ok(ids)
}

/// The events as a body, which ends when the feed closes the stream.
struct EventStreamBody(Receiver<Bytes>);

impl http_body::Body for EventStreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
