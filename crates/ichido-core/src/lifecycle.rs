//! The life cycle of an outgoing message.
//!
//! Guarantee: [`State::step`] is total: each pair of state and event gives the next state or a named error that changes
//! nothing. Only the holder of the current fence settles a message. Only an operator's requeue leaves a final state
//! (sent, dead, cancelled): it requeues a dead message if the queue allows it and the effect cannot happen twice.
//!
//! ```text
//!            claim              success
//!  queued ─────────▶ sending ───────────▶ sent
//!    ▲  ▲              │ │ │
//!    │  │ due / claim  │ │ └─ permanent failure ─▶ dead ◀─┐
//!    │  └── failed ◀───┘ │                         │      │
//!    │        └─────── attempts spent────────────▶─┘      │
//!    │                   └─ effect unknown ─▶ parked ─────┤ decided
//!    └───────────────────────────────────────────┘        └▶ sent, queued
//!  queued, failed ─▶ cancelled        failed, dead, parked ─▶ queued (an operator's requeue)
//!  sending ─▶ cancelled (the attempt stopped on request, without an effect)
//! ```
//!
//! Start at [`State::advance`]. [`Event::from_attempt`] turns what [`crate::verdict`] says about an attempt into an event.
// SPEC D2, D12, D17, E1, E2, F2.

mod attempt;
mod history;
mod state_name;
mod step;

pub use attempt::AttemptResult;
pub use history::{Doubt, History};
pub use state_name::StateName;
pub use step::{IllegalStep, StepRefusal};

use crate::fence::Fence;
use crate::retry::Safety;
use crate::time::Timestamp;
use crate::verdict::Effect;

/// The state of a message, with the data that only this state has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits to be claimed.
    Queued {
        /// The earliest time of the next attempt.
        due: Timestamp,
        /// The attempts so far.
        history: History,
    },
    /// A worker has claimed it.
    Sending {
        /// The fence of the claim.
        fence: Fence,
        /// When it was claimed.
        claimed_at: Timestamp,
        /// Whether the call has started.
        start_mark: StartMark,
        /// Whether a late response proved that an earlier attempt did the work.
        ///
        /// Then the message is sent, however this attempt ends.
        proven: bool,
        /// The attempts so far, including this one.
        history: History,
    },
    /// An attempt failed.
    ///
    /// The message waits for the next one or, without one left, for its death.
    Failed {
        /// The earliest time of the next attempt.
        due: Timestamp,
        /// The attempts so far.
        history: History,
    },
    /// It is unknown whether it took effect, and sending it again could apply it twice.
    ///
    /// "Not done" counts only when its call can no longer be in transit: [`Doubt::in_flight_until`].
    Parked {
        /// The attempts so far.
        history: History,
    },
    /// It took effect.
    Sent,
    /// It is dead-lettered.
    Dead {
        /// What is known of the effect of all its attempts.
        effect: Effect,
        /// The attempts so far.
        history: History,
    },
    /// It was cancelled before it was sent, or its attempt stopped on request.
    Cancelled {
        /// What is known of the effect of all its attempts.
        effect: Effect,
        /// The attempts so far.
        history: History,
    },
}

/// Whether a worker has started the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMark {
    /// The worker writes a durable start mark before the call and has not yet.
    ///
    /// Nothing was done.
    NotYet,
    /// The start mark exists: anything may have been done.
    Written,
    /// This queue writes no start marks, so anything may have been done since the claim.
    NotTracked,
}

/// An event in the life of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker claims it.
    Claimed {
        /// A new fence, greater than any before.
        fence: Fence,
        /// [`StartMark::NotYet`] if the queue writes start marks, and for every suspect.
        start_mark: StartMark,
    },
    /// The worker is about to call.
    Started {
        /// The fence of the claim.
        fence: Fence,
    },
    /// It took effect.
    Succeeded {
        /// The fence of the claim.
        fence: Fence,
    },
    /// The attempt failed.
    Failed {
        /// The fence of the claim.
        fence: Fence,
        /// How it failed and what follows.
        failure: Failure,
        /// What is known of the effect of this attempt.
        effect: Effect,
        /// What a repetition could do.
        safety: Safety,
        /// Until when the call may still be in transit, if its effect is unknown.
        ///
        /// Claim time if the receiver answered. Otherwise claim time + the call's timeout + the longest time a proxy may
        /// hold it; ten minutes if unknown.
        in_flight_until: Timestamp,
    },
    /// The worker returned it without starting (a graceful stop, a snooze).
    ///
    /// The attempt does not count.
    GivenBack {
        /// The fence of the claim.
        fence: Fence,
        /// When it may be claimed again.
        due: Timestamp,
    },
    /// The attempt stopped because somebody asked to cancel the message, and it had no effect.
    Stopped {
        /// The fence of the claim.
        fence: Fence,
    },
    /// The worker died: its lease lapsed.
    WorkerDied {
        /// The claim that lapsed.
        fence: Fence,
        /// Whether the worker held only this message, so the death can be charged to it.
        // SPEC E2.
        alone: bool,
        /// What a repetition could do.
        safety: Safety,
        /// The earliest time of the next attempt, if the death is charged and an attempt is left.
        due: Timestamp,
        /// Until when the call may still be in transit.
        ///
        /// It is claim time + the call's timeout + the longest time a proxy may hold it; ten minutes if unknown.
        in_flight_until: Timestamp,
    },
    /// The backoff is over.
    CameDue,
    /// The last attempt failed: no more are allowed.
    Spent,
    /// A late response to a lost claim proves that the work was done.
    ///
    /// If the message is being sent again, its holder keeps it, and it counts as sent when that attempt ends.
    LateSuccess {
        /// The claim the response belongs to.
        ///
        /// The store issues fences, so it guarantees that the fence was this message's.
        fence: Fence,
    },
    /// The receiver was asked by key, and its response is proof.
    Reconciled(Reconciled),
    /// A person decided about a parked message.
    Decided(Decision),
    /// An operator requeues a dead message, or a parked one whose destination's guarantee covers it by now.
    ///
    /// Their attempts restart at 0. A failed message becomes due at once, and its attempts still count.
    Requeued {
        /// Whether the queue allows it for dead messages.
        // SPEC D17.
        allowed: bool,
        /// What a repetition could do.
        safety: Safety,
    },
    /// An operator discards a dead message. It stays dead.
    Discarded,
    /// An operator made a new message from a dead one.
    ///
    /// It stays dead and must not be sent in addition to the new one.
    Replaced,
    /// The message is cancelled between two attempts. One in flight is asked to stop: [`Event::Stopped`].
    Cancelled,
}

