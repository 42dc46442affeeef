//! The event stream of a page: the API's own feed, for the visitor of the session, with a beat.
//!
//! Guarantee: a page hears something at least once in [`BEAT_INTERVAL`] while the server lives, so it notices within three seconds that
//! the server is gone, even if no connection breaks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::{Error, Extension};
use bytes::Bytes;
use http::{Method, Uri};
use http_body::Frame;
use tokio::time::{Interval, interval};

use super::Dashboard;
use super::shell::{PageRefusal, Visitor};

/// Maximum silence on the stream of a page.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// An event, because a script does not see comments.
const BEAT: Bytes = Bytes::from_static(b"event: beat\ndata: {}\n\n");

/// Streams changes. One task polls the store for all listeners.
pub(super) async fn stream(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let response =
        dashboard.call(visitor.caller()?, Method::GET, &format!("/v1/events{query}"), String::new()).await?;
    Ok(response.map(|events| Body::new(BeatingBody { events, beat: interval(BEAT_INTERVAL) })))
}

/// A stream of whole events, with a beat whenever it was silent.
struct BeatingBody {
    events: Body,
    beat: Interval,
}

impl http_body::Body for BeatingBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.events).poll_frame(cx) {
            self.beat.reset();
            return Poll::Ready(frame);
        }
        self.beat.poll_tick(cx).map(|_| Some(Ok(Frame::data(BEAT))))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::BodyExt as _;
    use tokio::sync::mpsc::{Receiver, channel};
    use tokio::time::Instant;

    use super::*;

    /// Events as the feed sends them.
    struct Events(Receiver<Bytes>);

    impl http_body::Body for Events {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
        }
    }

    /// Time is paused, so it passes only while everything waits.
    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_beats_and_events_pass_whole() {
        let (sender, receiver) = channel(1);
        let mut body = BeatingBody { events: Body::new(Events(receiver)), beat: interval(BEAT_INTERVAL) };
        let started = Instant::now();
        let event = Bytes::from_static(b"event: queues\ndata: {}\n\n");
        let mut next = async || body.frame().await.map(|frame| frame.unwrap().into_data().unwrap());
        assert_eq!((next().await, started.elapsed()), (Some(BEAT), Duration::ZERO), "it begins with one");
        sender.send(event.clone()).await.unwrap();
        assert_eq!((next().await, started.elapsed()), (Some(event), Duration::ZERO));
        assert_eq!((next().await, started.elapsed()), (Some(BEAT), BEAT_INTERVAL));
        drop(sender);
        assert_eq!(next().await, None, "it ends with the feed");
    }
}
