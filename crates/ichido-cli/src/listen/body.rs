//! Bodies that come in and go out, never waited for without end.
//!
//! Guarantee: a body that makes no progress, or takes too long in all, fails with a [`BodyFault`] instead of
//! holding its connection.

use std::error::Error;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

/// Whatever a body can fail with.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A body of an answer to a client.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// Why a body did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    /// Nothing came for too long.
    #[error("the body made no progress for too long")]
    Idle,
    /// It takes too long in all.
    #[error("the body took too long")]
    TooSlow,
    /// The connection broke, or the framing is wrong.
    #[error("the body was cut short")]
    Cut,
}

/// A body from the network, with its clocks.
pub(crate) struct Timed {
    body: Incoming,
    idle: Duration,
    /// Running only while somebody waits for the next frame: a slow reader is not the sender's fault.
    idle_by: Option<Pin<Box<Sleep>>>,
    total_by: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    /// A request's body: bounded in all, too.
    pub(crate) fn request(body: Incoming, idle: Duration, total: Duration) -> Self {
        let total_by = (!body.is_end_stream()).then(|| Box::pin(sleep(total)));
        Self { body, idle, idle_by: None, total_by }
    }

    /// An answer's body. It may go on for as long as it moves: a stream of events has no end.
    pub(crate) fn answer(body: Incoming, idle: Duration) -> Self {
        Self { body, idle, idle_by: None, total_by: None }
    }
}

impl Body for Timed {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let this = &mut *self;
        if let Some(total_by) = &mut this.total_by
            && total_by.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(BodyFault::TooSlow)));
        }
        loop {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Pending => break,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Some(Err(BodyFault::Cut))),
                Poll::Ready(Some(Ok(frame))) => {
                    this.idle_by = None;
                    // Trailers end here: they would pass by the header lists.
                    if frame.is_data() {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
            }
        }
        let idle = this.idle;
        match this.idle_by.get_or_insert_with(|| Box::pin(sleep(idle))).as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(BodyFault::Idle))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
