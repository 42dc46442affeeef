//! Decides what to do after a failed call.
// SPEC B1 to B3, B6.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::pace::{EndpointSet, Opening};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode, NextStep};

use super::{FallbackReason, Settings};
use crate::models::CallError;

/// The failures of an item so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    /// Calls without an answer.
    pub(super) calls: u32,
    /// Answers that were not in the requested form; they have their own budget.
    pub(super) answers: u32,
    /// The endpoints that refused the item, or failed; a retry avoids them.
    // SPEC B10.
    pub(super) refused_by: EndpointSet,
    /// Until when these asked not to be called with the item again; the latest of them.
    // SPEC D6.
    pub(super) wait_until: Timestamp,
    /// An answer ran out of its tokens; the next one may have twice as many.
    pub(super) was_cut_off: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JudgeStep {
    /// Retry after this wait, because of this.
    Retry { wait: Duration, failures: Failures, why: FallbackReason },
    /// Give up.
    GiveUp(FallbackReason),
}

impl Failures {
    /// Returns whether no call of the item has failed yet.
    pub(super) fn is_fresh(self) -> bool {
        self == Self::default()
    }

    /// Adds the endpoint of a failed call, if the failure says something about the endpoint, and until when it asked to wait.
    pub(super) fn at(self, endpoint: usize, call_error: &CallError, wait_until: Option<Timestamp>) -> Self {
        if call_error.call_end().is_none() && wait_until.is_none() {
            return self;
        }
        let wait_until = self.wait_until.max(wait_until.unwrap_or(Timestamp::EPOCH));
        Self { refused_by: self.refused_by.with(endpoint), wait_until, ..self }
    }

    /// Returns whether each of this many endpoints refused the item, so none can take it before the wait ends.
    pub(super) fn all_wait(self, endpoints: usize) -> bool {
        self.refused_by.has_all(endpoints)
    }

    /// Returns when an endpoint that is open then may take the item.
    pub(super) fn opening(self, endpoint: usize, opening: Opening) -> Opening {
        if self.refused_by.contains(endpoint) && opening.moment() < self.wait_until {
            return Opening::Resting { until: self.wait_until };
        }
        opening
    }

    /// Decides after a call without an answer from one of this many endpoints.
    ///
    /// `hint` is how long the item itself must wait according to the server; `dice` is uniform in [0, 1).
    pub(super) fn after_error(
        self,
        settings: &Settings,
        endpoints: usize,
        call_error: &CallError,
        hint: Option<Duration>,
        dice: f64,
    ) -> JudgeStep {
        let code = call_error.verdict.code.unwrap_or(ErrorCode::Unknown);
        let why = Arc::from(call_error.why.as_str());
        // Calls to a model are repeatable, so an earlier call of unknown outcome does not matter.
        match call_error.verdict.next(Safety::Idempotent, Effect::NotDone) {
            NextStep::Retry if is_network(code) && !call_error.may_be_billed() => {
                self.retry(settings, hint, dice, FallbackReason::Unreached { code, why })
            }
            NextStep::Retry => self.retry(settings, hint, dice, FallbackReason::Spent { code, why }),
            // One endpoint denied it; the next may have access and quota.
            NextStep::Dead if call_error.is_set_up() && !self.refused_by.has_all(endpoints) => self.retry(
                settings,
                None,
                dice,
                FallbackReason::Refused { code, status: call_error.status, why },
            ),
            NextStep::RetryAnswer => self.after_unusable(settings, &call_error.why, dice),
            // A success is not an error, so a verdict that says so is not understood.
            NextStep::Sent | NextStep::SentBefore | NextStep::Dead | NextStep::Reconcile => {
                JudgeStep::GiveUp(FallbackReason::Refused { code, status: call_error.status, why })
            }
        }
    }

    /// Decides after an answer that is not in the requested form.
    pub(super) fn after_unusable(self, settings: &Settings, why: &str, dice: f64) -> JudgeStep {
        let failures = Self { answers: self.answers.saturating_add(1), ..self };
        let why = FallbackReason::Unusable { why: Arc::from(why) };
        if settings.answer_retries < failures.answers {
            return JudgeStep::GiveUp(why);
        }
        let failure = NonZeroU32::new(failures.answers).unwrap_or(NonZeroU32::MIN);
        JudgeStep::Retry { wait: settings.retry.wait(failure, dice, None), failures, why }
    }

    /// Decides after an answer that ran out of this many tokens.
    ///
    /// It is asked for once more, at once, because waiting does not help, unless it had twice as many.
    pub(super) fn after_cut_off(self, max_tokens: u32, is_doubled: bool) -> JudgeStep {
        let why = FallbackReason::CutOff { max_tokens };
        if is_doubled {
            return JudgeStep::GiveUp(why);
        }
        let failures = Self { was_cut_off: true, ..self };
        JudgeStep::Retry { wait: Duration::ZERO, failures, why }
    }

    fn retry(
        self,
        settings: &Settings,
        hint: Option<Duration>,
        dice: f64,
        spent: FallbackReason,
    ) -> JudgeStep {
        let failures = Self { calls: self.calls.saturating_add(1), ..self };
        let failure = NonZeroU32::new(failures.calls).unwrap_or(NonZeroU32::MIN);
        if !settings.retry.has_attempts_left(failures.calls) {
            return JudgeStep::GiveUp(spent);
        }
        // What the server asks for comes first, then our own wait, whose jitter spreads the callers. Jitter in proportion
        // to the server's wait would add up to half an hour to one of an hour.
        let own = settings.retry.wait(failure, dice, None);
        let wait = hint.map_or(own, |hint| own.saturating_add(hint));
        JudgeStep::Retry { wait, failures, why: spent }
    }
}

/// Returns whether a failure with this code may be one of the network, rather than of the model.
pub(super) const fn is_network(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::NetworkTimeout | ErrorCode::ConnectFailed)
}
