//! What has been tried for a message, and what is still in doubt.

use std::num::NonZeroU32;

use crate::fence::Fence;
use crate::retry::{Guarantee, Safety};
use crate::time::Timestamp;
use crate::verdict::Effect;

/// What has been tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Tries that count, the present one included.
    pub tries: u32,
    /// Tries allowed, the first one included.
    pub tries_allowed: NonZeroU32,
    /// Workers that died while they called with this message and no other.
    pub deaths: u32,
    /// A worker died holding this message: the next claim takes it alone and with a start mark, to see whether it was the cause.
    pub suspect: bool,
    /// What is not known of the tries so far.
    pub doubt: Option<Doubt>,
    /// The last claim.
    pub last_fence: Option<Fence>,
}

/// Some try may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// When the first such try was claimed. A receiver remembers a key from then on, and for a time only.
    pub since: Timestamp,
    /// Until when the last such try may still be travelling: nobody decides before that it was not done.
    pub travels_until: Timestamp,
}

impl History {
    /// Workers that one message may take with it before it is put in quarantine.
    ///
    /// Two: the first death may be the machine's, the second is the message's.
    pub const DEATHS_MAX: u32 = 2;

    /// Nothing tried yet.
    pub const fn new(tries_allowed: NonZeroU32) -> Self {
        Self { tries: 0, tries_allowed, deaths: 0, suspect: false, doubt: None, last_fence: None }
    }

    /// Whether a try is left.
    pub const fn may_try_again(&self) -> bool {
        self.tries < self.tries_allowed.get()
    }

    /// What is known of the effect of all tries so far.
    pub const fn effect(&self) -> Effect {
        match self.doubt {
            Some(_) => Effect::Unknown,
            None => Effect::NotDone,
        }
    }

    /// What a further call could do, given what its receiver promises.
    ///
    /// A worker asks this right before it calls: where an earlier try is in doubt and the answer is
    /// [`Safety::Neither`], because the receiver has forgotten the key since, it reports
    /// [`super::Failure::InDoubt`] instead of calling.
    pub fn safety(&self, guarantee: Guarantee, now: Timestamp) -> Safety {
        guarantee.safety(self.doubt.map(|doubt| doubt.since), now)
    }

    pub(super) const fn claimed(self, fence: Fence) -> Self {
        Self { tries: self.tries.saturating_add(1), last_fence: Some(fence), ..self }
    }

    pub(super) const fn given_back(self) -> Self {
        Self { tries: self.tries.saturating_sub(1), ..self }
    }

    /// The try that was claimed then may have taken effect.
    pub(super) fn doubted(self, claimed_at: Timestamp, travels_until: Timestamp) -> Self {
        let doubt = match self.doubt {
            Some(doubt) => Doubt { travels_until: doubt.travels_until.max(travels_until), ..doubt },
            None => Doubt { since: claimed_at, travels_until },
        };
        Self { doubt: Some(doubt), ..self }
    }

    /// Until when some try may still be travelling.
    pub(super) fn travels_until(&self) -> Option<Timestamp> {
        self.doubt.map(|doubt| doubt.travels_until)
    }

    /// Proof came that none of the tries took effect.
    pub(super) const fn cleared(self) -> Self {
        Self { doubt: None, ..self }
    }

    /// A second life (SPEC E4): the count is back at 0. The last fence stays, so that a zombie of the first
    /// life is still told apart, and so does a doubt, which no requeue can take away.
    pub(super) const fn reborn(self) -> Self {
        Self { tries: 0, deaths: 0, suspect: false, ..self }
    }
}
