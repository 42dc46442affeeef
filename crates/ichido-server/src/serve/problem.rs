//! What the server says when it does not do as asked: problem details (RFC 9457) with a code that stays the same.
//!
//! Guarantee: every code has one status, one title and one page in `docs/errors/`. A problem says what is wrong, where, and how to
//! mend it, and repeats no key, no secret and no body.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use ichido_core::key::KeyError;
use ichido_core::settings::size;
use ichido_http::problem::code_of_key;
use ichido_http::server::body::BodyFault;
use ichido_http::server::limits::{BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX, BODIES_RETRY_AFTER};
use ichido_http::server::permits::Full;
use ichido_store::error::StoreError;
use serde_json::json;

use crate::accept::SubmissionError;

/// How long to wait before asking again when a person has to act first.
const PERSON_RETRY_AFTER: Duration = Duration::from_secs(30);
/// How long to wait before asking again when the store cannot be reached.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The same when no connection is free: requests end all the time.
const OVERLOADED_RETRY_AFTER: Duration = Duration::from_secs(1);

ichido_http::problems! {
    pub(crate) enum Code in "urn:ichido:problem:" {
        /// A message needs a key, and there is none.
        KeyMissing = "key_missing", BAD_REQUEST, "The request needs an idempotency key";
        /// There is a key, and it is none that we take.
        KeyInvalid = "key_invalid", BAD_REQUEST, "The idempotency key is not valid";
        /// The body names another key than the header (SPEC D11).
        KeyDisagrees = "key_disagrees", UNPROCESSABLE_ENTITY, "Header and body name different idempotency keys";
        /// The key was used for a different request (SPEC D1).
        KeyConflict = "key_conflict", CONFLICT, "The idempotency key was used for a different request";
        /// The body says that it is JSON, and has no clear meaning as JSON (SPEC C9).
        BodyInvalid = "body_invalid", BAD_REQUEST, "The body is not clear JSON";
        /// The body is JSON, and not of the shape that is taken here.
        BodyUnexpected = "body_unexpected", UNPROCESSABLE_ENTITY, "The body is not what is taken here";
        /// The body is JSON, and not as the queue's schema wants it.
        SchemaBroken = "schema_broken", UNPROCESSABLE_ENTITY, "The body does not fit the queue's schema";
        /// The body is over its bound.
        BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
        /// The body broke off.
        BodyIncomplete = "body_incomplete", BAD_REQUEST, "The body is not complete";
        /// The body did not come in time.
        BodyTimeout = "body_timeout", REQUEST_TIMEOUT, "The body did not arrive in time";
        /// The content type is none, or none that is taken here.
        MediaTypeUnsupported = "media_type_unsupported", UNSUPPORTED_MEDIA_TYPE, "The body's type is not taken here";
        /// The identity is none.
        IdentityInvalid = "identity_invalid", BAD_REQUEST, "The identity is not valid";
        /// It came out of the queue that it is for, again and again (SPEC F1).
        LoopDetected = "loop_detected", UNPROCESSABLE_ENTITY, "The message goes round in circles";
        /// A parameter of the query is unknown, or its value is.
        ParameterInvalid = "parameter_invalid", BAD_REQUEST, "A parameter is not valid";
        /// A line of a batch is no message.
        LineInvalid = "line_invalid", BAD_REQUEST, "The line is no message";
        /// A batch has more lines or bytes than one may have.
        BatchTooLarge = "batch_too_large", PAYLOAD_TOO_LARGE, "The batch is too large";
        /// As many batches come in as may.
        BatchesFull = "batches_full", SERVICE_UNAVAILABLE, "Too many batches come in at once";
        /// The bodies in flight take as much memory as they may.
        BodiesFull = "bodies_full", SERVICE_UNAVAILABLE, "Too many bodies are in flight";
        /// Every connection that is served at once is busy.
        ServerBusy = "server_busy", SERVICE_UNAVAILABLE, "The server serves as many connections as it may";
        /// There is no such queue, or none that the caller may see.
        QueueUnknown = "queue_unknown", NOT_FOUND, "There is no such queue";
        /// As much waits in the queue as may, or as leaves in time.
        QueueFull = "queue_full", TOO_MANY_REQUESTS, "The queue takes no more in for now";
        /// There is no such message, or none that the caller may see.
        MessageUnknown = "message_unknown", NOT_FOUND, "There is no such message";
        /// The lifecycle or the queue's policy does not allow it (SPEC D17, F2).
        StepRefused = "step_refused", CONFLICT, "The message does not allow this as it stands";
        /// There is no such operation on many messages.
        OperationUnknown = "operation_unknown", NOT_FOUND, "There is no such operation";
        /// Too many run, or it has ended.
        OperationRefused = "operation_refused", CONFLICT, "The operation cannot be done now";
        /// The configuration has no such destination.
        DestinationUnknown = "destination_unknown", NOT_FOUND, "There is no such destination";
        /// The ledger has nothing under this name.
        RecordUnknown = "record_unknown", NOT_FOUND, "The ledger has no such record";
        /// The outcome is known, or it is too early (SPEC F2).
        DecisionRefused = "decision_refused", CONFLICT, "The record cannot be decided as it stands";
        /// There is nothing at this path.
        RouteUnknown = "route_unknown", NOT_FOUND, "There is nothing at this path";
        /// The path is known, and not for this method.
        MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The path is not for this method";
        /// The request's bytes could be read in two ways (RFC 9112).
        FramingInvalid = "framing_invalid", BAD_REQUEST, "It is not clear where the request ends";
        /// The request has more header fields, or more bytes of them, than are read.
        HeadTooLarge = "head_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's head is too large";
        /// The request names another host than this one, and nothing but the address protects it.
        HostForeign = "host_foreign", FORBIDDEN, "The request is meant for another host";
        /// A page of another origin asks, and nothing but the address protects this one.
        OriginForeign = "origin_foreign", FORBIDDEN, "A page of another origin may not ask for this";
        /// A token is needed, and there is none.
        TokenMissing = "token_missing", UNAUTHORIZED, "The request needs a token";
        /// The token lets nobody in.
        TokenInvalid = "token_invalid", UNAUTHORIZED, "The token is not valid";
        /// The token is good, and not for this.
        RoleInsufficient = "role_insufficient", FORBIDDEN, "The token does not allow this";
        /// The store cannot be used at the moment.
        StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The request cannot be served now";
        /// The token has as many feeds, batches or bytes of bodies under way as one may.
        TokenBusy = "token_busy", TOO_MANY_REQUESTS, "The token has as much under way as one may";
        /// As many listen to the feed of events as may.
        FeedFull = "feed_full", SERVICE_UNAVAILABLE, "Too many listen to the feed of events";
        /// The server runs, and should get no requests yet or any more.
        NotReady = "not_ready", SERVICE_UNAVAILABLE, "The server is not ready";
        /// The store holds something that it cannot read.
        RecordUnreadable = "record_unreadable", INTERNAL_SERVER_ERROR, "What is stored cannot be read";
        /// The store refused what was asked of it.
        StoreRefused = "store_refused", INTERNAL_SERVER_ERROR, "The store refused the request";
    }
}

