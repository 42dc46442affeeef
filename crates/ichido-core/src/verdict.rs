//! Derives the effect of a call from its response, or from the lack of one.
//!
//! Guarantee: every HTTP response, network fault and named service error gets one [`Verdict`]: an error code, what is
//! known of the effect, and what to do. The table is data: a destination puts its own rows before it. Nothing counts as
//! a success without proof, and doubt is [`Effect::Unknown`], never guessed.
//!
//! Start at [`VerdictTable::judge`]. [`VerdictTable::http`], [`VerdictTable::client`], [`VerdictTable::client_ietf`], [`VerdictTable::client_stripe`] and
//! [`VerdictTable::llm`] show their rows.
// SPEC A8, B1, D7–D9, F2.

mod gate;
mod hint;
mod response;
mod tables;

pub use gate::{Guarantee, RepeatRefused, Safety, hop_may_repeat, may_repeat};
pub use hint::{MAX_WAIT, hint_of, retry_after};
pub use response::{AttemptResponse, Echo, HttpResponse, MAX_BODY_BYTES, NetworkFault, ends_call};

use std::borrow::Cow;
use std::time::Duration;

use crate::time::Timestamp;
use crate::words;

words! {
    /// What is known of the effect of a call, or of all the calls made for a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Effect {
        /// Proof exists that nothing happened.
        NotDone = "not_done",
        /// Proof exists that the work was done.
        Done = "done",
        /// There is no proof of either.
        Unknown = "unknown",
    }
}

impl Effect {
    /// Returns what is known after another attempt.
    ///
    /// Done stays done, and a doubt stays until something settles it.
    #[must_use]
    pub fn after(self, next: Self) -> Self {
        match (self, next) {
            (Self::Done, _) | (_, Self::Done) => Self::Done,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::NotDone, Self::NotDone) => Self::NotDone,
        }
    }
}

words! {
    /// Why an attempt failed, as metrics, dead letters and the API name it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ErrorCode {
        /// No response, or the receiver reports a timeout (408, 425).
        NetworkTimeout = "NETWORK_TIMEOUT",
        /// No connection: the name did not resolve, nothing listens, or the TLS handshake failed.
        ConnectFailed = "CONNECT_FAILED",
        /// The receiver failed.
        Broker5xx = "BROKER_5XX",
        /// The rate was too high: the same call will be accepted later.
        RateLimited = "RATE_LIMITED",
        /// A response that cannot be read, or an error that no row knows.
        Unknown = "UNKNOWN",
        /// The request itself is wrong.
        BadRequest = "BAD_REQUEST",
        /// The receiver redirects elsewhere (3xx), which is not followed.
        Redirected = "REDIRECTED",
        /// The receiver says that the address is gone for good (410).
        Gone = "GONE",
        /// The caller is not allowed or not authenticated.
        Unauthorized = "UNAUTHORIZED",
        /// The receiver has already processed this key: a success.
        ConflictProcessed = "CONFLICT_PROCESSED",
        /// The receiver is still processing this key.
        InProgress = "IN_PROGRESS",
        /// The money or the quota is used up; a short wait does not help.
        QuotaSpent = "QUOTA_SPENT",
        /// A response arrived that is not what was asked for (a model's text that is not JSON).
        AnswerUnusable = "ANSWER_UNUSABLE",
        /// The response does not echo our key although the receiver guarantees it, or echoes another key.
        KeyNotEchoed = "KEY_NOT_ECHOED",
        /// The receiver reports that our key was used for a different request.
        KeyConflict = "KEY_CONFLICT",
        /// The worker died while it held the message.
        WorkerDied = "WORKER_DIED",
    }
}

