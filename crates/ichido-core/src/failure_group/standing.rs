//! The state of a failure group.

use crate::time::Timestamp;

crate::words! {
    /// Whether a person takes care of a failure group.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum GroupState {
        /// Nobody has looked at it yet.
        Open = "open",
        /// A person works on it.
        Acknowledged = "acknowledged",
        /// A person has fixed the cause.
        Resolved = "resolved",
        /// It failed again after it was resolved.
        CameBack = "came_back",
    }
}

/// What may change the state of a failure group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// A message failed for the group's reason.
    Failed,
    /// A person works on it.
    Acknowledged,
    /// A person has fixed the cause.
    Resolved,
}

impl GroupState {
    /// Returns the state after an event.
    #[must_use]
    pub const fn step(self, event: GroupEvent) -> Self {
        match (self, event) {
            (_, GroupEvent::Resolved) => Self::Resolved,
            (Self::Open, GroupEvent::Failed) => Self::Open,
            // The person who works on it knows that it fails.
            (_, GroupEvent::Acknowledged) | (Self::Acknowledged, GroupEvent::Failed) => Self::Acknowledged,
            (Self::Resolved | Self::CameBack, GroupEvent::Failed) => Self::CameBack,
        }
    }

    /// Returns how much a group needs a person; groups that need one more are listed first.
    pub const fn urgency(self) -> u8 {
        match self {
            Self::Open | Self::CameBack => 2,
            Self::Acknowledged => 1,
            Self::Resolved => 0,
        }
    }
}

/// The state of a failure group, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStanding {
    /// The state.
    pub state: GroupState,
    /// Since when.
    pub since: Timestamp,
}

impl GroupStanding {
    /// The standing of a group whose first failure was at this time.
    pub const fn new(first_seen: Timestamp) -> Self {
        Self { state: GroupState::Open, since: first_seen }
    }

    /// Returns the standing after an event at this time.
    ///
    /// A failure from before the current state began changes nothing: failures are reported late and in any order.
    #[must_use]
    pub fn after(self, event: GroupEvent, at: Timestamp) -> Self {
        if event == GroupEvent::Failed && at <= self.since {
            return self;
        }
        let state = self.state.step(event);
        if state == self.state { self } else { Self { state, since: at } }
    }
}
