//! Case 25: a client disconnects at any moment, and leaves no effect and a free key, or one effect and a stored outcome.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use ichido_core::ledger::RecordPhase;
use tower::ServiceExt as _;

use super::fixture::{MODES, Mode, OnceFixture, ProtectedService, both_databases, keyed};

/// More polls than any request here takes.
const MAX_POLLS: usize = 200;

/// Polls a future this often, and then drops it.
struct PollsAtMost<F> {
    future: Pin<Box<F>>,
    left: usize,
}

impl<F: Future> Future for PollsAtMost<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match self.future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// A body that makes its reader wait before each frame.
struct Halting {
    frames: VecDeque<&'static str>,
    halts: bool,
}

impl hyper::body::Body for Halting {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        self.halts = !self.halts;
        if self.halts {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let frame = self.frames.pop_front();
        Poll::Ready(frame.map(|text| Ok(hyper::body::Frame::data(Bytes::from_static(text.as_bytes())))))
    }
}

fn halting() -> Body {
    Body::new(Halting { frames: VecDeque::from(["10", " ", "EUR"]), halts: false })
}

/// A service whose handler pauses before and after its effect.
fn stopping(fixture: &OnceFixture, mode: Mode) -> ProtectedService {
    let handler = fixture.handler(|run| async move {
        tokio::task::yield_now().await;
        run.order().await;
        tokio::task::yield_now().await;
        run.created()
    });
    fixture.serve(fixture.once(mode), handler)
}

/// Drops a request at each of its await points in turn. Returns how many there were.
async fn drop_everywhere(fixture: &OnceFixture, mode: Mode, other_is_in_flight: bool) -> usize {
    let orders = stopping(fixture, mode);
    for polls in 0..MAX_POLLS {
        let key = format!("{mode:?}-{polls}-{other_is_in_flight}");
        let before = fixture.effects().await;
        let other = other_is_in_flight.then(|| keyed(&key).start(&orders));
        let request = keyed(&key).with(halting());
        let dropped = PollsAtMost { future: Box::pin(orders.clone().oneshot(request)), left: polls };
        let is_done = dropped.await.is_some();
        if let Some(other) = other {
            other.await.unwrap();
        }
        fixture.keeper.drained().await;
        let effects = fixture.effects().await - before;
        let phase = fixture.phase(&key).await;
        match (effects, phase) {
            (0, None) => assert!(!is_done && !other_is_in_flight, "{key}: an answer without an effect"),
            (1, Some(RecordPhase::Settled { .. })) => (),
            other => panic!("{key}, dropped after {polls} polls: {other:?}"),
        }
        // A retry gets the one outcome.
        let again = keyed(&key).send(&orders).await;
        assert_eq!((again.status(), again.is_replay()), (201, effects == 1), "{again:?}");
        fixture.assert_effects(before + 1).await;
        if is_done {
            return polls;
        }
    }
    panic!("a request took more than {MAX_POLLS} polls");
}

both_databases! {
    #[test]
    async fn case_25_a_request_dropped_at_any_await_leaves_nothing_or_everything(fixture: OnceFixture) {
        for mode in MODES {
            // The body alone has four.
            assert!(4 < drop_everywhere(&fixture, mode, false).await);
        }
    }

    #[test]
    async fn case_25_a_duplicate_dropped_at_any_await_takes_nothing_with_it(fixture: OnceFixture) {
        for mode in MODES {
            drop_everywhere(&fixture, mode, true).await;
        }
    }
}