impl ErrorCode {
    /// Returns the code with this name, in any case.
    ///
    /// ```
    /// use ichido_core::verdict::ErrorCode;
    ///
    /// assert_eq!(ErrorCode::parse_any_case("bad_request"), Some(ErrorCode::BadRequest));
    /// assert_eq!(ErrorCode::parse_any_case("TEAPOT"), None);
    /// ```
    pub fn parse_any_case(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str().eq_ignore_ascii_case(name))
    }

    /// Returns what the code means, for people: the names are older than some of the destinations that use them.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::NetworkTimeout => "no complete response in time",
            Self::ConnectFailed => "no connection",
            Self::Broker5xx => "the destination failed",
            Self::RateLimited => "the destination was called too fast",
            Self::Unknown => "none of the known failures",
            Self::BadRequest => "the request was refused",
            Self::Redirected => "redirects are not followed",
            Self::Gone => "the address no longer exists",
            Self::Unauthorized => "not authenticated or not allowed",
            Self::ConflictProcessed => "the destination had already processed the key",
            Self::InProgress => "the destination is still processing the key",
            Self::QuotaSpent => "the quota is used up",
            Self::AnswerUnusable => "the response is not what was asked for",
            Self::KeyNotEchoed => "the response does not repeat the key",
            Self::KeyConflict => "the key was used for a different request",
            Self::WorkerDied => "the worker died while it held the message",
        }
    }
}

/// What a row advises, before the safety of a repetition is considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It succeeded.
    Accept,
    /// It succeeded earlier: the receiver knows our key.
    ///
    /// Counts only if the response is tied to our key.
    AcceptAsProcessed,
    /// Retry later.
    Retry,
    /// Ask again for a usable response, with a separate budget.
    // SPEC B1.
    RetryAnswer,
    /// No retry can succeed.
    GiveUp,
    /// The effect must be reconciled, or decided by a person.
    Reconcile,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictRow {
    /// What it matches.
    pub when: RowMatch,
    /// `None` for a success.
    pub code: Option<ErrorCode>,
    /// What it says of the effect of this one call.
    pub effect: Effect,
    /// What to do.
    pub advice: Advice,
}

/// What a row matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowMatch {
    /// Exactly this status.
    Status(u16),
    /// A status in this range, inclusive.
    StatusFrom(u16, u16),
    /// An error with this name, whatever the status.
    Name(Cow<'static, str>),
    /// This status with this name.
    StatusAndName(u16, Cow<'static, str>),
    /// This status with a time to retry at.
    ///
    /// A server that gives one expects another request.
    StatusAndWait(u16),
    /// An idempotency layer's "still in flight": 202 and `Idempotency-Status: processing`.
    // SPEC C6.
    InFlight,
    /// An idempotency layer's "unknown, and held": a 5xx with `Idempotency-Status: unknown`.
    // SPEC F2.
    Held,
    /// No connection was made: the name, the address or the TLS handshake failed.
    NotConnected,
    /// The request never reached the receiver.
    NeverSent,
    /// The request may have reached the receiver, and no complete response came back.
    Lost,
    /// A response that is not what was asked for.
    UnusableAnswer,
    /// Anything that no earlier row matched.
    Anything,
}

/// The judgement of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Why it failed; `None` for a success.
    pub code: Option<ErrorCode>,
    /// What is known of the effect of this one attempt.
    pub effect: Effect,
    /// What the table advises.
    pub advice: Advice,
    /// How long the server asked the caller to wait.
    pub hint: Option<Duration>,
    report: Option<PaceReport>,
    answered: bool,
}

/// What an attempt says about its destination, whatever happened to the message.
///
/// It selects one of the three reports to the [pace](crate::pace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaceReport {
    /// It is up and accepts the rate: [`Pace::on_success`](crate::pace::Pace::on_success).
    Success,
    /// The rate was too high: [`Pace::on_throttled`](crate::pace::Pace::on_throttled), with the hint.
    Throttled,
    /// It seems down: [`Pace::on_failure`](crate::pace::Pace::on_failure).
    Failure,
}

