//! Refusals: problem details (RFC 9457) with a stable code.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use ichido::once::{RetryTransaction, TxError};
use ichido::prelude::{EnqueueError, StoreError};

/// How long to wait before a retry when the database cannot be used.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(5);

ichido_http::problems! {
    pub(crate) enum Code in "urn:bookmarks:problem:" {
        BodyInvalid = "body_invalid", BAD_REQUEST, "Bad Request";
        ParameterInvalid = "parameter_invalid", BAD_REQUEST, "Bad Request";
        UrlRefused = "url_refused", BAD_REQUEST, "Bad Request";
        SignedOut = "signed_out", UNAUTHORIZED, "Unauthorized";
        TokenWrong = "token_wrong", UNAUTHORIZED, "Unauthorized";
        HostNotAllowed = "host_not_allowed", FORBIDDEN, "Forbidden";
        OriginNotAllowed = "origin_not_allowed", FORBIDDEN, "Forbidden";
        PersonOther = "person_other", FORBIDDEN, "Forbidden";
        BookmarkUnknown = "bookmark_unknown", NOT_FOUND, "Not Found";
        PathUnknown = "path_unknown", NOT_FOUND, "Not Found";
        MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method Not Allowed";
        RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "Request Timeout";
        BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "Payload Too Large";
        MediaTypeUnsupported = "media_type_unsupported", UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type";
        SignInBusy = "sign_in_busy", TOO_MANY_REQUESTS, "Too Many Requests";
        Failed = "failed", INTERNAL_SERVER_ERROR, "Internal Server Error";
        NotReady = "not_ready", SERVICE_UNAVAILABLE, "Service Unavailable";
        Overloaded = "overloaded", SERVICE_UNAVAILABLE, "Service Unavailable";
        StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "Service Unavailable";
    }
}

impl Problem {
    pub(crate) fn signed_out() -> Self {
        let detail =
            "not signed in; send a token as `Authorization: Bearer …`, or sign in with POST /session";
        Self::new(Code::SignedOut, detail)
    }

    /// The bookmark does not exist or is another person's: the response does not say which.
    // SPEC C3.
    pub(crate) fn no_bookmark() -> Self {
        Self::new(Code::BookmarkUnknown, "you have no bookmark with this id")
    }

    pub(crate) fn too_large(max_bytes: usize) -> Self {
        let detail = format!("the body is longer than {max_bytes} bytes or was cut off");
        Self::new(Code::BodyTooLarge, detail)
    }

    fn unavailable(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "database operation failed");
        let detail = "the database is unavailable; retry the same request";
        Self::new(Code::StoreUnavailable, detail).after(STORE_RETRY_AFTER)
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        let mut problem = Self::unavailable(&error);
        if RetryTransaction::is_needed_for(&error) {
            problem.extensions.insert(RetryTransaction);
        }
        problem
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error.with_causes())
    }
}

impl From<EnqueueError> for Problem {
    fn from(error: EnqueueError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<TxError> for Problem {
    fn from(error: TxError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<getrandom::Error> for Problem {
    fn from(error: getrandom::Error) -> Self {
        tracing::error!(%error, "system random generator failed");
        Self::new(Code::Failed, "the server cannot generate a secret; try again later")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.response().map(Into::into)
    }
}
