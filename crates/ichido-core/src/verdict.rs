//! What an answer, or the lack of one, says about the effect.
//!
//! Guarantee: every HTTP answer, network fault and named service error gets one [`Verdict`]: an error code,
//! what is known of the effect, and what to do. The table is data: a destination puts rows of its own before
//! it. Nothing is taken for a success that does not prove to be one, and doubt is called
//! [`Effect::Unknown`], never guessed away.
//!
//! Start at [`Table::judge`]. The rows are shown with [`Table::http`], [`Table::client`],
//! [`Table::client_ietf`], [`Table::client_stripe`] and [`Table::llm`].
// SPEC A8, B1, D7–D9, F2.

mod answer;
mod gate;
mod hint;
mod tables;

pub use answer::{Answer, BODY_BYTES_MAX, Echo, NetworkFault, Seen};
pub use gate::{Guarantee, RepeatRefused, Safety, hop_may_repeat, may_repeat};
pub use hint::{WAIT_MAX, hint_of, retry_after};

use std::borrow::Cow;
use std::time::Duration;

use crate::time::Timestamp;
use crate::words;

words! {
    /// What is known of the effect of a call, or of all the calls made for a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Effect {
        /// It is proved that nothing happened.
        NotDone = "not_done",
        /// It is proved that the work was done.
        Done = "done",
        /// Neither is proved.
        Unknown = "unknown",
    }
}

impl Effect {
    /// What is known after a further try: done once is done, and a doubt stays until something settles it.
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
    /// Why a try failed, as metrics, dead letters and the API name it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ErrorCode {
        /// No answer, or the receiver says that time ran out (408, 425).
        NetworkTimeout = "NETWORK_TIMEOUT",
        /// The receiver failed.
        Broker5xx = "BROKER_5XX",
        /// Too fast: the same call later is welcome.
        RateLimited = "RATE_LIMITED",
        /// Something that no row knows.
        Unknown = "UNKNOWN",
        /// The call is wrong as it stands.
        BadRequest = "BAD_REQUEST",
        /// Not allowed, or not known who asks.
        Unauthorized = "UNAUTHORIZED",
        /// The receiver has processed this key before: a success.
        ConflictProcessed = "CONFLICT_PROCESSED",
        /// The receiver is still at it under this key.
        InProgress = "IN_PROGRESS",
        /// The money or the quota is spent; waiting a little does not help.
        QuotaSpent = "QUOTA_SPENT",
        /// An answer came, and is not what was asked for (a model's text that is no JSON).
        AnswerUnusable = "ANSWER_UNUSABLE",
        /// The answer does not carry our key back though the receiver promised it, or carries another.
        KeyNotEchoed = "KEY_NOT_ECHOED",
        /// The receiver says that our key was used for a different request.
        KeyConflict = "KEY_CONFLICT",
        /// The worker died with the message claimed.
        WorkerDied = "WORKER_DIED",
    }
}

impl ErrorCode {
    /// The code of a name, however it is cased.
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
}

/// What a row advises, before it is weighed whether a repetition is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It worked.
    Accept,
    /// It worked before: the receiver knows our key. Counts only where the answer is tied to our key.
    AcceptAsProcessed,
    /// Try again later.
    Retry,
    /// Ask again for a usable answer, out of a budget of its own.
    // SPEC B1.
    RetryAnswer,
    /// No retry can mend it.
    GiveUp,
    /// The effect must be asked after, or decided by a person.
    AskAfter,
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is about.
    pub when: When,
    /// `None` for a success.
    pub code: Option<ErrorCode>,
    /// What it says of the effect of this one call.
    pub effect: Effect,
    /// What to do.
    pub advice: Advice,
}

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Exactly this status.
    Status(u16),
    /// A status from the first to the second, both included.
    StatusFrom(u16, u16),
    /// An error that the service names so, whatever the status.
    Name(Cow<'static, str>),
    /// This status with this name.
    StatusAndName(u16, Cow<'static, str>),
    /// This status with a time to come back at: whoever gives one has not said the last word.
    StatusAndWait(u16),
    /// An idempotency layer's "still in flight": 202 and `Idempotency-Status: processing`.
    // SPEC C6.
    InFlight,
    /// The request never reached the receiver.
    NeverSent,
    /// The request may have reached the receiver, and no whole answer came back.
    Lost,
    /// An answer that is not what was asked for.
    UnusableAnswer,
    /// Whatever no earlier row took.
    Anything,
}

/// What one try came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Why it failed; `None` for a success.
    pub code: Option<ErrorCode>,
    /// What is known of the effect of this one try.
    pub effect: Effect,
    /// What the table advises.
    pub advice: Advice,
    /// How long the server asked us to wait.
    pub hint: Option<Duration>,
    report: Option<PaceReport>,
}