/// What happens next, once safety is considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// This response finished it.
    Sent,
    /// It finished earlier: the result is `sha256:from-conflict`.
    // SPEC D7.
    SentBefore,
    /// Retry, no sooner than the hint.
    Retry,
    /// Ask again for a usable response, with a separate budget.
    RetryAnswer,
    /// Dead-letter it.
    Dead,
    /// The effect is unknown and a repetition could apply it twice: reconcile, else park.
    // SPEC F2.
    Reconcile,
}

impl Verdict {
    /// Decides what happens next from the advice and from what a repetition could do.
    ///
    /// `effect_so_far` is what was known before this attempt: a clean refusal now says nothing about an earlier attempt
    /// that was lost.
    // SPEC D9, F2.
    pub fn next(&self, safety: Safety, effect_so_far: Effect) -> NextStep {
        match self.advice {
            Advice::Accept => NextStep::Sent,
            Advice::AcceptAsProcessed => NextStep::SentBefore,
            Advice::Retry if may_repeat(safety, effect_so_far.after(self.effect)).is_ok() => NextStep::Retry,
            Advice::Retry | Advice::Reconcile => NextStep::Reconcile,
            Advice::RetryAnswer if safety == Safety::Idempotent => NextStep::RetryAnswer,
            Advice::RetryAnswer | Advice::GiveUp => NextStep::Dead,
        }
    }

    /// Returns what to report to the destination's pace.
    ///
    /// Success for a 2xx, a 3xx and a plain 4xx, since a destination that refuses is up; throttled for `RATE_LIMITED`;
    /// failure for a 5xx and a network fault.
    ///
    /// `None` means nothing to report: the call was held back on our side and never made, or the response says neither.
    pub const fn pace_report(&self) -> Option<PaceReport> {
        self.report
    }

    /// Returns whether the receiver answered the call, so it can no longer be in transit.
    ///
    /// Then "not done" can be found out or decided at once, although the effect is unknown.
    // SPEC F2.
    pub const fn is_answered(&self) -> bool {
        self.answered
    }

    /// Creates the verdict of a function in this process, which needs no table to read a response.
    ///
    /// Only `report` reaches the [pace](crate::pace).
    pub const fn declared(
        code: Option<ErrorCode>,
        effect: Effect,
        advice: Advice,
        hint: Option<Duration>,
        report: Option<PaceReport>,
    ) -> Self {
        Self { code, effect, advice, hint, report, answered: false }
    }

    /// Returns the verdict of a success whose response cannot be read: the effect is unknown.
    // SPEC D9.
    #[must_use]
    pub const fn unreadable(self) -> Self {
        Self { code: Some(ErrorCode::Unknown), effect: Effect::Unknown, advice: Advice::Retry, ..self }
    }

    /// A response that is not tied to our key is not the answer to our call.
    fn doubted(self, advice: Advice) -> Self {
        let code = Some(ErrorCode::KeyNotEchoed);
        Self { code, effect: Effect::Unknown, advice, answered: false, ..self }
    }
}

/// How the responses of one destination are read: its own rows first, then the rows of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictTable {
    /// The destination's own rows; the first match wins.
    pub own_rows: Vec<VerdictRow>,
    /// The rows of its kind, in layers.
    base: &'static [&'static [VerdictRow]],
    /// Whether the destination guarantees to echo our key in its response.
    // SPEC D8.
    pub expects_echo: bool,
}

