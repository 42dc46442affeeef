//! The tables. Rows are read from the top; the first match wins.

use std::borrow::Cow;

use super::{Advice, Effect, ErrorCode, RowMatch, VerdictRow, VerdictTable};
use Advice::{Accept, GiveUp, Retry, RetryAnswer};
use Effect::{Done, NotDone, Unknown};
use ErrorCode::{
    AnswerUnusable, BadRequest, Broker5xx, ConnectFailed, Gone, InProgress, KeyConflict, NetworkTimeout,
    QuotaSpent, RateLimited, Redirected, Unauthorized,
};
use RowMatch::{Anything, Held, InFlight, Lost, NeverSent, NotConnected, Status, StatusAndWait, StatusFrom};

impl VerdictTable {
    // SPEC D9.
    /// The table of an HTTP destination of the outbox: unknown errors are retried.
    ///
    /// The first match wins. "Retry" applies if [`Verdict::next`](super::Verdict::next) finds it safe.
    ///
    /// | seen | code | effect | advice |
    /// |---|---|---|---|
    /// | 202, in flight | `IN_PROGRESS` | unknown | retry |
    /// | 200 to 299 | – | done | accept |
    /// | 307 | `REDIRECTED` | not done | give up |
    /// | 308 | `REDIRECTED` | not done | give up |
    /// | 300 to 399 | `REDIRECTED` | unknown | give up |
    /// | 401 | `UNAUTHORIZED` | not done | give up |
    /// | 403 | `UNAUTHORIZED` | not done | give up |
    /// | 408 | `NETWORK_TIMEOUT` | unknown | retry |
    /// | 409 | `BAD_REQUEST` | unknown | give up |
    /// | 410 | `GONE` | not done | give up |
    /// | 425 | `NETWORK_TIMEOUT` | not done | retry |
    /// | 429 | `RATE_LIMITED` | not done | retry |
    /// | 400 to 499 | `BAD_REQUEST` | not done | give up |
    /// | 500 to 599 | `BROKER_5XX` | unknown | retry |
    /// | not connected | `CONNECT_FAILED` | not done | retry |
    /// | never sent | `NETWORK_TIMEOUT` | not done | retry |
    /// | lost | `NETWORK_TIMEOUT` | unknown | retry |
    /// | anything else | `UNKNOWN` | unknown | retry |
    pub const fn http() -> Self {
        Self { own_rows: Vec::new(), base: &[HTTP], expects_echo: false }
    }

    // SPEC A8.
    /// The table of a client at the origin of a request.
    ///
    /// It adds these rows to [`VerdictTable::http`].
    ///
    /// A key that was used for a different request leaves the effect unknown: the action may have been done with
    /// another body.
    ///
    /// | seen | code | effect | advice |
    /// |---|---|---|---|
    /// | 409, `key_conflict` | `KEY_CONFLICT` | unknown | give up |
    /// | 425 | `NETWORK_TIMEOUT` | not done | give up |
    /// | 5xx, key held | `BROKER_5XX` | unknown | give up |
    /// | 600 to 999 | `UNKNOWN` | unknown | give up |
    pub const fn client() -> Self {
        Self { own_rows: Vec::new(), base: &[CLIENT, HTTP], expects_echo: false }
    }

    /// The table of a client whose server follows the IETF draft.
    ///
    /// The draft is `draft-ietf-httpapi-idempotency-key-header`. These rows precede those of [`VerdictTable::client`].
    ///
    /// In the draft, 409 means "still in flight" and 422 "used for a different request"; it has no name that would
    /// distinguish them from an API's own 409 and 422. So a 409 counts as in flight if it says when to retry, or if our
    /// own server names it; a bare 409 is retried like a failure, a few times. A 422 is taken to mean what the draft
    /// says.
    ///
    /// | seen | code | effect | advice |
    /// |---|---|---|---|
    /// | 409, `outcome_unknown` | `BAD_REQUEST` | unknown | give up |
    /// | 409, `response_not_stored` | `BAD_REQUEST` | unknown | give up |
    /// | 409, `key_in_flight` | `IN_PROGRESS` | unknown | retry |
    /// | 409, with a time to wait | `IN_PROGRESS` | unknown | retry |
    /// | 409 | `UNKNOWN` | unknown | retry |
    /// | 422, `key_mismatch` | `BAD_REQUEST` | not done | give up |
    /// | 422 | `KEY_CONFLICT` | unknown | give up |
    pub const fn client_ietf() -> Self {
        Self { own_rows: Vec::new(), base: &[IETF, CLIENT, HTTP], expects_echo: false }
    }

