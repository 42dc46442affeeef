//! Moments to send at, handed out in bulk.
//!
//! Guarantee: a slot is handed out once. Slots lie at least the pace's spacing apart, across all nodes that
//! share the pace, and never further ahead than the settings' horizon.
//!
//! Slots that were handed out are not called back when the rate falls: they are few, and a pause or an open circuit voids them.

use std::time::Duration;

use crate::time::Timestamp;

/// The answer to a node that asks for slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Send at these moments.
    Slots(Slots),
    /// Nothing is free within the horizon.
    Wait {
        /// Ask again then.
        until: Timestamp,
        /// What is in the way.
        why: Hold,
    },
}

/// What keeps a destination from being called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The next slot is too far ahead.
    Rate,
    /// The destination asked for a pause.
    Paused,
    /// The circuit is open.
    Circuit,
}

/// A row of moments, evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    next: Timestamp,
    spacing: Duration,
    left: u32,
}

impl Slots {
    /// As many of `count` slots from `first` on as lie no later than `horizon`; `None` when the first does not.
    pub(super) fn cut(first: Timestamp, spacing: Duration, count: u32, horizon: Timestamp) -> Option<Self> {
        if count == 0 || horizon < first {
            return None;
        }
        let room = horizon.since(first).as_nanos();
        let after_first = room.checked_div(spacing.as_nanos()).unwrap_or(u128::MAX);
        let left = u32::try_from(after_first).unwrap_or(u32::MAX).saturating_add(1).min(count);
        Some(Self { next: first, spacing, left })
    }

    /// The first moment.
    pub const fn first(&self) -> Timestamp {
        self.next
    }

    /// The last moment.
    pub fn last(&self) -> Timestamp {
        self.next.plus(self.spacing.saturating_mul(self.left.saturating_sub(1)))
    }

    /// How many there are.
    pub const fn count(&self) -> u32 {
        self.left
    }

    /// The moments, in order.
    pub fn moments(self) -> impl Iterator<Item = Timestamp> {
        (0..self.left).map(move |given| self.next.plus(self.spacing.saturating_mul(given)))
    }
}
