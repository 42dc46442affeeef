//! Problem details (RFC 9457) for requests that the layer does not run, with stable codes.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use ichido_core::key::KeyError;
use ichido_core::ledger::ProfileNumbers;
use ichido_http::problem::code_of_key;
use ichido_store::error::StoreError;

use super::body::Body;
use super::fields;

/// The retry delay for an action in flight, which can end at any moment.
const IN_FLIGHT_RETRY_AFTER: Duration = Duration::from_secs(1);
/// The retry delay while the store is unreachable.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(5);
/// The retry delay under contention.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

ichido_http::problems! {
    pub enum Code in "urn:ichido:problem:" {
        /// The operation requires a key, and there is none.
        KeyMissing = "key_missing", BAD_REQUEST, "The request needs an idempotency key";
        /// The key is not valid.
        KeyInvalid = "key_invalid", BAD_REQUEST, "The idempotency key is not valid";
        /// The body names a different key than the header.
        // Spec: D11.
        KeyMismatch = "key_mismatch", UNPROCESSABLE_ENTITY, "Header and body name different idempotency keys";
        /// The key was used for a different request.
        // Spec: A4.
        KeyConflict = "key_conflict", CONFLICT, "The idempotency key was used for a different request";
        /// The first request with this key is still running.
        // Spec: C6.
        KeyInFlight = "key_in_flight", CONFLICT, "The request is still being processed";
        /// It started, and its outcome is unknown.
        // Spec: F2.
        OutcomeUnknown = "outcome_unknown", CONFLICT, "The outcome of the request is unknown";
        /// It has ended, and its response was too large to store, or lost.
        ResponseNotStored = "response_not_stored", CONFLICT, "The request has ended, but its response is not stored";
        /// A person gave up on the request, whose outcome was unknown.
        DecidedRefused = "decided_refused", BAD_REQUEST, "A person gave up on the request";
        /// The store is unreachable; nothing was run.
        StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The store is unavailable";
        /// The record under this key cannot be read; nothing was run.
        RecordUnreadable = "record_unreadable", INTERNAL_SERVER_ERROR, "The stored data cannot be read";
        /// The body is too large.
        BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
        /// The body is incomplete.
        BodyIncomplete = "body_incomplete", BAD_REQUEST, "The body is not complete";
        /// The body claims to be JSON and is not valid.
        // Spec: C9.
        BodyInvalid = "body_invalid", BAD_REQUEST, "The body is not valid JSON";
        /// The identity is missing.
        IdentityMissing = "identity_missing", FORBIDDEN, "The request has no valid identity";
        /// The handler ended without a response.
        HandlerFailed = "handler_failed", INTERNAL_SERVER_ERROR, "The service failed";
        /// The handler kept its transaction, or responded after it had failed; nothing was done.
        TransactionFailed = "transaction_failed", INTERNAL_SERVER_ERROR, "The service's transaction failed";
        /// Other transactions conflicted with every run; nothing was done.
        TransactionContended = "transaction_contended", SERVICE_UNAVAILABLE, "The transaction conflicted with others";
    }
}

impl Problem {
    /// Describes what is wrong with the key, or that it is missing.
    pub fn of_key(error: KeyError) -> Self {
        let code = code_of_key(error, Code::KeyMissing, Code::KeyMismatch, Code::KeyInvalid);
        Self::new(code, error.to_string())
    }

    pub(crate) fn conflict(numbers: ProfileNumbers) -> Self {
        let detail = "this idempotency key was used for a different request (its body, path, query, or \
                      a compared claim or header differs); \
                      use a new key for a new request";
        Self::new(Code::KeyConflict, detail).under(status(numbers.mismatch_status))
    }

    pub(crate) fn in_flight(numbers: ProfileNumbers) -> Self {
        let detail = "the first request with this key is still running; send the same request again to get its outcome";
        Self::new(Code::KeyInFlight, detail)
            .under(status(numbers.in_flight_status))
            .after(IN_FLIGHT_RETRY_AFTER)
            .with_field(fields::STATUS_NAME, fields::PROCESSING)
    }

    pub(crate) fn unknown(numbers: ProfileNumbers) -> Self {
        let detail = "an earlier request with this key started, and it is unknown whether it took effect; \
                      it is not run again until its outcome is known";
        Self::new(Code::OutcomeUnknown, detail)
            .under(status(numbers.unknown_status))
            .with_field(fields::STATUS_NAME, fields::UNKNOWN)
    }

    pub(crate) fn not_stored(numbers: ProfileNumbers, first: u16) -> Self {
        let detail = format!(
            "the request ended with status {first} and is not run again; its response was too large to store, \
                or was lost"
        );
        Self::new(Code::ResponseNotStored, detail).under(status(numbers.not_kept_status))
    }

    /// Describes a store error that occurred before anything was run.
    pub(crate) fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } => Self::new(
                Code::RecordUnreadable,
                "the record of this idempotency key cannot be read; nothing was run, and nothing will be under \
                    this key",
            ),
            _ => Self::unavailable(),
        }
    }

    pub(crate) fn unavailable() -> Self {
        let detail = "the store of idempotency keys is unavailable at the moment; nothing was run; \
                      send the same request again";
        Self::new(Code::StoreUnavailable, detail).after(STORE_RETRY_AFTER)
    }

    pub(crate) fn contended() -> Self {
        let detail = "the transaction conflicted with others on every attempt and was rolled back; \
                      send the same request again";
        Self::new(Code::TransactionContended, detail).after(BUSY_RETRY_AFTER)
    }

    /// Returns the response.
    pub fn into_response<B: http_body::Body<Data = Bytes>>(self) -> Response<Body<B>> {
        self.response().map(|body| Body::buffered(body, None))
    }
}

/// Converts a profile's status number; the profiles contain only valid ones.
fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::CONFLICT)
}
