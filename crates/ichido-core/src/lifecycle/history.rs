//! The attempts made for a message, and what is still unknown about them.

use std::num::NonZeroU32;

use crate::fence::Fence;
use crate::retry::{Guarantee, Safety};
use crate::time::Timestamp;
use crate::verdict::Effect;

/// The attempts made for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The attempts that count, including the current one.
    pub attempts: u32,
    /// The attempts allowed, including the first one.
    pub max_attempts: NonZeroU32,
    /// Workers that died while they called with only this message.
    pub deaths: u32,
    /// A worker died while it held this message.
    ///
    /// The next claim takes it alone and with a start mark, to see whether it was the cause.
    pub suspect: bool,
    /// What is unknown about the attempts so far.
    pub doubt: Option<Doubt>,
    /// The last claim.
    pub last_fence: Option<Fence>,
}

/// Some attempt may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// When the first such attempt was claimed.
    ///
    /// A receiver remembers a key from then on, for a limited time.
    pub since: Timestamp,
    /// Until when the last such attempt may still be in transit.
    ///
    /// Nobody may decide "not done" before that.
    pub in_flight_until: Timestamp,
}

impl History {
    /// How many worker deaths are charged to one message before it is quarantined.
    ///
    /// Two: the machine may cause the first death, the message causes the second.
    pub const MAX_DEATHS: u32 = 2;

    /// Creates a history without attempts.
    pub const fn new(max_attempts: NonZeroU32) -> Self {
        Self { attempts: 0, max_attempts, deaths: 0, suspect: false, doubt: None, last_fence: None }
    }

    /// Returns whether an attempt is left.
    pub const fn has_attempts_left(&self) -> bool {
        self.attempts < self.max_attempts.get()
    }

    /// Returns what is known of the effect of all attempts so far.
    pub const fn effect(&self) -> Effect {
        match self.doubt {
            Some(_) => Effect::Unknown,
            None => Effect::NotDone,
        }
    }

    /// Returns what another call could do, given the receiver's guarantee.
    ///
    /// A worker calls this right before an attempt. If an earlier attempt is in doubt and the result is
    /// [`Safety::None`], because the receiver has forgotten the key since, the worker reports
    /// [`super::Failure::InDoubt`] instead of calling.
    pub fn safety(&self, guarantee: Guarantee, now: Timestamp) -> Safety {
        guarantee.safety(self.doubt.map(|doubt| doubt.since), now)
    }

    pub(super) const fn claimed(self, fence: Fence) -> Self {
        Self { attempts: self.attempts.saturating_add(1), last_fence: Some(fence), ..self }
    }

    pub(super) const fn given_back(self) -> Self {
        Self { attempts: self.attempts.saturating_sub(1), ..self }
    }

    /// Records that the attempt claimed at `claimed_at` may have taken effect.
    pub(super) fn with_doubt(self, claimed_at: Timestamp, in_flight_until: Timestamp) -> Self {
        let doubt = match self.doubt {
            Some(doubt) => Doubt { in_flight_until: doubt.in_flight_until.max(in_flight_until), ..doubt },
            None => Doubt { since: claimed_at, in_flight_until },
        };
        Self { doubt: Some(doubt), ..self }
    }

    /// Returns until when some attempt may still be in transit.
    pub(super) fn in_flight_until(&self) -> Option<Timestamp> {
        self.doubt.map(|doubt| doubt.in_flight_until)
    }

    /// Records proof that no attempt took effect.
    pub(super) const fn without_doubt(self) -> Self {
        Self { doubt: None, ..self }
    }

    /// Resets the counts for a second life.
    ///
    /// The last fence stays, so a zombie of the first life is still recognized. A doubt stays too, because no requeue
    /// can remove it.
    // SPEC E4.
    pub(super) const fn with_reset_counts(self) -> Self {
        Self { attempts: 0, deaths: 0, suspect: false, ..self }
    }
}
