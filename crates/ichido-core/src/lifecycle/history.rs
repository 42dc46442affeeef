//! What has been tried for a message, and what is still in doubt.

use std::num::NonZeroU32;

use crate::fence::Fence;
use crate::time::Timestamp;
use crate::verdict::Effect;

/// What has been tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Tries that count, the present one included.
    pub tries: u32,
    /// Tries allowed, the first one included.
    pub tries_allowed: NonZeroU32,
    /// Workers that died holding this message and no other.
    pub deaths: u32,
    /// A worker died holding this message among others: the next claim must take it alone, to see who did it.
    pub suspect: bool,
    /// When the first try was made whose effect is still unknown.
    ///
    /// A receiver remembers a key for a time only: a repetition counts as covered while it is younger than that.
    pub doubt_since: Option<Timestamp>,
    /// The last claim.
    pub last_fence: Option<Fence>,
}

impl History {
    /// Workers that one message may take with it before it is put in quarantine.
    ///
    /// Two: the first death alone may be the machine's, the second is the message's.
    pub const DEATHS_MAX: u32 = 2;

    /// Nothing tried yet.
    pub const fn new(tries_allowed: NonZeroU32) -> Self {
        Self {
            tries: 0,
            tries_allowed,
            deaths: 0,
            suspect: false,
            doubt_since: None,
            last_fence: None,
        }
    }

    /// Whether a try is left.
    pub const fn may_try_again(&self) -> bool {
        self.tries < self.tries_allowed.get()
    }

    /// What is known of the effect of all tries so far.
    pub const fn effect(&self) -> Effect {
        match self.doubt_since {
            Some(_) => Effect::Unknown,
            None => Effect::NotDone,
        }
    }

    pub(super) const fn claimed(self, fence: Fence) -> Self {
        Self {
            tries: self.tries.saturating_add(1),
            last_fence: Some(fence),
            ..self
        }
    }

    pub(super) const fn given_back(self) -> Self {
        Self {
            tries: self.tries.saturating_sub(1),
            ..self
        }
    }

    pub(super) fn after(self, effect: Effect, now: Timestamp) -> Self {
        match effect {
            Effect::NotDone => self,
            Effect::Unknown | Effect::Done => Self {
                doubt_since: self.doubt_since.or(Some(now)),
                ..self
            },
        }
    }

    /// Proof came that none of the tries took effect.
    pub(super) const fn cleared(self) -> Self {
        Self {
            doubt_since: None,
            ..self
        }
    }

    /// A second life (SPEC E4): the count is back at 0. The last fence stays, so that a zombie of the first
    /// life is still told apart, and so does a doubt, which no requeue can take away.
    pub(super) const fn reborn(self) -> Self {
        Self {
            tries: 0,
            deaths: 0,
            suspect: false,
            ..self
        }
    }
}