    /// The table of a client whose server behaves like Stripe.
    ///
    /// It adds these rows to [`VerdictTable::client`].
    ///
    /// | seen | code | effect | advice |
    /// |---|---|---|---|
    /// | 409, `idempotency_key_in_use` | `IN_PROGRESS` | unknown | retry |
    /// | 409, `key_in_flight` | `IN_PROGRESS` | unknown | retry |
    /// | 400, `idempotency_error` | `KEY_CONFLICT` | unknown | give up |
    /// | 400, `key_conflict` | `KEY_CONFLICT` | unknown | give up |
    pub const fn client_stripe() -> Self {
        Self { own_rows: Vec::new(), base: &[STRIPE, CLIENT, HTTP], expects_echo: false }
    }

    // SPEC B1.
    /// The table of a model's API, such as Bedrock, OpenAI or Anthropic.
    ///
    /// Unknown errors are not retried.
    ///
    /// The first match wins; except for 402, error names precede statuses.
    ///
    /// | seen | code | effect | advice |
    /// |---|---|---|---|
    /// | 202, in flight | `IN_PROGRESS` | unknown | retry |
    /// | unusable answer | `ANSWER_UNUSABLE` | done | ask again for an answer |
    /// | 200 to 299 | – | done | accept |
    /// | 300 to 399 | `REDIRECTED` | unknown | give up |
    /// | `insufficient_quota` | `QUOTA_SPENT` | not done | give up |
    /// | `billing_hard_limit_reached` | `QUOTA_SPENT` | not done | give up |
    /// | `billing_not_active` | `QUOTA_SPENT` | not done | give up |
    /// | `billing_error` | `QUOTA_SPENT` | not done | give up |
    /// | `enforced_spend_limit_reached` | `QUOTA_SPENT` | not done | give up |
    /// | `ServiceQuotaExceededException` | `QUOTA_SPENT` | not done | give up |
    /// | 402 | `QUOTA_SPENT` | not done | give up |
    /// | `ThrottlingException` | `RATE_LIMITED` | not done | retry |
    /// | `throttlingException` | `RATE_LIMITED` | not done | retry |
    /// | `TooManyRequestsException` | `RATE_LIMITED` | not done | retry |
    /// | `rate_limit_exceeded` | `RATE_LIMITED` | not done | retry |
    /// | `rate_limit_error` | `RATE_LIMITED` | not done | retry |
    /// | `overloaded_error` | `RATE_LIMITED` | not done | retry |
    /// | `ModelNotReadyException` | `BROKER_5XX` | not done | retry |
    /// | `ServiceUnavailableException` | `BROKER_5XX` | unknown | retry |
    /// | `InternalServerException` | `BROKER_5XX` | unknown | retry |
    /// | `ModelTimeoutException` | `NETWORK_TIMEOUT` | unknown | give up |
    /// | `ModelErrorException` | `BROKER_5XX` | unknown | give up |
    /// | `ModelStreamErrorException` | `BROKER_5XX` | unknown | give up |
    /// | `ValidationException` | `BAD_REQUEST` | not done | give up |
    /// | `ResourceNotFoundException` | `BAD_REQUEST` | not done | give up |
    /// | `ConflictException` | `BAD_REQUEST` | not done | give up |
    /// | `context_length_exceeded` | `BAD_REQUEST` | not done | give up |
    /// | `AccessDeniedException` | `UNAUTHORIZED` | not done | give up |
    /// | `UnrecognizedClientException` | `UNAUTHORIZED` | not done | give up |
    /// | `ExpiredTokenException` | `UNAUTHORIZED` | not done | give up |
    /// | 401 | `UNAUTHORIZED` | not done | give up |
    /// | 403 | `UNAUTHORIZED` | not done | give up |
    /// | 408 | `NETWORK_TIMEOUT` | unknown | retry |
    /// | 410 | `GONE` | not done | give up |
    /// | 429 | `RATE_LIMITED` | not done | retry |
    /// | 400 to 499 | `BAD_REQUEST` | not done | give up |
    /// | 529 | `RATE_LIMITED` | not done | retry |
    /// | 500 | `BROKER_5XX` | unknown | retry |
    /// | 502 to 504 | `BROKER_5XX` | unknown | retry |
    /// | not connected | `CONNECT_FAILED` | not done | retry |
    /// | never sent | `NETWORK_TIMEOUT` | not done | retry |
    /// | lost | `NETWORK_TIMEOUT` | unknown | retry |
    /// | anything else | `UNKNOWN` | unknown | give up |
    pub const fn llm() -> Self {
        Self { own_rows: Vec::new(), base: &[LLM], expects_echo: false }
    }
}

