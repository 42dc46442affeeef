//! Bodies: streamed, buffered, or buffered at the start and then streamed.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};

/// The body of a request or response that passed the layer.
///
/// It yields the buffered part first, then the rest.
pub struct Body<B: http_body::Body> {
    front: VecDeque<Frame<Bytes>>,
    error: Option<B::Error>,
    rest: Option<Pin<Box<B>>>,
}

// Nothing in it is structurally pinned: the rest is boxed.
impl<B: http_body::Body> Unpin for Body<B> {}

impl<B: http_body::Body<Data = Bytes>> Body<B> {
    /// A body that is passed through unread.
    pub(crate) fn pass_through(rest: B) -> Self {
        Self { front: VecDeque::new(), error: None, rest: Some(Box::pin(rest)) }
    }

    /// A body that is fully buffered.
    pub(crate) fn buffered(bytes: Bytes, trailers: Option<HeaderMap>) -> Self {
        let data = (!bytes.is_empty()).then(|| Frame::data(bytes));
        let front = data.into_iter().chain(trailers.map(Frame::trailers)).collect();
        Self { front, error: None, rest: None }
    }

    /// A body whose start was already read.
    pub(crate) fn resumed(front: VecDeque<Frame<Bytes>>, rest: Pin<Box<B>>) -> Self {
        Self { front, error: None, rest: Some(rest) }
    }

    /// A body that failed after its start was read.
    pub(crate) fn failed(front: VecDeque<Frame<Bytes>>, error: B::Error) -> Self {
        Self { front, error: Some(error), rest: None }
    }
}

impl<B: http_body::Body<Data = Bytes>> http_body::Body for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(frame) = self.front.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        self.rest.as_mut().map_or(Poll::Ready(None), |rest| rest.as_mut().poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.front.is_empty()
            && self.error.is_none()
            && self.rest.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.front.iter().filter_map(Frame::data_ref).map(Bytes::len).sum::<usize>() as u64;
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let (Some(upper), None) = (rest.upper(), &self.error) {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}

/// Keeps payloads out of logs.
impl<B: http_body::Body> std::fmt::Debug for Body<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("frames_read", &self.front.len()).finish_non_exhaustive()
    }
}
