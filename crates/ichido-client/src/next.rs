//! What to do after a try: the decision, without a clock, a socket or dice of its own.
//!
//! Guarantee: an action is sent again only after a network fault, a 5xx, 408 or 429 (SPEC A8), or while the server says that it is
//! still in flight (SPEC C6); never sooner than the server asked, never more often than [`Rules`] say, never past the deadline. Giving
//! up says what is known of the effect of all tries together.
//!
//! An answer of *in flight* uses up no try: the server is well and at work, and asking it again is how its outcome is learnt. Such asking
//! is bounded by the deadline, and by [`TRIES_MAX`] requests in all.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::retry::{Retry, Safety, TRIES_MAX, TooLate};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{self, Advice, Effect, ErrorCode, Seen, Table};

/// How often, and how patiently.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The waits, and the tries allowed.
    pub retry: Retry,
    /// The longest `Retry-After` that is waited for. A server that asks for more is not asked again sooner: it is given up on at
    /// once, with the time to come back.
    pub retry_after_max: Duration,
}

/// What was sent so far, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    /// Requests that were made, those included that only asked whether it is over.
    pub sent: u32,
    /// How many of them failed.
    pub failed: u32,
    /// What is known of the effect of all of them.
    pub effect: Effect,
}

impl Tries {
    /// Before the first.
    pub const NONE: Self = Self { sent: 0, failed: 0, effect: Effect::NotDone };
}

/// When a decision is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time of the day, for a server that says when to come back.
    pub now: Timestamp,
    /// How much is left of the total time.
    pub left: Duration,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It was done; the answer is the outcome.
    Done,
    /// The server will not do it, however often it is asked.
    Refused {
        /// What is known of the effect: an earlier try that was lost may still have done it.
        effect: Effect,
    },
    /// The same again after this long.
    Again {
        /// How long to wait.
        wait: Duration,
        /// What was sent so far, this try included.
        tries: Tries,
    },
    /// Not again.
    GiveUp {
        /// Why not.
        why: Why,
        /// What is known of the effect.
        effect: Effect,
    },
}

/// Why an action is not sent again, although the server did not refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// As many tries failed as are allowed.
    #[error("every try that is allowed was made")]
    TriesSpent,
    /// The server asked to be left alone for longer than [`Rules::retry_after_max`].
    #[error("the server asks to come back no sooner than {come_back_at}")]
    AskedToWait {
        /// When it wants to be asked again.
        come_back_at: Timestamp,
    },
    /// The next try would come after the deadline.
    #[error("the next try would be at {come_back_at}, after the time that all tries have together")]
    OutOfTime {
        /// When the next try would have been.
        come_back_at: Timestamp,
    },
    /// The answer carries another key than ours, so that it says nothing of our action.
    #[error("the answer is about another idempotency key than the one that was sent")]
    AnotherKey,
    /// It has no key, and may have been done (SPEC C4).
    #[error(
        "it changes state, has no idempotency key, and may have been done: sent again, it could be done twice; find out what \
         became of it, and give the next one a key"
    )]
    NoKey,
}

/// Decides, given what was seen of a try. `before` is what was sent before it; `dice` is uniform in [0, 1) and drawn by the caller.
///
/// ```
/// use std::time::Duration;
/// use ichido_client::next::{self, Moment, Next, Rules, Tries};
/// use ichido_core::retry::{Retry, Safety};
/// use ichido_core::time::Timestamp;
/// use ichido_core::verdict::{NetworkFault, Seen};
///
/// let rules = Rules { retry: Retry::CLIENT, retry_after_max: Duration::from_mins(1) };
/// let moment = Moment { now: Timestamp::from_secs(1_800_000_000), left: Duration::from_secs(120) };
/// let lost = Seen::Network(NetworkFault::Broken);
/// let Next::Again { wait, tries } = next::decide(&rules, Safety::Keyed, Tries::NONE, &lost, moment, 0.5) else {
///     panic!("a lost try of a keyed action is made again");
/// };
/// assert_eq!((wait, tries.sent), (Duration::from_millis(1_050), 1));
/// ```
pub fn decide(
    rules: &Rules,
    safety: Safety,
    before: Tries,
    seen: &Seen<'_>,
    moment: Moment,
    dice: f64,
) -> Next {
    let verdict = Table::client().judge(seen, moment.now);
    let effect = before.effect.after(verdict.effect);
    let in_flight = verdict.code == Some(ErrorCode::InProgress);
    let tries = Tries {
        sent: before.sent.saturating_add(1),
        failed: before.failed.saturating_add(u32::from(!in_flight)),
        effect,
    };
    match verdict.next(safety, before.effect) {
        verdict::Next::Sent | verdict::Next::SentBefore => Next::Done,
        verdict::Next::Retry => again(rules, tries, in_flight, verdict.hint, moment, dice),
        verdict::Next::Dead | verdict::Next::RetryAnswer => Next::Refused { effect },
        // The same answer would be tried again under a key: it is the key that is missing.
        verdict::Next::AskAfter if verdict.advice == Advice::Retry => {
            Next::GiveUp { why: Why::NoKey, effect }
        }
        verdict::Next::AskAfter => Next::GiveUp { why: Why::AnotherKey, effect },
    }
}

fn again(
    rules: &Rules,
    tries: Tries,
    in_flight: bool,
    hint: Option<Duration>,
    moment: Moment,
    dice: f64,
) -> Next {
    let give_up = |why| Next::GiveUp { why, effect: tries.effect };
    if !rules.retry.may_try_again(tries.failed) || TRIES_MAX <= tries.sent {
        return give_up(Why::TriesSpent);
    }
    if let Some(hint) = hint.filter(|hint| rules.retry_after_max < *hint) {
        return give_up(Why::AskedToWait { come_back_at: moment.now.plus(hint) });
    }
    // Whoever is still at work is asked at the pace of a first failure, or at its own: the waits grow for those who fail.
    let nth = if in_flight { 1 } else { tries.failed };
    let wait = rules.retry.wait(NonZeroU32::new(nth).unwrap_or(NonZeroU32::MIN), dice, hint);
    match Retry::due(moment.now, wait, Some(moment.now.plus(moment.left))) {
        Ok(_) => Next::Again { wait, tries },
        Err(TooLate { come_back_at }) => give_up(Why::OutOfTime { come_back_at }),
    }
}

#[cfg(test)]
mod tests;