const fn row(when: RowMatch, code: ErrorCode, effect: Effect, advice: Advice) -> VerdictRow {
    VerdictRow { when, code: Some(code), effect, advice }
}

const fn name(name: &'static str) -> RowMatch {
    RowMatch::Name(Cow::Borrowed(name))
}

const fn named(status: u16, name: &'static str) -> RowMatch {
    RowMatch::StatusAndName(status, Cow::Borrowed(name))
}

const SUCCESS: VerdictRow =
    VerdictRow { when: StatusFrom(200, 299), code: None, effect: Done, advice: Accept };

/// The first rows of every table.
pub(super) const IN_FLIGHT: &[VerdictRow] = &[row(InFlight, InProgress, Unknown, Retry)];

/// The rows of an outbox destination.
// SPEC D9.
pub(super) const HTTP: &[VerdictRow] = &[
    SUCCESS,
    // "Go there instead" was not done here; any other redirect may be the response to completed work.
    row(Status(307), Redirected, NotDone, GiveUp),
    row(Status(308), Redirected, NotDone, GiveUp),
    row(StatusFrom(300, 399), Redirected, Unknown, GiveUp),
    row(Status(401), Unauthorized, NotDone, GiveUp),
    row(Status(403), Unauthorized, NotDone, GiveUp),
    row(Status(408), NetworkTimeout, Unknown, Retry),
    // A conflict that the destination did not declare may mean that it was done before, by us or by another caller.
    row(Status(409), BadRequest, Unknown, GiveUp),
    row(Status(410), Gone, NotDone, GiveUp),
    row(Status(425), NetworkTimeout, NotDone, Retry),
    row(Status(429), RateLimited, NotDone, Retry),
    row(StatusFrom(400, 499), BadRequest, NotDone, GiveUp),
    row(StatusFrom(500, 599), Broker5xx, Unknown, Retry),
    row(NotConnected, ConnectFailed, NotDone, Retry),
    row(NeverSent, NetworkTimeout, NotDone, Retry),
    row(Lost, NetworkTimeout, Unknown, Retry),
    row(Anything, ErrorCode::Unknown, Unknown, Retry),
];

/// The rows in which a client at the origin differs from the outbox.
///
/// It retries no 4xx but 408 and 429.
// SPEC A8.
pub(super) const CLIENT: &[VerdictRow] = &[
    // A caller that builds the body anew for each attempt has done the work once, with the first body.
    row(named(409, "key_conflict"), KeyConflict, Unknown, GiveUp),
    row(Status(425), NetworkTimeout, NotDone, GiveUp),
    // The key is held until a person decides: a retry would get 409.
    row(Held, Broker5xx, Unknown, GiveUp),
    row(StatusFrom(600, 999), ErrorCode::Unknown, Unknown, GiveUp),
];

/// The rows in which a server that follows the IETF draft differs.
///
/// The names are those of our own server in that profile.
pub(super) const IETF: &[VerdictRow] = &[
    // Asking again changes neither: the first waits for a person, the second was done.
    row(named(409, "outcome_unknown"), BadRequest, Unknown, GiveUp),
    row(named(409, "response_not_stored"), BadRequest, Unknown, GiveUp),
    row(named(409, "key_in_flight"), InProgress, Unknown, Retry),
    row(StatusAndWait(409), InProgress, Unknown, Retry),
    // In flight, or a conflict of the API's own: with a key it is safe to ask, but not forever.
    row(Status(409), ErrorCode::Unknown, Unknown, Retry),
    row(named(422, "key_mismatch"), BadRequest, NotDone, GiveUp),
    row(Status(422), KeyConflict, Unknown, GiveUp),
];

