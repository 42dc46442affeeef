//! What the layer says when it does not run a request: problem details (RFC 9457) with a code that stays the same.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use ichido_core::key::KeyError;
use ichido_core::ledger::ProfileNumbers;
use ichido_store::error::StoreError;

use super::body::Body;
use super::fields;

/// How long to wait before asking again for an action in flight. It can be over at any moment.
const IN_FLIGHT_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long to wait before asking again when the store cannot be reached.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long to wait when others are ahead.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

ichido_core::words! {
    /// What stands in the way, as one word that programs compare.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Code {
        /// The operation needs a key, and there is none.
        KeyMissing = "key_missing",
        /// There is a key, and it is none that we take.
        KeyInvalid = "key_invalid",
        /// The body names another key than the header (SPEC D11).
        KeyDisagrees = "key_disagrees",
        /// The key was used for a different request (SPEC A4).
        KeyConflict = "key_conflict",
        /// The first request with this key is still running (SPEC C6).
        KeyInFlight = "key_in_flight",
        /// It began, and nobody knows what came of it (SPEC F2).
        OutcomeUnknown = "outcome_unknown",
        /// It was done, and its response was too large to keep.
        ResponseNotKept = "response_not_kept",
        /// The store cannot be reached; nothing was run.
        StoreUnavailable = "store_unavailable",
        /// The store holds something under this key that it cannot read; nothing was run.
        RecordUnreadable = "record_unreadable",
        /// The body is over the bound.
        BodyTooLarge = "body_too_large",
        /// The body broke off.
        BodyIncomplete = "body_incomplete",
        /// The body says that it is JSON, and has no clear meaning as JSON (SPEC C9).
        BodyInvalid = "body_invalid",
        /// Nobody knows who asks.
        IdentityMissing = "identity_missing",
        /// The handler ended without an answer.
        HandlerFailed = "handler_failed",
        /// The handler kept its transaction, or answered though it had failed; nothing was done.
        TransactionFailed = "transaction_failed",
        /// Others were ahead at every try; nothing was done.
        TransactionContended = "transaction_contended",
    }
}

impl Code {
    /// The same for people; it does not change from case to case.
    pub const fn title(self) -> &'static str {
        match self {
            Self::KeyMissing => "The request needs an idempotency key",
            Self::KeyInvalid => "The idempotency key is not valid",
            Self::KeyDisagrees => "Header and body name different idempotency keys",
            Self::KeyConflict => "The idempotency key was used for a different request",
            Self::KeyInFlight => "The request is still being processed",
            Self::OutcomeUnknown => "The outcome of the request is not known",
            Self::ResponseNotKept => "The request was done; its response was not kept",
            Self::StoreUnavailable => "The request cannot be accepted now",
            Self::RecordUnreadable => "What is stored under the idempotency key cannot be read",
            Self::BodyTooLarge => "The body is too large",
            Self::BodyIncomplete => "The body is not complete",
            Self::BodyInvalid => "The body is not clear JSON",
            Self::IdentityMissing => "The request does not say who asks",
            Self::HandlerFailed => "The service failed",
            Self::TransactionFailed => "The service's transaction failed",
            Self::TransactionContended => "Others were ahead",
        }
    }
}

/// One refusal.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The status.
    pub status: StatusCode,
    /// What it is.
    pub code: Code,
    /// What is wrong with this request, and what to do about it. It shows nothing of what is stored.
    pub detail: Cow<'static, str>,
    /// From when on asking again can help.
    pub retry_after: Option<Duration>,
    /// Header fields that go with it.
    pub fields: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A refusal without further header fields.
    pub fn new(status: StatusCode, code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, detail: detail.into(), retry_after: None, fields: Vec::new() }
    }

    fn again_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// What is wrong with the key that was sent, or that none was.
    pub fn of_key(error: KeyError) -> Self {
        let (status, code) = match error {
            KeyError::Missing => (StatusCode::BAD_REQUEST, Code::KeyMissing),
            KeyError::BodyDisagrees => (StatusCode::UNPROCESSABLE_ENTITY, Code::KeyDisagrees),
            KeyError::Empty
            | KeyError::TooLong { .. }
            | KeyError::FieldTooLong { .. }
            | KeyError::NotVisible { .. }
            | KeyError::BadQuoting
            | KeyError::ManyLines { .. }
            | KeyError::HeadersDisagree => (StatusCode::BAD_REQUEST, Code::KeyInvalid),
        };
        Self::new(status, code, error.to_string())
    }

    pub(crate) fn conflict(numbers: ProfileNumbers) -> Self {
        let detail = "this idempotency key was used for a different request (another body, path, query, or \
                      compared claim or header); \
                      send a new action under a new key";
        Self::new(status(numbers.mismatch_status), Code::KeyConflict, detail)
    }

    pub(crate) fn in_flight(numbers: ProfileNumbers) -> Self {
        let detail = "the first request with this key is still running; send the same request again to get its outcome";
        let mut problem = Self::new(status(numbers.in_flight_status), Code::KeyInFlight, detail)
            .again_after(IN_FLIGHT_RETRY_AFTER);
        problem.fields.push((fields::STATUS_NAME, HeaderValue::from_static("processing")));
        problem
    }

    pub(crate) fn unknown(numbers: ProfileNumbers) -> Self {
        let detail = "an earlier request with this key began, and it is not known whether it took effect; \
                      it is not run again until that has been found out";
        Self::new(status(numbers.unknown_status), Code::OutcomeUnknown, detail)
    }

    pub(crate) fn not_kept(numbers: ProfileNumbers, first: u16) -> Self {
        let detail = format!(
            "the request was done and answered with status {first}; its response was too large to keep, so it cannot be sent again"
        );
        Self::new(status(numbers.not_kept_status), Code::ResponseNotKept, detail)
    }

    /// What the store said before anything was run.
    pub(crate) fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                Code::RecordUnreadable,
                "what is stored under this idempotency key cannot be read; nothing was run, and nothing will be under this key",
            ),
            _ => Self::unavailable(),
        }
    }

    pub(crate) fn unavailable() -> Self {
        let detail = "the store of idempotency keys cannot be used at the moment; nothing was run; send the same request again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::StoreUnavailable, detail)
            .again_after(STORE_RETRY_AFTER)
    }

    pub(crate) fn contended() -> Self {
        let detail =
            "the transaction met others at every try and was rolled back; send the same request again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::TransactionContended, detail)
            .again_after(BUSY_RETRY_AFTER)
    }

    pub(crate) fn failed(code: Code, detail: &'static str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, detail)
    }

    /// The body.
    pub fn to_json(&self) -> Vec<u8> {
        let code = self.code.as_str();
        serde_json::json!({
            "type": format!("urn:ichido:problem:{code}"),
            "title": self.code.title(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": code,
        })
        .to_string()
        .into_bytes()
    }

    /// The response.
    pub fn into_response<B: http_body::Body<Data = Bytes>>(self) -> Response<Body<B>> {
        let mut response = Response::new(Body::whole(Bytes::from(self.to_json()), None));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.extend(self.fields);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never sooner than said.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() != 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// A profile's number; the profiles hold none that is not a status.
fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::CONFLICT)
}
