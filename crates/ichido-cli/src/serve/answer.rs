//! Answers of the usual kinds.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

/// A value as JSON. It tells how things stand now, and is not to be kept by caches.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value)
        .unwrap_or_else(|_| unreachable!("what we answer has names for keys, and writes to memory"));
    with_type(status, "application/json", text)
}

/// A text of a media type.
pub(super) fn with_type(status: StatusCode, media_type: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
