//! Refusals of the API as problem details (RFC 9457), each with a stable code.
//!
//! Guarantee: every code has one status, one title and one page, which `type` refers to. A problem says what is wrong, where, and how
//! to fix it, and repeats no key, secret or body.

use std::fmt;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use ichido_core::key::KeyError;
use ichido_core::settings::size;
use ichido_http::problem::code_of_key;
use ichido_http::server::body::BodyError;
use ichido_http::server::limits::{BODIES_RETRY_AFTER, MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE};
use ichido_http::server::permits::Full;
use ichido_store::error::StoreError;
use serde_json::json;

use super::models::href;
use crate::accept::SubmissionError;

/// When to retry if a person has to act first.
const PERSON_RETRY_AFTER: Duration = Duration::from_secs(30);
/// When to retry if the store is unreachable.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// When to retry if no connection is free: requests end all the time.
const OVERLOADED_RETRY_AFTER: Duration = Duration::from_secs(1);

ichido_http::problems! {
    pub(crate) enum Code in "/errors/" {
        /// A message needs an idempotency key, and there is none.
        KeyMissing = "key_missing", BAD_REQUEST, "The request needs an idempotency key";
        /// The idempotency key is invalid.
        KeyInvalid = "key_invalid", BAD_REQUEST, "The idempotency key is not valid";
        /// The body names a different key than the header.
        KeyMismatch = "key_mismatch", UNPROCESSABLE_ENTITY, "Header and body name different idempotency keys";
        /// The key was used for a different request.
        KeyConflict = "key_conflict", CONFLICT, "The idempotency key was used for a different request";
        /// The body claims to be JSON, but is invalid or ambiguous.
        BodyInvalid = "body_invalid", BAD_REQUEST, "The body is not valid JSON";
        /// The body is JSON of another shape than this operation takes.
        BodyUnexpected = "body_unexpected", UNPROCESSABLE_ENTITY, "The body does not have the expected shape";
        /// The body violates the queue's schema.
        SchemaMismatch = "schema_mismatch", UNPROCESSABLE_ENTITY, "The body does not match the queue's schema";
        /// The body exceeds its limit.
        BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
        /// The body was cut off.
        BodyIncomplete = "body_incomplete", BAD_REQUEST, "The body is not complete";
        /// The body did not arrive in time.
        BodyTimeout = "body_timeout", REQUEST_TIMEOUT, "The body did not arrive in time";
        /// The content type is missing, invalid or not supported here.
        MediaTypeUnsupported = "media_type_unsupported", UNSUPPORTED_MEDIA_TYPE, "The content type is not supported";
        /// The identity is invalid.
        IdentityInvalid = "identity_invalid", BAD_REQUEST, "The identity is not valid";
        /// The message repeatedly left the queue that it is sent to.
        LoopDetected = "loop_detected", UNPROCESSABLE_ENTITY, "Message loop detected";
        /// A parameter of the query is unknown or has an invalid value.
        ParameterInvalid = "parameter_invalid", BAD_REQUEST, "A parameter is not valid";
        /// A line of a batch is not a message.
        LineInvalid = "line_invalid", BAD_REQUEST, "The line is not a message";
        /// A batch exceeds its maximum of lines or bytes.
        BatchTooLarge = "batch_too_large", PAYLOAD_TOO_LARGE, "The batch is too large";
        /// The maximum number of batches is in flight.
        BatchesFull = "batches_full", SERVICE_UNAVAILABLE, "Too many batches are in flight";
        /// The bodies in flight take the maximum memory.
        BodiesFull = "bodies_full", SERVICE_UNAVAILABLE, "Too many bodies are in flight";
        /// All connections are busy.
        ServerBusy = "server_busy", SERVICE_UNAVAILABLE, "All connections are busy";
        /// The queue does not exist, or the caller may not see it.
        QueueUnknown = "queue_unknown", NOT_FOUND, "The queue does not exist";
        /// The queue has its maximum of waiting messages, or would not drain in time.
        QueueFull = "queue_full", TOO_MANY_REQUESTS, "The queue is full";
        /// The message does not exist, or the caller may not see it.
        MessageUnknown = "message_unknown", NOT_FOUND, "The message does not exist";
        /// The lifecycle or the queue's policy does not allow the step.
        ActionRefused = "action_refused", CONFLICT, "The message does not allow this action";
        /// The bulk operation does not exist.
        OperationUnknown = "operation_unknown", NOT_FOUND, "The bulk operation does not exist";
        /// Too many bulk operations run, or this one has ended.
        OperationRefused = "operation_refused", CONFLICT, "The bulk operation cannot be started or stopped";
        /// The failure group does not exist.
        GroupUnknown = "group_unknown", NOT_FOUND, "The failure group does not exist";
        /// The configuration has no such destination.
        DestinationUnknown = "destination_unknown", NOT_FOUND, "The destination does not exist";
        /// The ledger has no record under this name.
        RecordUnknown = "record_unknown", NOT_FOUND, "The key record does not exist";
        /// The outcome is known already, or it is too early to decide.
        DecisionRefused = "decision_refused", CONFLICT, "The key record cannot be decided now";
        /// The path does not exist.
        RouteUnknown = "route_unknown", NOT_FOUND, "The path does not exist";
        /// The path does not support this method.
        MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed for this path";
        /// The request is not valid HTTP/1.1, or its framing is ambiguous (RFC 9112).
        FramingInvalid = "framing_invalid", BAD_REQUEST, "The request is not valid HTTP/1.1";
        /// The request has too many header fields, or too many bytes of them.
        HeadTooLarge = "head_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's head is too large";
        /// The request names another host, and only the address protects this server.
        HostNotAllowed = "host_not_allowed", FORBIDDEN, "The Host header names another host";
        /// A page of another origin sends the request, and only the address protects this server.
        OriginNotAllowed = "origin_not_allowed", FORBIDDEN, "The request comes from another origin";
        /// The request needs a token, and has none.
        TokenMissing = "token_missing", UNAUTHORIZED, "The request needs a token";
        /// The token is invalid, revoked or expired.
        TokenInvalid = "token_invalid", UNAUTHORIZED, "The token is not valid";
        /// The token is valid, but its role does not allow this.
        RoleInsufficient = "role_insufficient", FORBIDDEN, "The token's role does not allow this";
        /// The store is not usable at the moment.
        StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The store is unavailable";
        /// The token has its maximum of feeds, batches or body bytes in flight.
        TokenBusy = "token_busy", TOO_MANY_REQUESTS, "The token has too much in flight";
        /// The feed has its maximum of listeners.
        FeedFull = "feed_full", SERVICE_UNAVAILABLE, "The event feed has too many listeners";
        /// The server runs, but should not get requests yet or any more.
        NotReady = "not_ready", SERVICE_UNAVAILABLE, "The server is not ready";
        /// The store contains something that cannot be read.
        RecordUnreadable = "record_unreadable", INTERNAL_SERVER_ERROR, "The stored data cannot be read";
        /// The store refused the statement.
        StoreRefused = "store_refused", INTERNAL_SERVER_ERROR, "The store refused the request";
    }
}

