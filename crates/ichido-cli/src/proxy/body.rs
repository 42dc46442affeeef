//! Bodies on their way through: never kept whole.
//!
//! Guarantee: a body lent to the HTTP client can be had back exactly as long as nothing was taken from it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;

use crate::listen::body::{BodyFault, Timed};

/// What is sent upstream: bytes at hand, and then whatever still streams in.
pub(crate) struct Upload {
    at_hand: Bytes,
    rest: Option<Timed>,
}

impl Upload {
    /// A body that is all here.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { at_hand: bytes, rest: None }
    }

    /// A body of which the beginning is here.
    pub(crate) fn streamed(at_hand: Bytes, rest: Timed) -> Self {
        Self { at_hand, rest: Some(rest) }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        if !self.at_hand.is_empty() {
            let bytes = std::mem::take(&mut self.at_hand);
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.at_hand.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let at_hand = u64::try_from(self.at_hand.len()).unwrap_or(u64::MAX);
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(at_hand));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(at_hand)) {
            hint.set_upper(upper);
        }
        hint
    }
}

/// What the HTTP client is given of an upload.
pub(crate) struct Lent {
    loan: Arc<Loan>,
    sent: watch::Sender<bool>,
}

/// The lender's side.
pub(crate) struct Lender {
    loan: Arc<Loan>,
    sent: watch::Receiver<bool>,
}

struct Loan(Mutex<LoanState>);

struct LoanState {
    upload: Option<Upload>,
    is_touched: bool,
    fault: Option<BodyFault>,
}

/// Lends an upload for one call.
pub(crate) fn lend(upload: Upload) -> (Lender, Lent) {
    let (sender, receiver) = watch::channel(upload.is_end_stream());
    let state = LoanState { upload: Some(upload), is_touched: false, fault: None };
    let loan = Arc::new(Loan(Mutex::new(state)));
    (Lender { loan: Arc::clone(&loan), sent: receiver }, Lent { loan, sent: sender })
}

impl Loan {
    fn state(&self) -> std::sync::MutexGuard<'_, LoanState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lender {
    /// The upload, if nothing was taken from it. After this the client finds it cut short.
    pub(crate) fn take_back(&self) -> Option<Upload> {
        let mut state = self.loan.state();
        if state.is_touched { None } else { state.upload.take() }
    }

    /// What went wrong with the upload on the client's side of us, if anything did.
    pub(crate) fn fault(&self) -> Option<BodyFault> {
        self.loan.state().fault
    }

    /// Waits until the last byte was taken, or the borrower gave up.
    pub(crate) async fn sent(&mut self) {
        // An error means that the borrower is gone, which ends the wait as well.
        drop(self.sent.wait_for(|sent| *sent).await);
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let mut state = self.loan.state();
        state.is_touched = true;
        let Some(upload) = &mut state.upload else {
            return Poll::Ready(Some(Err(BodyFault::Cut)));
        };
        let polled = Pin::new(&mut *upload).poll_frame(cx);
        let is_over = upload.is_end_stream() || matches!(polled, Poll::Ready(None));
        if let Poll::Ready(Some(Err(fault))) = &polled {
            state.fault = Some(*fault);
        }
        if is_over && !*self.sent.borrow() {
            self.sent.send_replace(true);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.loan.state().upload.as_ref().is_some_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.loan.state().upload.as_ref().map_or_else(SizeHint::new, Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn an_upload_can_be_had_back_until_something_was_taken_from_it() {
        let (lender, lent) = lend(Upload::whole(Bytes::from_static(b"abc")));
        assert_eq!(lent.size_hint().exact(), Some(3));
        drop(lent);
        let back = lender.take_back().expect("nothing was taken");
        let (mut lender, lent) = lend(back);
        assert_eq!(lent.collect().await.expect("whole").to_bytes(), "abc");
        lender.sent().await;
        assert!(lender.take_back().is_none(), "it is on the wire");
        assert_eq!(lender.fault(), None);
    }

    #[tokio::test]
    async fn an_upload_that_was_had_back_is_cut_short_for_the_borrower() {
        let (lender, lent) = lend(Upload::whole(Bytes::from_static(b"abc")));
        assert!(lender.take_back().is_some());
        assert_eq!(lent.collect().await.err(), Some(BodyFault::Cut));
        let (mut lender, lent) = lend(Upload::whole(Bytes::new()));
        assert!(lent.is_end_stream());
        lender.sent().await;
    }
}
