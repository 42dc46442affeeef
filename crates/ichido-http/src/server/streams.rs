//! The streams of an HTTP/2 connection, each with a write timeout.
//!
//! Guarantee: a stream whose client does not accept its response is reset and releases its permit, while the other
//! streams of the connection continue. hyper has no timeout for this, and the connection itself is not stalled: it
//! still carries pings and settings.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

tokio::task_local! {
    /// When the current stream last got a piece of its response to send. `None` while it waits for the response
    /// itself.
    static YIELDED_AT: Cell<Option<Instant>>;
}

/// Records whether a response body has yielded a piece that the client must read.
///
/// On HTTP/1.1 this has no effect, because there the write itself stalls.
pub(crate) fn body_yielded(has_yielded: bool) {
    // Outside of a stream there is nothing to record.
    YIELDED_AT.try_with(|since| since.set(has_yielded.then(Instant::now))).ok();
}

/// Runs each stream as its own task until it ends or stalls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    /// How long a client may not read.
    pub(crate) max_stall: Duration,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(YIELDED_AT.scope(Cell::new(None), reset_if_stalled(stream, self.max_stall)));
    }
}

/// Drops a stream that stalls, which resets it.
async fn reset_if_stalled(stream: impl Future, max_stall: Duration) {
    let mut stream = pin!(stream);
    let mut clock: Option<(Instant, Pin<Box<Sleep>>)> = None;
    poll_fn(|cx| {
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let Some(since) = YIELDED_AT.with(Cell::get) else {
            clock = None;
            return Poll::Pending;
        };
        if clock.as_ref().is_none_or(|(begun, _)| *begun != since) {
            clock = Some((since, Box::pin(sleep_until(since + max_stall))));
        }
        let stalled = clock.as_mut().is_some_and(|(_, sleep)| sleep.as_mut().poll(cx).is_ready());
        if !stalled {
            return Poll::Pending;
        }
        tracing::debug!("reset stream: client stopped reading the response");
        Poll::Ready(())
    })
    .await;
}
