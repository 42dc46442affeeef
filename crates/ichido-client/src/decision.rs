//! Decides what to do after an attempt, without a clock, a socket or randomness.
//!
//! Guarantee: an action is retried only after a network error, a 5xx, 408 or 429, or while the server reports it as
//! in flight. It is never retried sooner than the server asked, more often than [`RetryRules`] and the budget allow,
//! or past the deadline. Without a key it is retried only with proof that nothing was done. Giving up reports what is
//! known about the effect of all attempts together.
//!
//! An *in flight* response uses no attempt and no budget: the server is healthy and working, and asking again is how
//! the client learns the outcome. Such requests are limited by the deadline and by [`MAX_ATTEMPTS`] requests in total.
//!
//! The [`Profile`] defines which responses mean *in flight* or a key conflict; the rows are in
//! [`Profile::client_table`](ichido_core::ledger::Profile::client_table).
// Spec: A8, C4, C6.

mod why;

pub use why::{GiveUpReason, RefusalReason};

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::ledger::Profile;
use ichido_core::retry::{Budget, MAX_ATTEMPTS, Retry, Safety, TooLate};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{self, Advice, AttemptResponse, Effect, ErrorCode, Verdict, VerdictTable};

use crate::response::says_replay;

/// How often to retry, and how long to wait.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryRules {
    /// The waits and the maximum number of attempts.
    pub retry: Retry,
    /// The longest `Retry-After` that the client waits for.
    ///
    /// If a server asks for more, the client gives up at once and reports the time to come back.
    pub max_retry_after: Duration,
    /// How the server reports about keys.
    pub profile: Profile,
}

/// The attempts so far, and their known effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptHistory {
    /// All requests, including those that only asked for an outcome in flight.
    pub sent: u32,
    /// The failed requests.
    pub failed: u32,
    /// The effect of all requests, as far as it is known.
    pub effect: Effect,
}

impl AttemptHistory {
    /// The history before the first attempt.
    pub const NONE: Self = Self { sent: 0, failed: 0, effect: Effect::NotDone };
}

/// The time, and what is left of the deadline and the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionContext {
    /// The current time, to interpret the server's `Retry-After`.
    pub now: Timestamp,
    /// The rest of the total timeout.
    pub left: Duration,
    /// The rest of the shared retry budget; `None` without a budget.
    pub budget: Option<Budget>,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The next step.
    pub next: NextStep,
    /// The budget after the decision.
    pub budget: Option<Budget>,
}

/// The next step after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It was done; the response is the outcome.
    Done,
    /// The server refuses it. A retry would not help.
    Refused {
        /// The effect, as far as it is known. An earlier attempt that was lost may have taken effect.
        effect: Effect,
        /// The kind of refusal.
        reason: RefusalReason,
    },
    /// Retry after a wait.
    Retry {
        /// How long to wait.
        wait: Duration,
        /// The history, including this attempt.
        attempts: AttemptHistory,
    },
    /// Do not retry.
    GiveUp {
        /// The reason.
        why: GiveUpReason,
        /// The effect, as far as it is known.
        effect: Effect,
    },
}

