//! Limits parallel calls, and spaces each item's first call.
//!
//! Guarantee: with these two, at most `max_parallel` calls of one node are in flight, and an item's first call comes no
//! sooner than `interval` after it took its permit. They hold whatever the rate is.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Timestamp;

/// Returns how many more items may take a permit, with `in_flight` permits taken.
pub const fn permits_left(max_parallel: NonZeroU32, in_flight: u32) -> u32 {
    max_parallel.get().saturating_sub(in_flight)
}

/// Returns the time of the first call of an item that took its permit at `placed`.
///
/// The item waits while it holds the permit, so `max_parallel` items an interval apart are never more than
/// `max_parallel` at work. A retry waits as its schedule says, not this long again.
pub fn first_call_at(placed: Timestamp, interval: Duration) -> Timestamp {
    placed.plus(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_never_exceed_permits() {
        for (max_parallel, in_flight, expected) in
            [(2, 0, 2), (2, 1, 1), (2, 2, 0), (2, 9, 0), (u32::MAX, 0, u32::MAX), (1, u32::MAX, 0)]
        {
            let max_parallel = NonZeroU32::new(max_parallel).unwrap();
            assert_eq!(permits_left(max_parallel, in_flight), expected);
        }
    }

    #[test]
    fn an_item_waits_the_interval_before_its_first_call() {
        let placed = Timestamp::from_secs(10);
        assert_eq!(first_call_at(placed, Duration::from_millis(2_500)), Timestamp::from_micros(12_500_000));
        assert_eq!(first_call_at(placed, Duration::ZERO), placed);
        assert_eq!(first_call_at(placed, Duration::MAX), Timestamp::MAX);
    }
}