/// The rows in which a server that follows Stripe differs.
pub(super) const STRIPE: &[VerdictRow] = &[
    row(named(409, "idempotency_key_in_use"), InProgress, Unknown, Retry),
    row(named(409, "key_in_flight"), InProgress, Unknown, Retry),
    row(named(400, "idempotency_error"), KeyConflict, Unknown, GiveUp),
    row(named(400, "key_conflict"), KeyConflict, Unknown, GiveUp),
];

/// A model's API. The names are those of Bedrock, OpenAI and Anthropic.
///
/// They do not overlap.
///
/// An internal failure of a model (`InternalServerException`, 500) counts as unavailable: the call is repeatable, so it
/// is retried and counted as possibly billed twice. An error that no row matches is not retried.
// SPEC B1.
pub(super) const LLM: &[VerdictRow] = &[
    row(RowMatch::UnusableAnswer, AnswerUnusable, Done, RetryAnswer),
    SUCCESS,
    row(StatusFrom(300, 399), Redirected, Unknown, GiveUp),
    // The second meaning of 429: the money is used up. It precedes the first, which has the same status.
    row(name("insufficient_quota"), QuotaSpent, NotDone, GiveUp),
    row(name("billing_hard_limit_reached"), QuotaSpent, NotDone, GiveUp),
    row(name("billing_not_active"), QuotaSpent, NotDone, GiveUp),
    row(name("billing_error"), QuotaSpent, NotDone, GiveUp),
    row(name("enforced_spend_limit_reached"), QuotaSpent, NotDone, GiveUp),
    row(name("ServiceQuotaExceededException"), QuotaSpent, NotDone, GiveUp),
    row(Status(402), QuotaSpent, NotDone, GiveUp),
    // The rate is too high.
    row(name("ThrottlingException"), RateLimited, NotDone, Retry),
    row(name("throttlingException"), RateLimited, NotDone, Retry),
    row(name("TooManyRequestsException"), RateLimited, NotDone, Retry),
    row(name("rate_limit_exceeded"), RateLimited, NotDone, Retry),
    row(name("rate_limit_error"), RateLimited, NotDone, Retry),
    row(name("overloaded_error"), RateLimited, NotDone, Retry),
    row(name("ModelNotReadyException"), Broker5xx, NotDone, Retry),
    // Down, or failing internally.
    row(name("ServiceUnavailableException"), Broker5xx, Unknown, Retry),
    row(name("InternalServerException"), Broker5xx, Unknown, Retry),
    // A model that timed out or broke will do so again for the same input.
    row(name("ModelTimeoutException"), NetworkTimeout, Unknown, GiveUp),
    row(name("ModelErrorException"), Broker5xx, Unknown, GiveUp),
    row(name("ModelStreamErrorException"), Broker5xx, Unknown, GiveUp),
    // Wrong, or not allowed.
    row(name("ValidationException"), BadRequest, NotDone, GiveUp),
    row(name("ResourceNotFoundException"), BadRequest, NotDone, GiveUp),
    row(name("ConflictException"), BadRequest, NotDone, GiveUp),
    row(name("context_length_exceeded"), BadRequest, NotDone, GiveUp),
    row(name("AccessDeniedException"), Unauthorized, NotDone, GiveUp),
    row(name("UnrecognizedClientException"), Unauthorized, NotDone, GiveUp),
    row(name("ExpiredTokenException"), Unauthorized, NotDone, GiveUp),
    // No known name: the status decides.
    row(Status(401), Unauthorized, NotDone, GiveUp),
    row(Status(403), Unauthorized, NotDone, GiveUp),
    row(Status(408), NetworkTimeout, Unknown, Retry),
    row(Status(410), Gone, NotDone, GiveUp),
    row(Status(429), RateLimited, NotDone, Retry),
    row(StatusFrom(400, 499), BadRequest, NotDone, GiveUp),
    row(Status(529), RateLimited, NotDone, Retry),
    row(Status(500), Broker5xx, Unknown, Retry),
    row(StatusFrom(502, 504), Broker5xx, Unknown, Retry),
    row(NotConnected, ConnectFailed, NotDone, Retry),
    row(NeverSent, NetworkTimeout, NotDone, Retry),
    row(Lost, NetworkTimeout, Unknown, Retry),
    row(Anything, ErrorCode::Unknown, Unknown, GiveUp),
];
