//! Times to send at, handed out in bulk.
//!
//! Guarantee: a slot is handed out once. Slots are at least the pace's spacing apart, across all nodes that share the
//! pace, and never further ahead than the settings' horizon.
//!
//! Slots that were handed out are not revoked when the rate falls: they are few, and a pause or an open circuit voids
//! them.

use std::time::Duration;

use crate::time::Timestamp;

/// The result of a request for slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Send at these times.
    Slots(Slots),
    /// No slot is free within the horizon.
    Wait {
        /// When to ask again.
        until: Timestamp,
        /// The reason.
        why: PauseReason,
    },
}

/// Why a destination is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// The next slot is too far ahead.
    Rate,
    /// The destination asked for a pause.
    Paused,
    /// An operator stopped all calls.
    Operator,
    /// The circuit is open.
    Circuit,
}

/// A sequence of evenly spaced times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    next: Timestamp,
    spacing: Duration,
    left: u32,
}

impl Slots {
    /// Returns as many of `count` slots from `first` on as fit `horizon`.
    ///
    /// Returns `None` if the first does not.
    pub(super) fn cut(first: Timestamp, spacing: Duration, count: u32, horizon: Timestamp) -> Option<Self> {
        if count == 0 || horizon < first {
            return None;
        }
        let room = horizon.since(first).as_nanos();
        let after_first = room.checked_div(spacing.as_nanos()).unwrap_or(u128::MAX);
        let left = u32::try_from(after_first).unwrap_or(u32::MAX).saturating_add(1).min(count);
        Some(Self { next: first, spacing, left })
    }

    /// Returns the first time.
    pub const fn first(&self) -> Timestamp {
        self.next
    }

    /// Returns the last time.
    pub fn last(&self) -> Timestamp {
        self.next.plus(self.spacing.saturating_mul(self.left.saturating_sub(1)))
    }

    /// Returns how many there are.
    pub const fn count(&self) -> u32 {
        self.left
    }

    /// Returns the times in order.
    pub fn moments(self) -> impl Iterator<Item = Timestamp> {
        (0..self.left).map(move |given| self.next.plus(self.spacing.saturating_mul(given)))
    }
}
