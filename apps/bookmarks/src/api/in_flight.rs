//! The response while the first request with the same key is still running.
// SPEC A12, C6.

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use ichido::once;
use serde_json::json;

use crate::bookmark::{LlmStatus, State};

/// Says `saving` in the members of a bookmark, because there is no bookmark to return yet.
///
/// The layer's headers stay. The body alone is enough to know that the same request has to be sent again: a shortcut on an
/// iPhone reads neither a status nor a header.
pub(super) async fn show_saving(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if response.status() != StatusCode::ACCEPTED || !response.headers().contains_key(once::STATUS) {
        return response;
    }
    let body = json!({
        "status": State::Saving,
        "llm_status": LlmStatus::Waiting,
        "error_message": null,
        "can_retry": false,
        "state": State::Saving,
        "errorMessage": null,
        "canRetry": false,
        "code": "key_in_flight",
    });
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(body.to_string()))
}
