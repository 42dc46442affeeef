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
use crate::limits::{MAX_FEED_LISTENERS_PER_TOKEN, MAX_FEED_MESSAGES};

/// When a listener may be admitted again.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(10);

/// Streams changes as server-sent events.
///
/// It sends the whole state first, and then each change within about a second: `queues` (as `GET /v1/queues`), `nodes`, `destinations`,
/// `alerts` (the firing ones, as `GET /v1/alerts`), `actions` (one action of an operator), and for each `message` in the query, `message`
/// events with its transitions, including the past ones. A `store` event says that the store does not respond, or that it does again. A
/// `reset` event means that events were missed; the whole state follows. A producer sees only its own queues and messages. The server ends
/// a stream after ten minutes, and clients reconnect; if its token is revoked or expires, within seconds. One token can have up to 16
/// streams open.
#[utoipa::path(
    get,
    path = "/v1/events",
    params(("message" = Option<Vec<Uuid>>, Query, explode, max_items = 20, description = "A message to watch; can be repeated up to 20 times")),
    responses(
        (status = 200, description = "Events, until one side closes the connection", body = String, content_type = "text/event-stream"),
        (status = 429, description = "This token has too many listeners"),
        (status = 503, description = "There are too many listeners, or the server is stopping"),
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
            format!("the event feed has {} listeners, the maximum; connect again later", api.request_limits.max_listeners),
        )
        .after(FULL_RETRY_AFTER),
        SubscribeError::Full(Full::Own) => Problem::new(
            Code::TokenBusy,
            format!(
                "this token has {MAX_FEED_LISTENERS_PER_TOKEN} listeners, the maximum; close one, or use another token"
            ),
        )
        .after(FULL_RETRY_AFTER),
        SubscribeError::Stopping => Problem::new(Code::NotReady, "the server is stopping"),
    })?;
    Ok(with_type(StatusCode::OK, "text/event-stream", Body::new(EventStreamBody(receiver))))
}

/// Returns the ids of the messages to watch, without duplicates.
fn watched_ids(uri: &Uri) -> Result<Vec<Uuid>, Problem> {
    let mut ids = Vec::new();
    for (name, text) in query_pairs(uri)? {
        if name != "message" {
            let detail = "the query has an unknown parameter; known parameters: message";
            return Err(Problem::new(Code::ParameterInvalid, detail));
        }
        let id = Uuid::try_parse(&text).map_err(|_| unknown_message())?;
        if !ids.contains(&id) {
            ids.push(id);
        }
        if MAX_FEED_MESSAGES < ids.len() {
            let detail = format!(
                "the query names more than {MAX_FEED_MESSAGES} messages, the maximum to watch; name fewer"
            );
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
