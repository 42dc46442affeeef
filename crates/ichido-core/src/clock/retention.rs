//! The retention clock: how far old records may be deleted.

use std::time::Duration;

use super::AGREE_WITHIN;
use crate::time::Timestamp;

/// How much faster than real time retention may advance.
///
/// At most a day's worth is deleted in an hour.
const MAX_RATE: u32 = 24;

/// No record is older than this program: 2026-01-01.
///
/// A machine without a battery starts its clock in 1970, which does not count.
const EARLIEST: Timestamp = Timestamp::from_secs(1_767_225_600);

/// The wall clock, which can be set, and a monotonic clock, which cannot, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// The wall clock of the database.
    pub wall: Timestamp,
    /// Time since some fixed moment.
    pub monotonic: Duration,
}

/// The wall clock was set between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// By how much it was set.
    pub by: Duration,
    /// Whether it was set ahead; otherwise back.
    pub ahead: bool,
}

/// The time used to judge a stored record.
///
/// A plain [`Timestamp`] converts into it, for callers whose clock is never set: both times are then the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The database's wall clock, which ends leases.
    pub wall: Timestamp,
    /// The retention clock ([`Retention::at`]), which expires records.
    pub retention: Timestamp,
}

impl Now {
    /// Returns the time until which records have expired: neither clock is behind it.
    pub fn expired_until(self) -> Timestamp {
        self.wall.min(self.retention)
    }
}

impl From<Timestamp> for Now {
    fn from(now: Timestamp) -> Self {
        Self { wall: now, retention: now }
    }
}

/// The retention clock.
///
/// It follows the wall clock but advances at most 24 times as fast as the monotonic clock: a wall clock that is 100
/// days ahead for 15 seconds makes it delete what is due within the next six minutes, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    last: ClockPair,
    reached: Timestamp,
}

impl Retention {
    /// Continues where an earlier process stopped; without one, starts at the wall clock.
    pub fn begin(now: ClockPair, reached: Option<Timestamp>) -> Self {
        Self { last: now, reached: reached.unwrap_or(now.wall).max(EARLIEST) }
    }

    /// Starts a round and returns the current time for deletion.
    ///
    /// If the clocks disagree about the time since the last round, this round deletes nothing.
    pub fn round(&mut self, now: ClockPair) -> Result<Timestamp, ClockStep> {
        let last = std::mem::replace(&mut self.last, now);
        let passed = now.monotonic.saturating_sub(last.monotonic);
        let expected = last.wall.plus(passed);
        let (by, ahead) = (now.wall.since(expected).max(expected.since(now.wall)), expected < now.wall);
        let agree = by <= AGREE_WITHIN;
        // Elapsed time counts even if the wall clock was set meanwhile; only catching up waits.
        let allowed = self.reached.plus(passed.saturating_mul(if agree { MAX_RATE } else { 1 }));
        // Never back: after a clock that started in the past was corrected, it would take years to catch up.
        self.reached = self.reached.max(now.wall.min(allowed));
        if agree { Ok(self.reached.min(now.wall)) } else { Err(ClockStep { by, ahead }) }
    }

    /// Returns its time between two rounds.
    ///
    /// Elapsed time since the last round counts, whatever the wall clock says.
    pub fn at(&self, monotonic: Duration) -> Timestamp {
        self.reached.plus(monotonic.saturating_sub(self.last.monotonic))
    }

