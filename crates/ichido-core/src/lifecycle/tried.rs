//! From what follows a try to the event that says so.

use super::{Event, Failure};
use crate::fence::Fence;
use crate::retry::Safety;
use crate::time::Timestamp;
use crate::verdict::{Effect, Next};

/// What a worker knows of its own try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The holder's claim.
    pub fence: Fence,
    /// What is known of the effect of this try: that of its verdict.
    pub effect: Effect,
    /// What a repetition could do: the same that [`crate::verdict::Verdict::next`] was asked with.
    pub safety: Safety,
    /// When the next try may be, if there is one.
    pub due: Timestamp,
    /// Until when the call may still be travelling: claim + the call's own time-out + the longest a proxy on the
    /// way may hold it; ten minutes if not known.
    pub travels_until: Timestamp,
}

impl Event {
    /// What happens to a message whose try was judged so.
    ///
    /// A usable answer asked for again is a try like any other here: the outbox has no budget of its own for it.
    pub const fn of_try(next: Next, tried: Tried) -> Self {
        let Tried { fence, effect, safety, due, travels_until } = tried;
        let failure = match next {
            Next::Sent | Next::SentBefore => return Self::Succeeded { fence },
            Next::Retry | Next::RetryAnswer => Failure::Again { due },
            Next::Dead => Failure::ForGood,
            Next::AskAfter => Failure::InDoubt,
        };
        Self::Failed { fence, failure, effect, safety, travels_until }
    }
}
