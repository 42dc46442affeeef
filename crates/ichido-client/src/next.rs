//! What to do after a try: the decision, without a clock, a socket or dice of its own.
//!
//! Guarantee: an action is sent again only after a network fault, a 5xx, 408 or 429 (SPEC A8), or while the server says that it is
//! still in flight (SPEC C6); never sooner than the server asked, never more often than [`RetryRules`] and the budget say, never past the
//! deadline; and without a key only with proof that nothing was done (SPEC C4). Giving up says what is known of the effect of all tries
//! together.
//!
//! An answer of *in flight* uses up no try and none of the budget: the server is well and at work, and asking it again is how its outcome
//! is learnt. Such asking is bounded by the deadline, and by [`TRIES_MAX`] requests in all.
//!
//! What a server calls *in flight*, and a key that was used for something else, is the [`Profile`]'s: the rows stand with
//! [`Profile::client_table`](ichido_core::ledger::Profile::client_table).

mod why;

pub use why::{Refusal, Why};

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::ledger::Profile;
use ichido_core::retry::{Budget, Retry, Safety, TRIES_MAX, TooLate};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{self, Advice, Effect, ErrorCode, Seen, Table, Verdict};

use crate::answer::says_replay;

/// How often, and how patiently.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryRules {
    /// The waits, and the tries allowed.
    pub retry: Retry,
    /// The longest `Retry-After` that is waited for. A server that asks for more is not asked again sooner: it is given up on at
    /// once, with the time to come back.
    pub retry_after_max: Duration,
    /// How the server speaks of keys.
    pub profile: Profile,
}

/// What was sent so far, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptHistory {
    /// Requests that were made, those included that only asked whether it is over.
    pub sent: u32,
    /// How many of them failed.
    pub failed: u32,
    /// What is known of the effect of all of them.
    pub effect: Effect,
}

impl AttemptHistory {
    /// Before the first.
    pub const NONE: Self = Self { sent: 0, failed: 0, effect: Effect::NotDone };
}

/// When a decision is made, and what is left then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionContext {
    /// The time of the day, for a server that says when to come back.
    pub now: Timestamp,
    /// How much is left of the total time.
    pub left: Duration,
    /// What is left of the retries that all calls share; `None` where they share none.
    pub budget: Option<Budget>,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub next: NextStep,
    /// What it leaves of the budget.
    pub budget: Option<Budget>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It was done; the answer is the outcome.
    Done,
    /// The server will not do it, however often it is asked.
    Refused {
        /// What is known of the effect: an earlier try that was lost may still have done it.
        effect: Effect,
        /// What kind of no it is.
        reason: Refusal,
    },
    /// The same again after this long.
    Retry {
        /// How long to wait.
        wait: Duration,
        /// What was sent so far, this try included.
        tries: AttemptHistory,
    },
    /// Not again.
    GiveUp {
        /// Why not.
        why: Why,
        /// What is known of the effect.
        effect: Effect,
    },
}

