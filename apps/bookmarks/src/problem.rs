//! What is said to a request that is not done: problem details (RFC 9457) with a code that stays the same.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use ichido::once::{RunAgain, TxError};
use ichido_store::error::StoreError;
use serde_json::json;

use crate::settings::limits;

/// One refusal.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    retry_after_secs: Option<u64>,
    run_again: bool,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), retry_after_secs: None, run_again: false }
    }

    pub(crate) fn bad(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub(crate) fn after_secs(self, secs: u64) -> Self {
        Self { retry_after_secs: Some(secs), ..self }
    }

    pub(crate) fn signed_out() -> Self {
        let detail =
            "nobody is signed in: send a token as `Authorization: Bearer …`, or sign in by POST /session";
        Self::new(StatusCode::UNAUTHORIZED, "signed_out", detail)
    }

    /// There is none, or it is another's: nobody can tell which (SPEC C3).
    pub(crate) fn no_bookmark() -> Self {
        Self::new(StatusCode::NOT_FOUND, "bookmark_unknown", "you have no bookmark with this id")
    }

    pub(crate) fn too_large() -> Self {
        let detail =
            format!("the body is longer than {} bytes, or did not come whole", limits::BODY_BYTES_MAX);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    }

    fn unavailable(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "the database could not be used");
        let detail = "the database cannot be used at the moment; send the same request again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", detail).after_secs(5)
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        let run_again = RunAgain::is_called_for(&error);
        Self { run_again, ..Self::unavailable(&error) }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error.in_full())
    }
}

impl From<TxError> for Problem {
    fn from(error: TxError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<getrandom::Error> for Problem {
    fn from(error: getrandom::Error) -> Self {
        tracing::error!(%error, "the system gives no random numbers");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "the server cannot make secrets at the moment")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("urn:bookmarks:problem:{}", self.code),
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        });
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(secs) = self.retry_after_secs {
            headers.insert(RETRY_AFTER, HeaderValue::from(secs));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.run_again {
            response.extensions_mut().insert(RunAgain);
        }
        response
    }
}