    /// Returns where the next process continues.
    pub const fn reached(&self) -> Timestamp {
        self.reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_secs(1_800_000_000);
    const ROUND: Duration = Duration::from_secs(5);
    const HOUR: Duration = Duration::from_hours(1);
    const DAY: Duration = Duration::from_hours(24);

    /// Both clocks after `elapsed`, the wall clock set ahead by `ahead`.
    fn after(passed: Duration, ahead: Duration) -> ClockPair {
        ClockPair { wall: START.plus(passed + ahead), monotonic: passed }
    }

    fn began() -> Retention {
        Retention::begin(after(Duration::ZERO, Duration::ZERO), None)
    }

    #[test]
    fn retention_follows_a_clock_that_is_not_set() {
        let mut retention = began();
        for passed in [ROUND, ROUND * 2, HOUR, DAY * 30] {
            assert_eq!(retention.round(after(passed, Duration::ZERO)), Ok(START.plus(passed)));
        }
    }

    #[test]
    fn retention_skips_a_round_when_the_clock_was_set() {
        let mut retention = began();
        let step = ClockStep { by: DAY * 100, ahead: true };
        assert_eq!(retention.round(after(ROUND, DAY * 100)), Err(step));
        let step = ClockStep { ahead: false, ..step };
        assert_eq!(retention.round(after(ROUND * 2, Duration::ZERO)), Err(step));
        assert_eq!(retention.round(after(ROUND * 3, Duration::ZERO)), Ok(START.plus(ROUND * 3)));
    }

    #[test]
    fn elapsed_time_counts_even_if_the_clock_was_set() {
        let mut retention = began();
        assert!(retention.round(after(DAY, DAY * 100)).is_err());
        assert_eq!(retention.reached(), START.plus(DAY));
        assert!(retention.round(after(DAY * 2, Duration::ZERO)).is_err());
        assert_eq!(retention.reached(), START.plus(DAY * 2));
    }

    #[test]
    fn between_two_rounds_only_time_that_passed_counts() {
        let mut retention = began();
        assert_eq!(retention.at(DAY), START.plus(DAY));
        assert_eq!(retention.round(after(DAY, Duration::ZERO)), Ok(START.plus(DAY)));
        assert_eq!(retention.at(DAY + HOUR), START.plus(DAY + HOUR));
        assert_eq!(retention.at(HOUR), START.plus(DAY), "a reading from before the round changes nothing");
    }

    #[test]
    fn records_expire_by_the_clock_that_is_behind() {
        let (early, late) = (START, START.plus(DAY));
        assert_eq!(Now { wall: late, retention: early }.expired_until(), early);
        assert_eq!(Now { wall: early, retention: late }.expired_until(), early);
        assert_eq!(Now::from(late).expired_until(), late);
    }

    #[test]
    fn clock_100_days_ahead_for_15_seconds_expires_only_minutes() {
        let mut retention = began();
        let mut furthest = START;
        for round in 1..=3 {
            if let Ok(until) = retention.round(after(ROUND * round, DAY * 100)) {
                furthest = furthest.max(until);
            }
        }
        assert!(furthest <= START.plus(Duration::from_mins(6)), "{furthest}");
        assert!(retention.round(after(ROUND * 4, Duration::ZERO)).is_err());
        assert_eq!(retention.round(after(ROUND * 5, Duration::ZERO)), Ok(START.plus(ROUND * 5)));
    }

    #[test]
    fn retention_advances_at_most_a_day_per_hour() {
        let mut retention = began();
        let mut passed = Duration::ZERO;
        assert!(retention.round(after(passed, DAY * 100)).is_err());
        while passed < HOUR {
            passed += ROUND;
            let until = retention.round(after(passed, DAY * 100)).unwrap();
            assert!(until <= START.plus(passed * MAX_RATE), "{until}");
        }
        assert_eq!(retention.reached(), START.plus(DAY));
    }

    #[test]
    fn restart_with_clock_ahead_continues_from_last_process() {
        let reached = began().reached();
        let mut next = Retention::begin(after(Duration::ZERO, DAY * 100), Some(reached));
        assert_eq!(next.round(after(ROUND, DAY * 100)), Ok(START.plus(ROUND * MAX_RATE)));
    }

    #[test]
    fn clock_starting_at_1970_does_not_block_retention() {
        let zero = ClockPair { wall: Timestamp::EPOCH, monotonic: Duration::ZERO };
        assert_eq!(Retention::begin(zero, None).reached(), EARLIEST);
    }
}
