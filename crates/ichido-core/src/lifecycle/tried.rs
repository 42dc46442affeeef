//! Turns the verdict about an attempt into an event.

use super::{Event, Failure};
use crate::fence::Fence;
use crate::retry::Safety;
use crate::time::Timestamp;
use crate::verdict::{Effect, Next};

/// What a worker knows about its own attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The fence of the claim.
    pub fence: Fence,
    /// What its verdict says about the effect of this attempt.
    pub effect: Effect,
    /// What a repetition could do: the value passed to [`crate::verdict::Verdict::next`].
    pub safety: Safety,
    /// The earliest time of the next attempt, if there is one.
    pub due: Timestamp,
    /// Until when the call may still be in transit.
    ///
    /// It is claim time + the call's timeout + the longest time a proxy may hold it; ten minutes if unknown.
    pub travels_until: Timestamp,
}

impl Event {
    /// Returns the event for an attempt with this verdict.
    ///
    /// Asking again for a usable response is an attempt like any other here: the outbox has no separate budget for it.
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
