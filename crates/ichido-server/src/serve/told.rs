//! What is told in the body of an action: small JSON of a known shape.

use axum::body::Body;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use ichido_core::digest::is_json;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::problem::{Code, Problem};
use super::request::{not_encoded, whole};
use crate::limits::TOLD_BYTES_MAX;

/// A body that must be there. `shape` is what is said of one that does not fit.
pub(super) async fn told<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    shape: &str,
) -> Result<T, Problem> {
    let told = perhaps_told(headers, body, shape).await?;
    told.ok_or_else(|| {
        Problem::new(Code::BodyUnexpected, format!("the body is empty; nothing was done; send {shape}"))
    })
}

/// A body that may be left out.
pub(super) async fn perhaps_told<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    shape: &str,
) -> Result<Option<T>, Problem> {
    not_encoded(headers)?;
    let body = whole(headers, body, TOLD_BYTES_MAX, None).await?;
    if body.is_empty() {
        return Ok(None);
    }
    let says_json = |line: &http::HeaderValue| line.to_str().is_ok_and(is_json);
    if !headers.get_all(CONTENT_TYPE).iter().all(says_json) {
        let detail = "the body is read as JSON here; send it as application/json";
        return Err(Problem::new(Code::MediaTypeUnsupported, detail));
    }
    // serde would take members by their order.
    if body.trim_ascii_start().starts_with(b"[") {
        let detail = format!("the body is an array; nothing was done; send {shape}");
        return Err(Problem::new(Code::BodyUnexpected, detail));
    }
    // What it says is not repeated: it may be long, and its place says as much.
    serde_json::from_slice(&body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Data => Problem::new(
                Code::BodyUnexpected,
                format!(
                    "the body does not fit in line {line}, column {column}; nothing was done; send {shape}"
                ),
            ),
            Category::Io | Category::Syntax | Category::Eof => Problem::new(
                Code::BodyInvalid,
                format!(
                    "the body is no JSON from line {line}, column {column} on; nothing was done; send {shape}"
                ),
            ),
        }
    })
}
