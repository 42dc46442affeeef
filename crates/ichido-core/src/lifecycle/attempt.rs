//! Turns the verdict about an attempt into an event.

use super::{Event, Failure};
use crate::fence::Fence;
use crate::retry::Safety;
use crate::time::Timestamp;
use crate::verdict::{Effect, NextStep};

/// What a worker knows about its own attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptResult {
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
    /// Claim time if the receiver answered ([`Verdict::is_answered`](crate::verdict::Verdict::is_answered)).
    /// Otherwise claim time + the call's timeout + the longest time a proxy may hold it; ten minutes if unknown.
    pub in_flight_until: Timestamp,
}

impl Event {
    /// Returns the event for an attempt with this verdict.
    ///
    /// Asking again for a usable response is an attempt like any other here: the outbox has no separate budget for it.
    pub const fn from_attempt(next: NextStep, tried: AttemptResult) -> Self {
        let AttemptResult { fence, effect, safety, due, in_flight_until } = tried;
        let failure = match next {
            NextStep::Sent | NextStep::SentBefore => return Self::Succeeded { fence },
            NextStep::Retry | NextStep::RetryAnswer => Failure::Retry { due },
            NextStep::Dead => Failure::Permanent,
            NextStep::Reconcile => Failure::InDoubt,
        };
        Self::Failed { fence, failure, effect, safety, in_flight_until }
    }
}