/// Decides, given what was seen of a try. `before` is what was sent before it; `dice` is uniform in [0, 1) and drawn by the caller.
///
/// ```
/// use std::time::Duration;
/// use ichido_client::next::{self, DecisionContext, NextStep, RetryRules, AttemptHistory};
/// use ichido_core::ledger::Profile;
/// use ichido_core::retry::{Budget, BudgetSettings, Retry, Safety};
/// use ichido_core::time::Timestamp;
/// use ichido_core::verdict::{NetworkFault, Seen};
///
/// let rules = RetryRules {
///     retry: Retry::CLIENT,
///     retry_after_max: Duration::from_mins(1),
///     profile: Profile::Ichido,
/// };
/// let context = DecisionContext {
///     now: Timestamp::from_secs(1_800_000_000),
///     left: Duration::from_secs(120),
///     budget: Some(Budget::full(BudgetSettings::DEFAULT)),
/// };
/// let lost = Seen::Network(NetworkFault::Broken);
/// let keyed = next::decide(&rules, Safety::Keyed, AttemptHistory::NONE, &lost, context, 0.5);
/// let NextStep::Retry { wait, tries } = keyed.next else {
///     panic!("a lost try of a keyed action is made again");
/// };
/// assert_eq!((wait, tries.sent), (Duration::from_millis(1_050), 1));
/// assert_ne!(keyed.budget, context.budget, "it is paid for");
///
/// let unkeyed = next::decide(&rules, Safety::Neither, AttemptHistory::NONE, &lost, context, 0.5);
/// assert!(matches!(unkeyed.next, NextStep::GiveUp { why: next::Why::NoKey, .. }));
/// ```
pub fn decide(
    rules: &RetryRules,
    safety: Safety,
    before: AttemptHistory,
    seen: &Seen<'_>,
    context: DecisionContext,
    dice: f64,
) -> Decision {
    // Where no key was sent, no answer speaks of one: a 409 or a 422 is what it is everywhere.
    let is_keyed = safety == Safety::Keyed;
    let table = if is_keyed { rules.profile.client_table() } else { Table::client() };
    let verdict = table.judge(seen, context.now);
    let effect = before.effect.after(verdict.effect);
    let in_flight = verdict.code == Some(ErrorCode::InProgress);
    let tries = AttemptHistory {
        sent: before.sent.saturating_add(1),
        failed: before.failed.saturating_add(u32::from(!in_flight)),
        effect,
    };
    let unpaid = |next| Decision { next, budget: context.budget };
    match verdict.next(safety, before.effect) {
        verdict::Next::Sent | verdict::Next::SentBefore => done(before, context.budget),
        // What a server keeps under a key it says again, however often it is asked.
        verdict::Next::Retry if is_keyed && !in_flight && is_kept(seen) => {
            unpaid(NextStep::Refused { effect, reason: Refusal::KeptFailure })
        }
        verdict::Next::Retry => retry(rules, tries, &verdict, context, dice),
        verdict::Next::Dead | verdict::Next::RetryAnswer => {
            let is_conflict = verdict.code == Some(ErrorCode::KeyConflict);
            let reason = if is_conflict { Refusal::KeyConflict } else { Refusal::ByServer };
            unpaid(NextStep::Refused { effect, reason })
        }
        // The same answer would be tried again under a key: it is the key that is missing.
        verdict::Next::AskAfter if verdict.advice == Advice::Retry => {
            unpaid(NextStep::GiveUp { why: Why::NoKey, effect })
        }
        verdict::Next::AskAfter => unpaid(NextStep::GiveUp { why: Why::AnotherKey, effect }),
    }
}

/// Whoever succeeds without a failure before it pays in for those who do not.
fn done(before: AttemptHistory, budget: Option<Budget>) -> Decision {
    let budget = if before.failed == 0 { budget.map(Budget::after_success) } else { budget };
    Decision { next: NextStep::Done, budget }
}

fn is_kept(seen: &Seen<'_>) -> bool {
    matches!(seen, Seen::Answer(answer) if says_replay(answer.headers.iter().copied()))
}

fn retry(
    rules: &RetryRules,
    tries: AttemptHistory,
    verdict: &Verdict,
    context: DecisionContext,
    dice: f64,
) -> Decision {
    let give_up =
        |why| Decision { next: NextStep::GiveUp { why, effect: tries.effect }, budget: context.budget };
    if !rules.retry.may_try_again(tries.failed) || TRIES_MAX <= tries.sent {
        return give_up(Why::TriesSpent);
    }
    if let Some(hint) = verdict.hint.filter(|hint| rules.retry_after_max < *hint) {
        return give_up(Why::AskedToWait { come_back_at: context.now.plus(hint) });
    }
    let in_flight = verdict.code == Some(ErrorCode::InProgress);
    // Whoever is still at work is asked at the pace of a first failure, or at its own: the waits grow for those who fail.
    let nth = if in_flight { 1 } else { tries.failed };
    let wait = rules.retry.wait(NonZeroU32::new(nth).unwrap_or(NonZeroU32::MIN), dice, verdict.hint);
    if let Err(TooLate { come_back_at }) = Retry::due(context.now, wait, Some(context.now.plus(context.left)))
    {
        return give_up(Why::OutOfTime { come_back_at });
    }
    let paid = match context.budget {
        Some(budget) if !in_flight => budget.spend().map(Some),
        free => Some(free),
    };
    match paid {
        Some(budget) => Decision { next: NextStep::Retry { wait, tries }, budget },
        None => give_up(Why::BudgetSpent),
    }
}

#[cfg(test)]
mod tests;
