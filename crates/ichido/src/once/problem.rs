//! What the layer says when it does not run a request: problem details (RFC 9457) with a code that stays the same.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use ichido_core::key::KeyError;
use ichido_core::ledger::ProfileNumbers;
use ichido_http::problem::code_of_key;
use ichido_store::error::StoreError;

use super::body::Body;
use super::fields;

/// How long to wait before asking again for an action in flight. It can be over at any moment.
const IN_FLIGHT_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long to wait before asking again when the store cannot be reached.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long to wait when others are ahead.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

ichido_http::problems! {
    pub enum Code in "urn:ichido:problem:" {
        /// The operation needs a key, and there is none.
        KeyMissing = "key_missing", BAD_REQUEST, "The request needs an idempotency key";
        /// There is a key, and it is none that we take.
        KeyInvalid = "key_invalid", BAD_REQUEST, "The idempotency key is not valid";
        /// The body names another key than the header (SPEC D11).
        KeyDisagrees = "key_disagrees", UNPROCESSABLE_ENTITY, "Header and body name different idempotency keys";
        /// The key was used for a different request (SPEC A4).
        KeyConflict = "key_conflict", CONFLICT, "The idempotency key was used for a different request";
        /// The first request with this key is still running (SPEC C6).
        KeyInFlight = "key_in_flight", CONFLICT, "The request is still being processed";
        /// It began, and nobody knows what came of it (SPEC F2).
        OutcomeUnknown = "outcome_unknown", CONFLICT, "The outcome of the request is not known";
        /// It was done, and its response was too large to keep.
        ResponseNotKept = "response_not_kept", CONFLICT, "The request was done; its response was not kept";
        /// The store cannot be reached; nothing was run.
        StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The request cannot be accepted now";
        /// The store holds something under this key that it cannot read; nothing was run.
        RecordUnreadable = "record_unreadable", INTERNAL_SERVER_ERROR, "What is stored under the idempotency key cannot be read";
        /// The body is over the bound.
        BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
        /// The body broke off.
        BodyIncomplete = "body_incomplete", BAD_REQUEST, "The body is not complete";
        /// The body says that it is JSON, and has no clear meaning as JSON (SPEC C9).
        BodyInvalid = "body_invalid", BAD_REQUEST, "The body is not clear JSON";
        /// Nobody knows who asks.
        IdentityMissing = "identity_missing", FORBIDDEN, "The request does not say who asks";
        /// The handler ended without an answer.
        HandlerFailed = "handler_failed", INTERNAL_SERVER_ERROR, "The service failed";
        /// The handler kept its transaction, or answered though it had failed; nothing was done.
        TransactionFailed = "transaction_failed", INTERNAL_SERVER_ERROR, "The service's transaction failed";
        /// Others were ahead at every try; nothing was done.
        TransactionContended = "transaction_contended", SERVICE_UNAVAILABLE, "Others were ahead";
    }
}

impl Problem {
    /// What is wrong with the key that was sent, or that none was.
    pub fn of_key(error: KeyError) -> Self {
        let code = code_of_key(error, Code::KeyMissing, Code::KeyDisagrees, Code::KeyInvalid);
        Self::new(code, error.to_string())
    }

    pub(crate) fn conflict(numbers: ProfileNumbers) -> Self {
        let detail = "this idempotency key was used for a different request (another body, path, query, or \
                      compared claim or header); \
                      send a new action under a new key";
        Self::new(Code::KeyConflict, detail).under(status(numbers.mismatch_status))
    }

    pub(crate) fn in_flight(numbers: ProfileNumbers) -> Self {
        let detail = "the first request with this key is still running; send the same request again to get its outcome";
        Self::new(Code::KeyInFlight, detail)
            .under(status(numbers.in_flight_status))
            .after(IN_FLIGHT_RETRY_AFTER)
            .with_field(fields::STATUS_NAME, HeaderValue::from_static("processing"))
    }

    pub(crate) fn unknown(numbers: ProfileNumbers) -> Self {
        let detail = "an earlier request with this key began, and it is not known whether it took effect; \
                      it is not run again until that has been found out";
        Self::new(Code::OutcomeUnknown, detail).under(status(numbers.unknown_status))
    }

    pub(crate) fn not_kept(numbers: ProfileNumbers, first: u16) -> Self {
        let detail = format!(
            "the request was done and answered with status {first}; its response was too large to keep, so it cannot be sent again"
        );
        Self::new(Code::ResponseNotKept, detail).under(status(numbers.not_kept_status))
    }

    /// What the store said before anything was run.
    pub(crate) fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } => Self::new(
                Code::RecordUnreadable,
                "what is stored under this idempotency key cannot be read; nothing was run, and nothing will be under this key",
            ),
            _ => Self::unavailable(),
        }
    }

    pub(crate) fn unavailable() -> Self {
        let detail = "the store of idempotency keys cannot be used at the moment; nothing was run; send the same request again";
        Self::new(Code::StoreUnavailable, detail).after(STORE_RETRY_AFTER)
    }

    pub(crate) fn contended() -> Self {
        let detail =
            "the transaction met others at every try and was rolled back; send the same request again";
        Self::new(Code::TransactionContended, detail).after(BUSY_RETRY_AFTER)
    }

    /// The response.
    pub fn into_response<B: http_body::Body<Data = Bytes>>(self) -> Response<Body<B>> {
        self.response().map(|body| Body::whole(body, None))
    }
}

/// A profile's number; the profiles hold none that is not a status.
fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::CONFLICT)
}