impl VerdictTable {
    /// Judges an attempt, given what was seen of it.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use std::time::Duration;
    /// use ichido_core::retry::{Retry, Safety};
    /// use ichido_core::time::Timestamp;
    /// use ichido_core::verdict::{HttpResponse, Echo, Effect, ErrorCode, NextStep, AttemptResponse, VerdictTable};
    ///
    /// let now = Timestamp::from_secs(1_800_000_000);
    /// let answer = HttpResponse {
    ///     status: 429,
    ///     headers: &[("Retry-After", b"30")],
    ///     body: b"",
    ///     echo: Echo::Absent,
    /// };
    /// let verdict = VerdictTable::http().judge(&AttemptResponse::Http(answer), now);
    /// assert_eq!((verdict.code, verdict.effect), (Some(ErrorCode::RateLimited), Effect::NotDone));
    /// assert_eq!(verdict.next(Safety::None, Effect::NotDone), NextStep::Retry);
    ///
    /// // The schedule would wait 2 s after the first failure; the server's 30 s are a floor.
    /// let wait = Retry::ORDER.wait(NonZeroU32::MIN, 0.5, verdict.hint);
    /// assert!(Duration::from_secs(30) <= wait && wait <= Duration::from_secs(33));
    /// ```
    pub fn judge(&self, seen: &AttemptResponse<'_>, now: Timestamp) -> Verdict {
        let names = seen.names();
        let hint = seen.answer().and_then(|answer| hint_of(answer.headers.iter().copied(), now));
        // An idempotency layer's "still in flight" is never an outcome (SPEC C6), whatever a row says about its status.
        let base = [tables::IN_FLIGHT].into_iter().chain(self.base.iter().copied()).flatten();
        let in_flight = seen.answer().is_some_and(HttpResponse::says_in_flight);
        let own = self.own_rows.iter().filter(|_| !in_flight);
        let row = own.chain(base).find(|row| row.when.fits(seen, &names, hint));
        // Every base table ends with `Anything`; this is what it would say if one did not.
        let (code, effect, advice) = row
            .map_or((Some(ErrorCode::Unknown), Effect::Unknown, Advice::Reconcile), |row| {
                (row.code, row.effect, row.advice)
            });
        let answered = code != Some(ErrorCode::InProgress)
            && seen.answer().is_some_and(|answer| ends_call(answer.status));
        self.check_echo(seen, Verdict { code, effect, advice, hint, report: seen.report(code), answered })
    }

    /// Accepts a success only if it is about our call.
    // SPEC D7, D8.
    fn check_echo(&self, seen: &AttemptResponse<'_>, verdict: Verdict) -> Verdict {
        let echo = seen.answer().map_or(Echo::Absent, |answer| answer.echo);
        match (verdict.advice, echo) {
            // A response about another key says nothing about our call: neither that it was done nor that it was not.
            (_, Echo::Other) => verdict.doubted(Advice::Reconcile),
            (Advice::Accept, Echo::Absent) if self.expects_echo => verdict.doubted(Advice::Reconcile),
            // Processed, but not for us: one of the final conflicts.
            (Advice::AcceptAsProcessed, Echo::Absent) => verdict.doubted(Advice::GiveUp),
            _ => verdict,
        }
    }
}

impl RowMatch {
    fn fits(&self, seen: &AttemptResponse<'_>, names: &[Cow<'_, str>], hint: Option<Duration>) -> bool {
        let status = seen.answer().map(|answer| answer.status);
        let is_called = |name: &str| names.iter().any(|found| found == name);
        match self {
            Self::Status(wanted) => status == Some(*wanted),
            Self::StatusFrom(first, last) => status.is_some_and(|status| (*first..=*last).contains(&status)),
            Self::Name(name) => is_called(name),
            Self::StatusAndName(wanted, name) => status == Some(*wanted) && is_called(name),
            Self::StatusAndWait(wanted) => status == Some(*wanted) && hint.is_some(),
            Self::InFlight => seen.answer().is_some_and(HttpResponse::says_in_flight),
            Self::Held => seen.answer().is_some_and(HttpResponse::says_held),
            Self::NotConnected => {
                matches!(seen, AttemptResponse::Network(fault) if fault.is_connect_failure())
            }
            Self::NeverSent => matches!(seen, AttemptResponse::Network(fault) if !fault.may_have_arrived()),
            Self::Lost => matches!(seen, AttemptResponse::Network(fault) if fault.may_have_arrived()),
            Self::UnusableAnswer => matches!(seen, AttemptResponse::UnusableAnswer),
            Self::Anything => true,
        }
    }
}

#[cfg(test)]
mod tests;
