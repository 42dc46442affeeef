//! JSON bodies of operators' requests.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use ichido_core::digest::is_json;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::problem::{Code, Problem};
use super::request::{read_body, reject_encoded};
use crate::limits::MAX_JSON_BODY_BYTES;

/// An extractor for a JSON body.
pub(super) struct JsonBody<T>(pub(super) T);

/// A body of a known shape.
pub(super) trait BodyShape: DeserializeOwned {
    /// An example, shown in errors.
    const EXAMPLE: &'static str;

    /// Returns what an empty body means, if it may be empty.
    fn empty() -> Option<Self> {
        None
    }
}

impl<S: Send + Sync, T: BodyShape> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (head, body) = request.into_parts();
        read(&head.headers, body).await.map(Self)
    }
}

async fn read<T: BodyShape>(headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    let example = T::EXAMPLE;
    reject_encoded(headers)?;
    let body = read_body(headers, body, MAX_JSON_BODY_BYTES, None).await?;
    if body.is_empty() || body.trim_ascii() == b"null" {
        return T::empty().ok_or_else(|| {
            Problem::new(Code::BodyUnexpected, format!("the body is empty; nothing was done; send {example}"))
        });
    }
    let says_json = |line: &http::HeaderValue| line.to_str().is_ok_and(is_json);
    if !headers.get_all(CONTENT_TYPE).iter().all(says_json) {
        let detail = "the body must be JSON; send it with Content-Type: application/json";
        return Err(Problem::new(Code::MediaTypeUnsupported, detail));
    }
    // serde would accept the members of an array by position.
    if body.trim_ascii_start().starts_with(b"[") {
        let detail = format!("the body is an array; nothing was done; send {example}");
        return Err(Problem::new(Code::BodyUnexpected, detail));
    }
    // The error does not repeat the body, which may be long; its location is enough.
    serde_json::from_slice(&body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Data => Problem::new(
                Code::BodyUnexpected,
                format!(
                    "the body does not have the expected shape in line {line}, column {column}; nothing was done; send {example}"
                ),
            ),
            Category::Io | Category::Syntax | Category::Eof => Problem::new(
                Code::BodyInvalid,
                format!(
                    "the body is not valid JSON at line {line}, column {column}; nothing was done; send {example}"
                ),
            ),
        }
    })
}