/// What a try tells of its destination, whatever became of the message: which of its three ears the
/// [pace](crate::pace) hears it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaceReport {
    /// It is up, and bears the rate: [`Pace::on_success`](crate::pace::Pace::on_success).
    Success,
    /// It was called too fast: [`Pace::on_throttled`](crate::pace::Pace::on_throttled), with the hint.
    Throttled,
    /// It looks down: [`Pace::on_failure`](crate::pace::Pace::on_failure).
    Failure,
}

/// What happens next, once safety is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Finished, by this answer.
    Sent,
    /// Finished earlier: the result is `sha256:from-conflict`.
    // SPEC D7.
    SentBefore,
    /// Try again, no sooner than the hint.
    Retry,
    /// Ask again for a usable answer, out of its own budget.
    RetryAnswer,
    /// Dead letter.
    Dead,
    /// Nobody knows, and repeating could do it twice: reconcile, else park.
    // SPEC F2.
    AskAfter,
}

impl Verdict {
    /// Weighs the advice against what a repetition could do.
    ///
    /// `effect_so_far` is what was known before this try: a clean refusal now says nothing of an earlier
    /// try that was lost.
    // SPEC D9, F2.
    pub fn next(&self, safety: Safety, effect_so_far: Effect) -> Next {
        match self.advice {
            Advice::Accept => Next::Sent,
            Advice::AcceptAsProcessed => Next::SentBefore,
            Advice::Retry if may_repeat(safety, effect_so_far.after(self.effect)).is_ok() => Next::Retry,
            Advice::Retry | Advice::AskAfter => Next::AskAfter,
            Advice::RetryAnswer if safety == Safety::Repeatable => Next::RetryAnswer,
            Advice::RetryAnswer | Advice::GiveUp => Next::Dead,
        }
    }

    /// What to report to the pace of the destination: success for a 2xx, a 3xx and a plain 4xx, since whoever
    /// refuses is up; throttled for `RATE_LIMITED`; failure for a 5xx and a fault of the network.
    ///
    /// `None` is to report nothing: the call was held back on our side and never made, or what came says
    /// neither.
    pub const fn tells_pace(&self) -> Option<PaceReport> {
        self.report
    }

    /// What somebody who acted in person says of it, where no table has to read it from an answer: a function in this process.
    ///
    /// Nothing of it reaches the [pace](crate::pace) but what is said in `report`.
    pub const fn said(
        code: Option<ErrorCode>,
        effect: Effect,
        advice: Advice,
        hint: Option<Duration>,
        report: Option<PaceReport>,
    ) -> Self {
        Self { code, effect, advice, hint, report }
    }

    fn doubted(self, advice: Advice) -> Self {
        Self { code: Some(ErrorCode::KeyNotEchoed), effect: Effect::Unknown, advice, ..self }
    }
}

/// How one destination's answers are read: its own rows first, then the rows of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The destination's own rows; the first that fits wins.
    pub own: Vec<Row>,
    /// The rows of its kind, in layers.
    base: &'static [&'static [Row]],
    /// Whether the destination promises to carry our key back in its answer.
    // SPEC D8.
    pub promises_echo: bool,
}