/// How an attempt failed and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It may be retried.
    Retry {
        /// The earliest time of the next attempt.
        due: Timestamp,
    },
    /// No retry can succeed.
    Permanent,
    /// The outcome must be found out, whatever a repetition could do.
    InDoubt,
}

/// What a receiver says when asked by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconciled {
    /// It was done.
    Done,
    /// It was not done.
    NotDone {
        /// The earliest time of the next attempt, if one is left.
        due: Timestamp,
    },
}

/// A person's decision about a parked message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It was not done: send it again.
    NotDone,
    /// It was done.
    Done,
    /// It is given up; the effect stays unknown.
    GiveUp,
}

impl Event {
    /// Returns the stable name used in the audit trail and in errors.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Claimed { .. } => "claimed",
            Self::Started { .. } => "began",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::GivenBack { .. } => "given_back",
            Self::Stopped { .. } => "stopped",
            Self::WorkerDied { .. } => "worker_died",
            Self::CameDue => "came_due",
            Self::Spent => "spent",
            Self::LateSuccess { .. } => "late_success",
            Self::Reconciled(_) => "reconciled",
            Self::Decided(_) => "decided",
            Self::Requeued { .. } => "requeued",
            Self::Discarded => "discarded",
            Self::Replaced => "replaced",
            Self::Cancelled => "cancelled",
        }
    }
}

impl State {
    /// Creates a new message.
    pub fn queued(due: Timestamp, max_attempts: std::num::NonZeroU32) -> Self {
        Self::Queued { due, history: History::new(max_attempts) }
    }

    /// Returns whether only an operator can move it.
    pub const fn is_final(&self) -> bool {
        self.state_name().is_final()
    }

    /// Returns the stable name used in the API, the metrics and the database.
    pub const fn name(&self) -> &'static str {
        self.state_name().as_str()
    }

    /// Returns the attempts so far; `None` once it is sent.
    pub const fn history(&self) -> Option<History> {
        match *self {
            Self::Queued { history, .. }
            | Self::Sending { history, .. }
            | Self::Failed { history, .. }
            | Self::Parked { history }
            | Self::Dead { history, .. }
            | Self::Cancelled { history, .. } => Some(history),
            Self::Sent => None,
        }
    }

    /// Returns what is known of the effect of all its attempts.
    pub const fn effect(&self) -> Effect {
        match self {
            Self::Sent => Effect::Done,
            Self::Dead { effect, .. } | Self::Cancelled { effect, .. } => *effect,
            Self::Queued { history, .. }
            | Self::Sending { history, .. }
            | Self::Failed { history, .. }
            | Self::Parked { history } => history.effect(),
        }
    }

    /// Applies an event and, if it used the last attempt, the resulting death.
    ///
    /// Stores call this function.
    ///
    /// Returns both states, because each transition is an entry in the audit trail. The last one is the state to store.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use ichido_core::fence::Fence;
    /// use ichido_core::lifecycle::{StartMark, Event, Failure, State};
    /// use ichido_core::retry::Safety;
    /// use ichido_core::time::Timestamp;
    /// use ichido_core::verdict::Effect;
    ///
    /// let (now, later) = (Timestamp::from_secs(100), Timestamp::from_secs(160));
    /// let fence = Fence::new(1).unwrap();
    /// let only_try = State::queued(now, NonZeroU32::MIN);
    /// let (sending, _) = only_try.advance(Event::Claimed { fence, start_mark: StartMark::NotTracked }, now)?;
    ///
    /// let failed = Event::Failed {
    ///     fence,
    ///     failure: Failure::Retry { due: later },
    ///     effect: Effect::NotDone,
    ///     safety: Safety::Keyed,
    ///     in_flight_until: later,
    /// };
    /// let (failed, dead) = sending.advance(failed, now)?;
    /// assert_eq!((failed.name(), dead.unwrap().name()), ("failed", "dead"));
    /// # Ok::<(), ichido_core::lifecycle::IllegalStep>(())
    /// ```
    // SPEC D2, D13.
    pub fn advance(self, event: Event, now: Timestamp) -> Result<(Self, Option<Self>), IllegalStep> {
        let next = self.step(event, now)?;
        match next {
            Self::Failed { history, .. } if !history.has_attempts_left() => {
                Ok((next, Some(next.step(Event::Spent, now)?)))
            }
            _ => Ok((next, None)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