/// Decides what follows an attempt.
///
/// `before` is the history before it. `dice` is uniform in [0, 1) and drawn by the caller.
///
/// ```
/// use std::time::Duration;
/// use ichido_client::decision::{self, DecisionContext, NextStep, RetryRules, AttemptHistory};
/// use ichido_core::ledger::Profile;
/// use ichido_core::retry::{Budget, BudgetSettings, Retry, Safety};
/// use ichido_core::time::Timestamp;
/// use ichido_core::verdict::{NetworkFault, AttemptResponse};
///
/// let rules = RetryRules {
///     retry: Retry::CLIENT,
///     max_retry_after: Duration::from_mins(1),
///     profile: Profile::Ichido,
/// };
/// let context = DecisionContext {
///     now: Timestamp::from_secs(1_800_000_000),
///     left: Duration::from_secs(120),
///     budget: Some(Budget::full(BudgetSettings::DEFAULT)),
/// };
/// let lost = AttemptResponse::Network(NetworkFault::Broken);
/// let keyed = decision::decide(&rules, Safety::Keyed, AttemptHistory::NONE, &lost, context, 0.5);
/// let NextStep::Retry { wait, attempts } = keyed.next else {
///     panic!("a lost try of a keyed action is made again");
/// };
/// assert_eq!((wait, attempts.sent), (Duration::from_millis(1_050), 1));
/// assert_ne!(keyed.budget, context.budget, "it is paid for");
///
/// let unkeyed = decision::decide(&rules, Safety::None, AttemptHistory::NONE, &lost, context, 0.5);
/// assert!(matches!(unkeyed.next, NextStep::GiveUp { why: decision::GiveUpReason::NoKey, .. }));
/// ```
pub fn decide(
    rules: &RetryRules,
    safety: Safety,
    before: AttemptHistory,
    seen: &AttemptResponse<'_>,
    context: DecisionContext,
    dice: f64,
) -> Decision {
    // Without a key, no response is about one: a 409 or a 422 has its usual meaning.
    let is_keyed = safety == Safety::Keyed;
    let table = if is_keyed { rules.profile.client_table() } else { VerdictTable::client() };
    let verdict = table.judge(seen, context.now);
    let effect = before.effect.after(verdict.effect);
    let in_flight = verdict.code == Some(ErrorCode::InProgress);
    let attempts = AttemptHistory {
        sent: before.sent.saturating_add(1),
        failed: before.failed.saturating_add(u32::from(!in_flight)),
        effect,
    };
    let unpaid = |next| Decision { next, budget: context.budget };
    match verdict.next(safety, before.effect) {
        verdict::NextStep::Sent | verdict::NextStep::SentBefore => done(before, context.budget),
        // A server repeats a failure that it stores under a key, however often it is asked.
        verdict::NextStep::Retry if is_keyed && !in_flight && is_kept(seen) => {
            unpaid(NextStep::Refused { effect, reason: RefusalReason::KeptFailure })
        }
        verdict::NextStep::Retry => retry(rules, attempts, &verdict, context, dice),
        verdict::NextStep::Dead | verdict::NextStep::RetryAnswer => {
            let is_conflict = verdict.code == Some(ErrorCode::KeyConflict);
            let reason = if is_conflict { RefusalReason::KeyConflict } else { RefusalReason::ByServer };
            unpaid(NextStep::Refused { effect, reason })
        }
        // The same response would be retried under a key, so the missing key is the reason.
        verdict::NextStep::Reconcile if verdict.advice == Advice::Retry => {
            unpaid(NextStep::GiveUp { why: GiveUpReason::NoKey, effect })
        }
        verdict::NextStep::Reconcile => unpaid(NextStep::GiveUp { why: GiveUpReason::AnotherKey, effect }),
    }
}

/// Adds to the budget after a success without an earlier failure.
fn done(before: AttemptHistory, budget: Option<Budget>) -> Decision {
    let budget = if before.failed == 0 { budget.map(Budget::after_success) } else { budget };
    Decision { next: NextStep::Done, budget }
}

fn is_kept(seen: &AttemptResponse<'_>) -> bool {
    matches!(seen, AttemptResponse::Http(answer) if says_replay(answer.headers.iter().copied()))
}

fn retry(
    rules: &RetryRules,
    attempts: AttemptHistory,
    verdict: &Verdict,
    context: DecisionContext,
    dice: f64,
) -> Decision {
    let give_up =
        |why| Decision { next: NextStep::GiveUp { why, effect: attempts.effect }, budget: context.budget };
    if !rules.retry.has_attempts_left(attempts.failed) || MAX_ATTEMPTS <= attempts.sent {
        return give_up(GiveUpReason::TriesSpent);
    }
    if let Some(hint) = verdict.hint.filter(|hint| rules.max_retry_after < *hint) {
        return give_up(GiveUpReason::AskedToWait { come_back_at: context.now.plus(hint) });
    }
    let in_flight = verdict.code == Some(ErrorCode::InProgress);
    // A request in flight is polled at the pace of a first failure, or at the server's own; waits grow only for
    // failures.
    let nth = if in_flight { 1 } else { attempts.failed };
    let wait = rules.retry.wait(NonZeroU32::new(nth).unwrap_or(NonZeroU32::MIN), dice, verdict.hint);
    if let Err(TooLate { come_back_at }) = Retry::due(context.now, wait, Some(context.now.plus(context.left)))
    {
        return give_up(GiveUpReason::OutOfTime { come_back_at });
    }
    let paid = match context.budget {
        Some(budget) if !in_flight => budget.spend().map(Some),
        free => Some(free),
    };
    match paid {
        Some(budget) => Decision { next: NextStep::Retry { wait, attempts }, budget },
        None => give_up(GiveUpReason::BudgetSpent),
    }
}

#[cfg(test)]
mod tests;