impl Table {
    /// What a try came to, given what was seen of it.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use std::time::Duration;
    /// use ichido_core::retry::{Retry, Safety};
    /// use ichido_core::time::Timestamp;
    /// use ichido_core::verdict::{Answer, Echo, Effect, ErrorCode, Next, Seen, Table};
    ///
    /// let now = Timestamp::from_secs(1_800_000_000);
    /// let answer = Answer {
    ///     status: 429,
    ///     headers: &[("Retry-After", b"30")],
    ///     body: b"",
    ///     echo: Echo::Absent,
    /// };
    /// let verdict = Table::http().judge(&Seen::Answer(answer), now);
    /// assert_eq!((verdict.code, verdict.effect), (Some(ErrorCode::RateLimited), Effect::NotDone));
    /// assert_eq!(verdict.next(Safety::Neither, Effect::NotDone), Next::Retry);
    ///
    /// // The schedule would wait 2 s after the first failure; the server's 30 s are a floor.
    /// let wait = Retry::OUTBOX.wait(NonZeroU32::MIN, 0.5, verdict.hint);
    /// assert!(Duration::from_secs(30) <= wait && wait <= Duration::from_secs(33));
    /// ```
    pub fn judge(&self, seen: &Seen<'_>, now: Timestamp) -> Verdict {
        let names = seen.names();
        let hint = seen.answer().and_then(|answer| hint_of(answer.headers.iter().copied(), now));
        // An idempotency layer's "still in flight" is never an outcome (SPEC C6), whatever a row says of its status.
        let base = [tables::IN_FLIGHT].into_iter().chain(self.base.iter().copied()).flatten();
        let in_flight = seen.answer().is_some_and(Answer::says_in_flight);
        let own = self.own.iter().filter(|_| !in_flight);
        let row = own.chain(base).find(|row| row.when.fits(seen, &names, hint));
        // Every base table ends with `Anything`; this is what it would say if one did not.
        let (code, effect, advice) = row
            .map_or((Some(ErrorCode::Unknown), Effect::Unknown, Advice::AskAfter), |row| {
                (row.code, row.effect, row.advice)
            });
        self.check_echo(seen, Verdict { code, effect, advice, hint, report: seen.report(code) })
    }

    /// A success counts only when it is about our call.
    // SPEC D7, D8.
    fn check_echo(&self, seen: &Seen<'_>, verdict: Verdict) -> Verdict {
        let echo = seen.answer().map_or(Echo::Absent, |answer| answer.echo);
        match (verdict.advice, echo) {
            // An answer about another key says nothing of our call, neither that it was done nor that it was not.
            (_, Echo::Other) => verdict.doubted(Advice::AskAfter),
            (Advice::Accept, Echo::Absent) if self.promises_echo => verdict.doubted(Advice::AskAfter),
            // Processed, but not for us: one of the conflicts that are final.
            (Advice::AcceptAsProcessed, Echo::Absent) => verdict.doubted(Advice::GiveUp),
            _ => verdict,
        }
    }
}

impl When {
    fn fits(&self, seen: &Seen<'_>, names: &[Cow<'_, str>], hint: Option<Duration>) -> bool {
        let status = seen.answer().map(|answer| answer.status);
        let is_called = |name: &str| names.iter().any(|found| found == name);
        match self {
            Self::Status(wanted) => status == Some(*wanted),
            Self::StatusFrom(first, last) => status.is_some_and(|status| (*first..=*last).contains(&status)),
            Self::Name(name) => is_called(name),
            Self::StatusAndName(wanted, name) => status == Some(*wanted) && is_called(name),
            Self::StatusAndWait(wanted) => status == Some(*wanted) && hint.is_some(),
            Self::InFlight => seen.answer().is_some_and(Answer::says_in_flight),
            Self::NeverSent => matches!(seen, Seen::Network(fault) if !fault.may_have_arrived()),
            Self::Lost => matches!(seen, Seen::Network(fault) if fault.may_have_arrived()),
            Self::UnusableAnswer => matches!(seen, Seen::UnusableAnswer),
            Self::Anything => true,
        }
    }
}

#[cfg(test)]
mod tests;