impl Problem {
    /// Prefixes the detail with the name of what it is about.
    pub(crate) fn about(self, name: &str) -> Self {
        Self { detail: format!("{name} {}", self.detail).into(), ..self }
    }

    pub(crate) fn from_key(error: KeyError) -> Self {
        let code = code_of_key(error, Code::KeyMissing, Code::KeyMismatch, Code::KeyInvalid);
        Self::new(code, error.to_string())
    }

    pub(crate) fn from_submission(refused: &SubmissionError) -> Self {
        let code = match refused {
            SubmissionError::Identity => Code::IdentityInvalid,
            SubmissionError::ContentType | SubmissionError::NotJson => Code::MediaTypeUnsupported,
            SubmissionError::TooLarge => Code::BodyTooLarge,
            SubmissionError::Json { .. } => Code::BodyInvalid,
            SubmissionError::KeyMismatch => Code::KeyMismatch,
            SubmissionError::Schema(_) => Code::SchemaMismatch,
        };
        let problem = Self::new(code, refused.to_string());
        match refused {
            SubmissionError::Schema(schema) => {
                let violations = schema
                    .violations
                    .iter()
                    .map(|violation| json!({ "pointer": violation.pointer, "detail": violation.what }));
                problem.with("faults", violations.collect())
            }
            _ => problem,
        }
    }

