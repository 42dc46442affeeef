//! Bodies that stream through the proxy and are never stored whole.
//!
//! Guarantee: `UploadProgress` reports when an upload was sent completely, and what went wrong with it.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;

use ichido_http::server::body::{BodyError, Timed};

/// A body for the upstream: buffered bytes, followed by the rest of the stream.
pub(crate) struct Upload {
    at_hand: Bytes,
    rest: Option<Timed>,
}

impl Upload {
    /// Creates an upload from a complete body.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { at_hand: bytes, rest: None }
    }

    /// Creates an upload from the start of a body and the rest of its stream.
    pub(crate) fn streamed(at_hand: Bytes, rest: Timed) -> Self {
        Self { at_hand, rest: Some(rest) }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
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

/// An upload whose progress can be observed.
pub(crate) struct TrackedUpload {
    upload: Upload,
    sent: watch::Sender<bool>,
    fault: Arc<OnceLock<BodyError>>,
}

/// The progress of an upload.
pub(crate) struct UploadProgress {
    sent: watch::Receiver<bool>,
    fault: Arc<OnceLock<BodyError>>,
}

impl TrackedUpload {
    pub(crate) fn new(upload: Upload) -> (Self, UploadProgress) {
        let (sender, receiver) = watch::channel(upload.is_end_stream());
        let fault = Arc::new(OnceLock::new());
        (Self { upload, sent: sender, fault: Arc::clone(&fault) }, UploadProgress { sent: receiver, fault })
    }
}

impl UploadProgress {
    /// Returns the error on the client's side of the upload, if there was one.
    pub(crate) fn fault(&self) -> Option<BodyError> {
        self.fault.get().copied()
    }

    /// Waits until the last byte was taken or the upload was dropped.
    pub(crate) async fn sent(&self) {
        // An error means that it was dropped, which also ends the wait.
        drop(self.sent.clone().wait_for(|sent| *sent).await);
    }
}

impl Body for TrackedUpload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.upload).poll_frame(cx);
        let is_over = self.upload.is_end_stream() || matches!(polled, Poll::Ready(None));
        if let Poll::Ready(Some(Err(fault))) = &polled {
            self.fault.get_or_init(|| *fault);
        }
        if is_over && !*self.sent.borrow() {
            self.sent.send_replace(true);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.upload.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.upload.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn progress_shows_when_an_upload_was_sent() {
        let (body, progress) = TrackedUpload::new(Upload::whole(Bytes::from_static(b"abc")));
        assert_eq!(body.size_hint().exact(), Some(3));
        assert!(tokio::time::timeout(std::time::Duration::ZERO, progress.sent()).await.is_err());
        assert_eq!(body.collect().await.expect("whole").to_bytes(), "abc");
        progress.sent().await;
        assert_eq!(progress.fault(), None);
    }

    #[tokio::test]
    async fn empty_or_dropped_upload_is_not_awaited() {
        let (empty, progress) = TrackedUpload::new(Upload::whole(Bytes::new()));
        assert!(empty.is_end_stream());
        progress.sent().await;
        let (dropped, progress) = TrackedUpload::new(Upload::whole(Bytes::from_static(b"abc")));
        drop(dropped);
        progress.sent().await;
    }
}
