//! The life of a message that must leave (SPEC D2, D12, D17, E1, E2, F2).
//!
//! Guarantee: [`State::step`] is total: each pair of state and event either gives the next state or is
//! refused by name, and nothing changes. Only the holder of the current fence settles a message. A final state
//! (sent, dead, cancelled) is left by nothing but an operator's requeue of a dead one, where the queue
//! allows it and the effect cannot happen twice.
//!
//! ```text
//!            claim              success
//!  queued ─────────▶ sending ───────────▶ sent
//!    ▲  ▲              │ │ │
//!    │  │ due / claim  │ │ └─ no retry can mend ─▶ dead ◀─┐
//!    │  └── failed ◀───┘ │                         │      │
//!    │        └─────── tries spent ──────────────▶─┘      │
//!    │                   └─ effect unknown ─▶ parked ─────┤ decided
//!    └───────────────────────────────────────────┘        └▶ sent, queued
//!  queued, failed ─▶ cancelled        dead ─▶ queued (an operator's requeue)
//! ```
//!
//! Start at [`State::advance`]. [`Event::of_try`] makes the event of a try from what [`crate::verdict`] says of it.

mod history;
mod stage;
mod step;
mod tried;

pub use history::{Doubt, History};
pub use stage::Stage;
pub use step::{IllegalStep, Why};
pub use tried::Tried;

use crate::fence::Fence;
use crate::retry::Safety;
use crate::time::Timestamp;
use crate::verdict::Effect;

/// Where a message is. A state carries what only it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits to be claimed.
    Queued {
        /// Not before this moment.
        due: Timestamp,
        /// What has been tried.
        history: History,
    },
    /// A worker holds it.
    Sending {
        /// The holder's claim.
        fence: Fence,
        /// When it was claimed.
        claimed_at: Timestamp,
        /// Whether the call has begun.
        begun: Begun,
        /// Whether an earlier try is known to have done it, by an answer that came late: then it is sent, however this one ends.
        proven: bool,
        /// What has been tried, this try included.
        history: History,
    },
    /// A try failed; it waits for the next one, or, with no try left, for its death.
    Failed {
        /// The next try is not before this moment.
        due: Timestamp,
        /// What has been tried.
        history: History,
    },
    /// Nobody knows whether it took effect, and sending it again could do it twice.
    ///
    /// That it was not done counts only when its call can no longer be travelling: [`Doubt::travels_until`].
    Parked {
        /// What has been tried.
        history: History,
    },
    /// It took effect.
    Sent,
    /// Given up.
    Dead {
        /// What is known of the effect of all its tries.
        effect: Effect,
        /// What has been tried.
        history: History,
    },
    /// Withdrawn before it was sent.
    Cancelled {
        /// What is known of the effect of all its tries.
        effect: Effect,
        /// What has been tried.
        history: History,
    },
}

/// Whether a worker has begun the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// A durable mark is made before the call, and is not there yet: nothing was done.
    NotYet,
    /// The mark is there: anything may have been done.
    Yes,
    /// This queue makes no marks, so from the claim on anything may have been done.
    NotTracked,
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker takes it.
    Claimed {
        /// A new fence, greater than any before.
        fence: Fence,
        /// [`Begun::NotYet`] where the queue marks the beginning of calls, and for every suspect.
        begun: Begun,
    },
    /// The worker is about to call.
    Began {
        /// The holder's claim.
        fence: Fence,
    },
    /// It took effect.
    Succeeded {
        /// The holder's claim.
        fence: Fence,
    },
    /// The try failed.
    Failed {
        /// The holder's claim.
        fence: Fence,
        /// How, and what follows.
        failure: Failure,
        /// What is known of the effect of this try.
        effect: Effect,
        /// What a repetition could do.
        safety: Safety,
        /// Until when the call may still be travelling, should its effect be unknown: claim + the call's own
        /// time-out + the longest a proxy on the way may hold it; ten minutes if not known.
        travels_until: Timestamp,
    },
    /// Not begun after all (a graceful stop, a snooze): the try does not count.
    GivenBack {
        /// The holder's claim.
        fence: Fence,
        /// When it may be claimed again.
        due: Timestamp,
    },
    /// The worker is gone: its lease lapsed.
    WorkerDied {
        /// The claim that lapsed.
        fence: Fence,
        /// Whether the worker held this message alone, so that it can be charged with the death (SPEC E2).
        alone: bool,
        /// What a repetition could do.
        safety: Safety,
        /// When the next try may be, if it is charged with the death and one is left.
        due: Timestamp,
        /// Until when the call may still be travelling: claim + the call's own time-out + the longest a proxy on
        /// the way may hold it; ten minutes if not known.
        travels_until: Timestamp,
    },
    /// The backoff is over.
    CameDue,
    /// The last try failed: no further one is allowed.
    Spent,
    /// An answer to a claim that was lost, come late: it proves that the work was done. A message that is being sent again is left
    /// to its holder, and is sent when that try has ended.
    LateSuccess {
        /// The claim it belongs to. Fences are the store's, so the store vouches that it was this message's.
        fence: Fence,
    },
    /// The receiver was asked by key, and its answer is proof.
    Reconciled(Found),
    /// A person decided about a parked message.
    Decided(Decision),
    /// An operator sends a dead one again.
    Requeued {
        /// Whether the queue allows it (SPEC D17).
        allowed: bool,
        /// What a repetition could do.
        safety: Safety,
    },
    /// An operator says that a dead one needs no more attention. It stays dead.
    Discarded,
    /// An operator made a new message from a dead one. It stays dead, and must not be sent again beside the new one.
    Replaced,
    /// Withdrawn.
    Cancelled,
}