impl Problem {
    /// With the name of what its detail is about.
    pub(crate) fn about(self, name: &str) -> Self {
        Self { detail: format!("{name} {}", self.detail).into(), ..self }
    }

    pub(crate) fn from_key(error: KeyError) -> Self {
        let code = code_of_key(error, Code::KeyMissing, Code::KeyDisagrees, Code::KeyInvalid);
        Self::new(code, error.to_string())
    }

    pub(crate) fn from_submission(refused: &SubmissionError) -> Self {
        let code = match refused {
            SubmissionError::Identity => Code::IdentityInvalid,
            SubmissionError::ContentType | SubmissionError::NotJson => Code::MediaTypeUnsupported,
            SubmissionError::TooLarge => Code::BodyTooLarge,
            SubmissionError::Json { .. } => Code::BodyInvalid,
            SubmissionError::KeyDisagrees => Code::KeyDisagrees,
            SubmissionError::Schema(_) => Code::SchemaBroken,
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

    pub(crate) fn from_body(fault: BodyFault) -> Self {
        match fault {
            BodyFault::Idle | BodyFault::TooSlow => Self::new(
                Code::BodyTimeout,
                "the request's body did not arrive in time; nothing was done; send it again, faster or in smaller parts",
            ),
            BodyFault::NoMemory(Full::All) => Self::new(
                Code::BodiesFull,
                format!(
                    "the bodies in flight have {}, which is the most at once; nothing was done; send the same request again",
                    size::told(BODIES_BYTES_MAX)
                ),
            )
            .after(BODIES_RETRY_AFTER),
            BodyFault::NoMemory(Full::Own) => Self::new(
                Code::TokenBusy,
                format!(
                    "the bodies in flight with this token have {}, which is the most at once; nothing was done; send the same request again, \
                     and fewer at once",
                    size::told(BODIES_BYTES_OF_ONE_MAX)
                ),
            )
            .after(BODIES_RETRY_AFTER),
            BodyFault::Cut => Self::new(
                Code::BodyIncomplete,
                "the request's body ended early, or is malformed; nothing was done; send it again",
            ),
        }
    }

    /// Every connection that is served at once is busy, or all of the caller's address.
    pub(crate) fn overloaded() -> Self {
        let detail = "as many connections are busy as this server serves at once, in all or from one address; nothing was done; send the \
                      same request again, and keep fewer connections busy";
        Self::new(Code::ServerBusy, detail).after(OVERLOADED_RETRY_AFTER)
    }

    /// The store cannot be used, and nothing was done.
    pub(crate) fn unavailable() -> Self {
        let detail = "the store cannot be used at the moment; nothing was done; send the same request again";
        Self::new(Code::StoreUnavailable, detail).after(STORE_RETRY_AFTER)
    }

    /// What the store said to a request under a key, which may be sent again. The cause goes into the log: it may name hosts and files.
    pub(crate) fn from_store(error: &StoreError) -> Self {
        tracing::warn!(%error, cause = error.source(), "the store did not do as asked");
        match error {
            StoreError::Busy | StoreError::Unavailable(_) => Self::unavailable(),
            StoreError::Full => Self::new(
                Code::StoreUnavailable,
                "the server's disk is full; nothing was done; send the same request again later",
            )
            .after(PERSON_RETRY_AFTER),
            StoreError::FileLost { .. } => Self::new(
                Code::StoreUnavailable,
                "the server has lost its database file and stops; this was not accepted; send the same request again, under the same key, \
                 once it runs again",
            )
            .after(PERSON_RETRY_AFTER),
            StoreError::Unknown(_) => Self::new(
                Code::StoreUnavailable,
                "the store broke off before it answered, so that it is not known whether this was done; send the same request again, \
                 under the same key: nothing is done twice",
            )
            .after(STORE_RETRY_AFTER),
            StoreError::Corrupt { .. } => Self::new(
                Code::RecordUnreadable,
                "what the store holds here cannot be read, and is not guessed at; tell whoever runs this server, with the request's id",
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
                "the store refused what was asked of it; nothing was done; tell whoever runs this server, with the request's id",
            ),
        }
    }
}

/// What the store said to a request under no key: whether it was done is seen at what it was about.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let problem = Self::from_store(&error);
        match error {
            StoreError::Unknown(_) => Self {
                detail: "the store broke off before it answered, so that it is not known whether this was done; look at how it stands \
                         before you ask again"
                    .into(),
                ..problem
            },
            _ => problem,
        }
    }
}

/// What is wrong with the parameters of a query.
impl serde::de::Error for Problem {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self::new(Code::ParameterInvalid, what.to_string())
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self::custom(format!("the query has a parameter that is not known here; known are: {known}"))
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::custom(format!("the parameter {name} is given more than once; give it once"))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom(format!("the parameter {name} is missing"))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.response().map(Body::from)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Each code has a page that opens with its word, status and title, and each page has a code.
    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        let mut words = BTreeSet::new();
        for code in Code::ALL {
            assert!(words.insert(format!("{}.md", code.as_str())), "{} stands twice", code.as_str());
            let page = std::fs::read_to_string(folder.join(format!("{}.md", code.as_str())));
            let page = page.unwrap_or_else(|error| panic!("docs/errors/{}.md: {error}", code.as_str()));
            let opening =
                format!("# `{}` ({})\n\n{}.\n", code.as_str(), code.status().as_u16(), code.title());
            assert!(page.starts_with(&opening), "{} must begin with:\n{opening}", code.as_str());
        }
        let pages: BTreeSet<String> = std::fs::read_dir(&folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .filter(|name| name != "README.md")
            .collect();
        assert_eq!(pages, words, "pages and codes are the same");
    }
}
