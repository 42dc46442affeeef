//! A request body that counts against the memory for bodies.
//!
//! Guarantee: no byte of the body is passed on before there is memory for it. A body with a declared length gets its
//! whole permit at once, so a body that has started can finish. Any other body gets its permit as data arrives.

use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use ichido_core::sync::lock;

use super::body::BodyError;
use super::permits::Permit;

/// The memory permit of one body.
///
/// It travels with the request and is released when its last copy is dropped.
pub struct BodyPermit<K: Eq + Hash> {
    permit: Mutex<Permit<K>>,
    fault: OnceLock<BodyError>,
}

impl<K: Eq + Hash> BodyPermit<K> {
    /// Shares a permit between a body and its request.
    pub fn new(permit: Permit<K>) -> Arc<Self> {
        Arc::new(Self { permit: Mutex::new(permit), fault: OnceLock::new() })
    }

    /// Returns the error that stopped the body, which its reader may not report.
    pub fn fault(&self) -> Option<BodyError> {
        self.fault.get().copied()
    }

    fn grow(&self, bytes: u64) -> Result<(), BodyError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let grown = lock(&self.permit).try_grow(bytes);
        grown.map_err(|full| self.failed(BodyError::NoMemory(full)))
    }

    fn failed(&self, fault: BodyError) -> BodyError {
        *self.fault.get_or_init(|| fault)
    }
}

/// A body that acquires its memory permit before it is read.
pub struct MeteredBody<B, K: Eq + Hash> {
    body: B,
    permit: Arc<BodyPermit<K>>,
    /// Permitted bytes that have not arrived yet; `None` before the first poll.
    ahead: Option<u64>,
}

impl<B, K: Eq + Hash> MeteredBody<B, K> {
    /// Counts a body against a permit.
    pub fn new(body: B, permit: Arc<BodyPermit<K>>) -> Self {
        Self { body, permit, ahead: None }
    }
}

impl<B, K> Body for MeteredBody<B, K>
where
    B: Body<Data = Bytes, Error = BodyError> + Unpin,
    K: Eq + Hash,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let ahead = if let Some(ahead) = this.ahead {
            ahead
        } else {
            let declared = this.body.size_hint().exact().unwrap_or_default();
            if let Err(fault) = this.permit.grow(declared) {
                return Poll::Ready(Some(Err(fault)));
            }
            *this.ahead.insert(declared)
        };
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(fault)) => return Poll::Ready(Some(Err(this.permit.failed(fault)))),
            None => return Poll::Ready(None),
        };
        let received = frame.data_ref().map_or(0, |data| data.len() as u64);
        this.ahead = Some(ahead.saturating_sub(received));
        let grown = this.permit.grow(received.saturating_sub(ahead));
        Poll::Ready(Some(grown.map(|()| frame)))
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
    use std::collections::VecDeque;

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::server::permits::{Full, Permits};

    /// A body with frames of these lengths.
    struct Frames {
        lengths: VecDeque<usize>,
        says_its_length: bool,
    }

    impl Body for Frames {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            Poll::Ready(self.lengths.pop_front().map(|length| Ok(Frame::data(Bytes::from(vec![0; length])))))
        }

        fn size_hint(&self) -> SizeHint {
            let length = self.lengths.iter().sum::<usize>() as u64;
            if self.says_its_length { SizeHint::with_exact(length) } else { SizeHint::new() }
        }
    }

    fn frames(lengths: &[usize], says_its_length: bool) -> Frames {
        Frames { lengths: lengths.iter().copied().collect(), says_its_length }
    }

    #[tokio::test]
    async fn body_with_a_length_reserves_all_memory_before_reading() {
        let permits = Permits::new(100, 60);
        let permit = BodyPermit::new(permits.empty(Some(1)));
        let mut body = MeteredBody::new(frames(&[1, 49], true), Arc::clone(&permit));
        assert!(body.frame().await.expect("a frame").is_ok());
        let other = BodyPermit::new(permits.empty(Some(1)));
        let mut refused = MeteredBody::new(frames(&[1, 10], true), Arc::clone(&other));
        assert_eq!(refused.frame().await.expect("an end").err(), Some(BodyError::NoMemory(Full::Own)));
        assert_eq!((permit.fault(), other.fault()), (None, Some(BodyError::NoMemory(Full::Own))));
        assert!(body.frame().await.expect("a frame").is_ok(), "what was begun ends");
        drop((body, refused));
        assert_eq!(permits.empty(Some(2)).try_grow(51), Err(Full::All), "the permit goes with the request");
        drop((permit, other));
        assert_eq!(permits.empty(Some(2)).try_grow(60), Ok(()));
    }

    #[tokio::test]
    async fn body_without_a_length_reserves_memory_as_it_arrives() {
        let permits = Permits::new(100, 60);
        let permit = BodyPermit::new(permits.empty(Some(1)));
        let mut body = MeteredBody::new(frames(&[30, 30, 1], false), Arc::clone(&permit));
        assert!(body.frame().await.expect("a frame").is_ok());
        assert!(body.frame().await.expect("a frame").is_ok());
        assert_eq!(body.frame().await.expect("an end").err(), Some(BodyError::NoMemory(Full::Own)));
    }
}
