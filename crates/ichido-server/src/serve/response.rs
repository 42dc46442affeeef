//! Common responses.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use http_body::{Frame, SizeHint};
use ichido_http::server::permits::Permit;
use serde::Serialize;
use uuid::Uuid;

use crate::limits::MAX_PIECE_BYTES;

/// Returns a value as JSON. It is a snapshot, which caches must not store.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).unwrap_or_else(|_| {
        unreachable!("response bodies have string keys, and writing to memory does not fail")
    });
    with_type(status, "application/json", text)
}

/// Returns a text of a media type.
pub(super) fn with_type(status: StatusCode, media_type: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A large body that holds the permit for its memory while it is sent.
///
/// It is released when the client has read almost all of the body.
pub(super) struct PermittedBody {
    rest: Bytes,
    _permit: Permit<Uuid>,
}

impl PermittedBody {
    pub(super) fn body(bytes: Vec<u8>, permit: Permit<Uuid>) -> Body {
        Body::new(Self { rest: bytes.into(), _permit: permit })
    }
}

impl http_body::Body for PermittedBody {
    type Data = Bytes;
    type Error = Infallible;

    /// Returns the body in pieces.
    ///
    /// In one piece the connection would own all of it, and nobody could tell how long that takes memory.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(MAX_PIECE_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use ichido_http::server::permits::{Full, Permits};

    #[tokio::test]
    async fn a_large_body_keeps_its_permit_while_it_is_sent() {
        let permits = Permits::new(1, 1);
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(2 * MAX_PIECE_BYTES + 1).collect();
        let mut body = PermittedBody::body(bytes.clone(), permits.try_take(None).expect("a permit"));
        assert_eq!(http_body::Body::size_hint(&body).exact(), Some(bytes.len() as u64));
        let first =
            body.frame().await.expect("a piece").expect("it does not fail").into_data().expect("data");
        assert_eq!(first.len(), MAX_PIECE_BYTES);
        assert_eq!(permits.try_take(None).err(), Some(Full::All));
        let rest = body.collect().await.expect("it does not fail").to_bytes();
        assert_eq!([first, rest].concat(), bytes);
        assert!(permits.try_take(None).is_ok());
    }
}
