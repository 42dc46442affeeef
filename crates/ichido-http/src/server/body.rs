//! Request and response bodies with timeouts.
//!
//! Guarantee: a body that stalls, is too slow or takes too long fails with a [`BodyError`] instead of holding its
//! connection.

use std::error::Error;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::limits::{BODY_GRACE, MIN_BODY_RATE};
use super::permits::Full;

/// Any error of a body.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a response to a client.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Why a body was not received completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// No data arrived within the idle timeout.
    #[error("the body made no progress for too long")]
    Idle,
    /// The body exceeded its total timeout or was below the minimum rate.
    #[error("the body took too long")]
    TooSlow,
    /// Request bodies use all the memory they may.
    #[error("no memory is left for the body")]
    NoMemory(Full),
    /// The connection broke, or the framing is invalid.
    #[error("the body was cut short")]
    Cut,
}

/// The longest total wait for a body of which `received` bytes have arrived.
fn max_wait(received: u64) -> Duration {
    BODY_GRACE + Duration::from_millis(received.saturating_mul(1_000) / MIN_BODY_RATE)
}

/// A body from the network with timeouts.
pub struct Timed<B = Incoming> {
    body: B,
    idle: Duration,
    total_timeout: Option<Pin<Box<Sleep>>>,
    /// The progress of a request body. A response body has no minimum rate.
    progress: Option<BodyProgress>,
    /// Set only while a caller waits for a frame.
    ///
    /// A slow reader is not the sender's fault.
    waiting: Option<FrameWait>,
}

#[derive(Default)]
struct BodyProgress {
    received: u64,
    waited: Duration,
}

struct FrameWait {
    since: Instant,
    until: Pin<Box<Sleep>>,
    /// The error when the wait expires.
    fault: BodyError,
}

impl<B: Body> Timed<B> {
    /// Wraps a request body with idle and total timeouts and a minimum rate.
    pub fn request(body: B, idle: Duration, total: Duration) -> Self {
        let total_timeout = (!body.is_end_stream()).then(|| Box::pin(sleep(total)));
        Self { body, idle, total_timeout, progress: Some(BodyProgress::default()), waiting: None }
    }

    /// Wraps a response body with an idle timeout only: an event stream has no end.
    pub fn response(body: B, idle: Duration) -> Self {
        Self { body, idle, total_timeout: None, progress: None, waiting: None }
    }

    /// Starts to wait for the next frame.
    fn wait(&self) -> FrameWait {
        let since = Instant::now();
        let left = self
            .progress
            .as_ref()
            .map(|progress| max_wait(progress.received).saturating_sub(progress.waited));
        let (time, fault) = match left {
            Some(left) if left < self.idle => (left, BodyError::TooSlow),
            _ => (self.idle, BodyError::Idle),
        };
        FrameWait { since, until: Box::pin(sleep_until(since + time)), fault }
    }

    /// Counts a received frame.
    fn count(&mut self, frame: &Frame<Bytes>) {
        let waited = self.waiting.take().map(|waiting| waiting.since.elapsed());
        if let Some(progress) = &mut self.progress {
            progress.waited += waited.unwrap_or_default();
            progress.received += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Timed<B> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some(total_timeout) = &mut this.total_timeout
            && total_timeout.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(BodyError::TooSlow)));
        }
        loop {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Pending => break,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Some(Err(BodyError::Cut))),
                Poll::Ready(Some(Ok(frame))) => {
                    this.count(&frame);
                    // Drop trailers: they would bypass the header filters.
                    if frame.is_data() {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
            }
        }
        if this.waiting.is_none() {
            this.waiting = Some(this.wait());
        }
        let Some(waiting) = &mut this.waiting else { return Poll::Pending };
        let fault = waiting.fault;
        waiting.until.as_mut().poll(cx).map(|()| Some(Err(fault)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    /// A body that a test feeds through a channel.
    struct ChannelBody(UnboundedReceiver<Bytes>);

    impl Body for ChannelBody {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    fn timed(idle: Duration, total: Duration) -> (UnboundedSender<Bytes>, Timed<ChannelBody>) {
        let (sender, receiver) = unbounded_channel();
        (sender, Timed::request(ChannelBody(receiver), idle, total))
    }

    const HOUR: Duration = Duration::from_hours(1);
    const SECOND: Duration = Duration::from_secs(1);

    /// Sends `bytes` each second for `seconds`. Returns how the body ended, and when.
    async fn trickled(bytes: usize, seconds: u32) -> (Result<usize, BodyError>, Duration) {
        let (sender, body) = timed(2 * SECOND, HOUR);
        let began = Instant::now();
        tokio::spawn(async move {
            for _ in 0..seconds {
                sleep(SECOND).await;
                // After the cut nobody receives it.
                drop(sender.send(Bytes::from(vec![0; bytes])));
            }
        });
        let collected = body.collect().await;
        (collected.map(|collected| collected.to_bytes().len()), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn slow_body_is_cut_after_its_grace_period() {
        let (ended, after) = trickled(1, 3_600).await;
        assert_eq!(ended, Err(BodyError::TooSlow));
        assert!(BODY_GRACE <= after && after < BODY_GRACE + SECOND, "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn body_at_the_minimum_rate_completes() {
        let rate = usize::try_from(MIN_BODY_RATE).expect("a small number");
        assert_eq!(trickled(rate, 600).await.0, Ok(600 * rate));
        assert!(trickled(rate - 64, 600).await.0.is_err(), "an eighth less is too slow in the end");
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_body_is_cut_by_the_idle_timeout() {
        let (sender, mut body) = timed(2 * SECOND, HOUR);
        sender.send(Bytes::from_static(b"abc")).expect("it is read");
        assert!(body.frame().await.expect("a frame").is_ok());
        let began = Instant::now();
        assert_eq!(body.frame().await.expect("an end").err(), Some(BodyError::Idle));
        assert_eq!(began.elapsed(), 2 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_not_the_senders_fault() {
        let (sender, mut body) = timed(2 * SECOND, HOUR);
        for _ in 0..100 {
            sender.send(Bytes::from_static(b"a")).expect("it is read");
            sleep(SECOND).await;
            assert!(body.frame().await.expect("a frame").is_ok());
        }
        drop(sender);
        assert!(body.frame().await.is_none());
    }
}
