//! What a stored time means if the clock that wrote it may have been wrong.
//!
//! Guarantee: a wall clock that is set ahead and back again blocks nothing for longer than the longest lease, keeps no
//! dead node alive, makes no old call look young, makes no key expire early, and lets retention delete at most a day's
//! worth in an hour. Nothing here reads a clock.
//!
//! ```
//! use std::time::Duration;
//! use ichido_core::clock::lease_has_lapsed;
//! use ichido_core::time::Timestamp;
//!
//! let (now, longest) = (Timestamp::from_secs(1_800_000_000), Duration::from_hours(24));
//! let month = Duration::from_hours(30 * 24);
//! assert!(!lease_has_lapsed(now.plus(Duration::from_secs(30)), now, longest));
//! // Taken while the clock was a month ahead: no lease is that long.
//! assert!(lease_has_lapsed(now.plus(month), now, longest));
//! ```

mod retention;

pub use retention::{ClockPair, ClockStep, Now, Retention};

use std::time::Duration;

use crate::time::Timestamp;

/// How far two clocks may differ and still agree.
///
/// A database may take seconds to respond, and NTP corrects clocks by less.
pub const AGREE_WITHIN: Duration = Duration::from_mins(1);

/// Returns whether a lease has ended.
///
/// It has if its time has passed, or if it ends later than any lease taken by this clock can.
pub fn lease_has_lapsed(lease_until: Timestamp, now: Timestamp, longest: Duration) -> bool {
    lease_until <= now || now.plus(longest) < lease_until
}

/// Returns whether a heartbeat shows a live node.
///
/// A live node's heartbeat is recent and not in the future.
pub fn is_alive(seen_at: Timestamp, now: Timestamp, within: Duration) -> bool {
    seen_at <= now && now.since(seen_at) < within
}

/// The time between two heartbeats of a node.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(3);

/// A node is dead if its last heartbeat is this old.
///
/// Three heartbeats in a row may fail. With a search for dead nodes every second, their messages are rescued within 15 s.
// Spec: D12.
pub const HEARTBEAT_DEADLINE: Duration = Duration::from_secs(12);

/// What a node's lock shows. A living process holds it, and the operating system releases it when the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// The process lives.
    Held,
    /// The process is gone.
    Free,
    /// The node has no lock, or it cannot be tested.
    Unknown,
}

/// Returns whether a node is dead.
///
/// Its lock decides, if it has one: it needs no clock. A heartbeat from the future proves nothing, because the clock was set
/// back since; the node's leases bound how long its messages wait.
// Spec: D12.
pub fn is_dead(lock: LockState, seen_at: Timestamp, now: Timestamp) -> bool {
    match lock {
        LockState::Held => false,
        LockState::Free => true,
        LockState::Unknown => HEARTBEAT_DEADLINE <= now.since(seen_at),
    }
}

/// Returns how long ago a time was.
///
/// Returns `None` if it is in the future, so its age is unknown.
pub fn age(moment: Timestamp, now: Timestamp) -> Option<Duration> {
    (moment <= now.plus(AGREE_WITHIN)).then(|| now.since(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
    const LONGEST: Duration = Duration::from_hours(1);
    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(NOW.as_micros() + seconds * 1_000_000)
    }

    #[test]
    fn a_lease_lapses_at_its_end_and_when_no_lease_is_that_long() {
        for (until, has_lapsed) in [
            (at(-1), true),
            (NOW, true),
            (at(1), false),
            (NOW.plus(LONGEST), false),
            (NOW.plus(LONGEST + SECOND), true),
            (Timestamp::MAX, true),
        ] {
            assert_eq!(lease_has_lapsed(until, NOW, LONGEST), has_lapsed, "{until}");
        }
    }

    #[test]
    fn node_is_dead_by_its_lock_or_else_by_its_heartbeat() {
        for (lock, seen_at, dead) in [
            (LockState::Unknown, at(-11), false),
            (LockState::Unknown, at(-12), true),
            (LockState::Unknown, NOW, false),
            (LockState::Unknown, at(3_600), false),
            (LockState::Held, at(-3_600), false),
            (LockState::Free, NOW, true),
            (LockState::Free, at(3_600), true),
        ] {
            assert_eq!(is_dead(lock, seen_at, NOW), dead, "{lock:?}, {seen_at}");
        }
        // The search for dead nodes takes up to the rest.
        assert!(HEARTBEAT_EVERY * 4 <= HEARTBEAT_DEADLINE && HEARTBEAT_DEADLINE + SECOND * 2 <= SECOND * 15);
    }

    #[test]
    fn a_heartbeat_in_the_future_is_not_alive() {
        for (seen_at, alive) in [(at(-60), false), (at(-59), true), (NOW, true), (at(1), false)] {
            assert_eq!(is_alive(seen_at, NOW, Duration::from_mins(1)), alive, "{seen_at}");
        }
    }

    #[test]
    fn age_of_a_future_time_is_unknown() {
        assert_eq!(age(at(-5), NOW), Some(SECOND * 5));
        assert_eq!(age(at(60), NOW), Some(Duration::ZERO), "clocks differ a little");
        assert_eq!(age(at(61), NOW), None);
    }
}