/// How a try failed, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It may be tried again.
    Again {
        /// Not before this moment.
        due: Timestamp,
    },
    /// No retry can mend it.
    ForGood,
    /// It must be found out what happened, whatever a repetition could do.
    InDoubt,
}

/// What a receiver says when it is asked by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was done.
    Done,
    /// It was not done.
    NotDone {
        /// When the next try may be, if one is left.
        due: Timestamp,
    },
}

/// What a person decides about a parked message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It was not done: send it again.
    SendAgain,
    /// It was done.
    WasDone,
    /// Give it up; the effect stays unknown.
    GiveUp,
}

impl Event {
    /// The stable name, as the audit and errors have it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Claimed { .. } => "claimed",
            Self::Began { .. } => "began",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::GivenBack { .. } => "given_back",
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
    /// A new message.
    pub fn queued(due: Timestamp, tries_allowed: std::num::NonZeroU32) -> Self {
        Self::Queued { due, history: History::new(tries_allowed) }
    }

    /// Whether nothing moves it but an operator.
    pub const fn is_final(&self) -> bool {
        self.stage().is_final()
    }

    /// The stable name, as the API, the metrics and the database have it.
    pub const fn name(&self) -> &'static str {
        self.stage().as_str()
    }

    /// What has been tried; `None` once it is sent, where nothing asks for it.
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

    /// What is known of the effect of all its attempts.
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

    /// Applies an event and, where it used up the last try, the death that follows from it. This is what a store
    /// calls.
    ///
    /// Both states are returned, because each transition is an entry in the audit (SPEC D2, D13); the last of
    /// them is the one to keep.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use ichido_core::fence::Fence;
    /// use ichido_core::lifecycle::{Begun, Event, Failure, State};
    /// use ichido_core::retry::Safety;
    /// use ichido_core::time::Timestamp;
    /// use ichido_core::verdict::Effect;
    ///
    /// let (now, later) = (Timestamp::from_secs(100), Timestamp::from_secs(160));
    /// let fence = Fence::new(1).unwrap();
    /// let only_try = State::queued(now, NonZeroU32::MIN);
    /// let (sending, _) = only_try.advance(Event::Claimed { fence, begun: Begun::NotTracked }, now)?;
    ///
    /// let failed = Event::Failed {
    ///     fence,
    ///     failure: Failure::Again { due: later },
    ///     effect: Effect::NotDone,
    ///     safety: Safety::Keyed,
    ///     travels_until: later,
    /// };
    /// let (failed, dead) = sending.advance(failed, now)?;
    /// assert_eq!((failed.name(), dead.unwrap().name()), ("failed", "dead"));
    /// # Ok::<(), ichido_core::lifecycle::IllegalStep>(())
    /// ```
    pub fn advance(self, event: Event, now: Timestamp) -> Result<(Self, Option<Self>), IllegalStep> {
        let next = self.step(event, now)?;
        match next {
            Self::Failed { history, .. } if !history.may_try_again() => {
                Ok((next, Some(next.step(Event::Spent, now)?)))
            }
            _ => Ok((next, None)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