    pub(crate) fn from_body(fault: BodyError) -> Self {
        match fault {
            BodyError::Idle | BodyError::TooSlow => Self::new(
                Code::BodyTimeout,
                "the request's body did not arrive in time; nothing was done; send it again, faster or in smaller parts",
            ),
            BodyError::NoMemory(Full::All) => Self::new(
                Code::BodiesFull,
                format!(
                    "the request bodies in flight take {}, the maximum; nothing was done; send the same request again",
                    size::format_in_text(MAX_BODIES_BYTES)
                ),
            )
            .after(BODIES_RETRY_AFTER),
            BodyError::NoMemory(Full::Own) => Self::new(
                Code::TokenBusy,
                format!(
                    "the request bodies in flight with this token take {}, the maximum; nothing was done; send the same request again, \
                     with fewer at once",
                    size::format_in_text(MAX_BODIES_BYTES_OF_ONE)
                ),
            )
            .after(BODIES_RETRY_AFTER),
            BodyError::Cut => Self::new(
                Code::BodyIncomplete,
                "the request's body ended early, or is malformed; nothing was done; send it again",
            ),
        }
    }

    /// All connections are busy, or all that the caller's address may have.
    pub(crate) fn overloaded() -> Self {
        let detail = "all connections of this server, or all that one address may use, are busy; nothing was done; send the same request \
                      again, and use fewer connections";
        Self::new(Code::ServerBusy, detail).after(OVERLOADED_RETRY_AFTER)
    }

    /// The store is not usable, and nothing was done.
    pub(crate) fn unavailable() -> Self {
        let detail = "the store is unavailable; nothing was done; send the same request again";
        Self::new(Code::StoreUnavailable, detail).after(STORE_RETRY_AFTER)
    }

    /// Converts a store error of a request under a key, which may be sent again.
    ///
    /// The cause is only logged: it may name hosts and files.
    pub(crate) fn from_store(error: &StoreError) -> Self {
        // A conflict is the caller's mistake, and the response says so.
        if !matches!(error, StoreError::KeyConflict { .. }) {
            tracing::warn!(error = error.with_causes(), "store request failed");
        }
        match error {
            StoreError::Busy | StoreError::Unavailable(_) => Self::unavailable(),
            StoreError::Full => Self::new(
                Code::StoreUnavailable,
                "the server's disk is full; nothing was done; send the same request again later",
            )
            .after(PERSON_RETRY_AFTER),
            StoreError::FileLost { .. } => Self::new(
                Code::StoreUnavailable,
                "the server's database file was removed or replaced, and the server stops; the request was not accepted; send the same \
                 request again, with the same key, after the server restarts",
            )
            .after(PERSON_RETRY_AFTER),
            StoreError::Unknown(_) => Self::new(
                Code::StoreUnavailable,
                "the store did not confirm the request, so its outcome is unknown; send the same request again, with the same key: it takes \
                 effect once",
            )
            .after(STORE_RETRY_AFTER),
            // The message belongs to the caller's identity, so its id may be shown.
            StoreError::KeyConflict { id } => Self::new(
                Code::KeyConflict,
                "this idempotency key was used for a different request in this queue; nothing was enqueued; send a new action with a new key",
            )
            .with("first", serde_json::json!(href(*id))),
            StoreError::Corrupt { .. } => Self::new(
                Code::RecordUnreadable,
                "the stored data is not valid and was not used; report the request's id to the operator of this server",
            ),
            StoreError::TooLarge { .. }
            | StoreError::OutOfRange { .. }
            | StoreError::Empty { .. }
            | StoreError::NulInText { .. } => Self::new(Code::ParameterInvalid, error.to_string()),
            StoreError::TooNew { .. }
            | StoreError::Migration(_)
            | StoreError::Address(_)
            | StoreError::WrongDatabase(_)
            | StoreError::Refused(_) => Self::new(
                Code::StoreRefused,
                "the store refused the statement; nothing was done; report the request's id to the operator of this server",
            ),
        }
    }
}

/// Converts a store error of a request without a key.
///
/// The caller must look whether it was done.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let problem = Self::from_store(&error);
        match error {
            StoreError::Unknown(_) => Self {
                detail: "the store did not confirm the request, so its outcome is unknown; check the current state before you send it \
                         again"
                    .into(),
                ..problem
            },
            _ => problem,
        }
    }
}

/// Errors in the parameters of a query.
impl serde::de::Error for Problem {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self::new(Code::ParameterInvalid, what.to_string())
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self::custom(format!("the query has an unknown parameter; known parameters: {known}"))
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::custom(format!("the parameter {name} is repeated; send it once"))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom(format!("the parameter {name} is missing; add it"))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.response().map(Body::from)
    }
}
