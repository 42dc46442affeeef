//! Measures elapsed time with a clock that can be set.
//!
//! Guarantee: a reported age is at least the true age, or it is reported as unknown. Setting the clock forward makes
//! entries seem older, never younger. Setting it back makes the age of earlier entries unknown.

use std::time::Duration;

use ichido_core::time::Timestamp;

/// How far a clock may go back between two readings without counting as set back. Time synchronization moves it less.
pub const SET_BACK_SLACK: Duration = Duration::from_mins(1);

/// The clock of a queue file at its last reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileClock {
    /// The machine's time.
    pub last: Timestamp,
    /// The sum of all differences between readings, in either direction. It never decreases.
    pub passed: Duration,
    /// How often the clock was set back.
    pub set_backs: u32,
}

/// A point in time on a [`FileClock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMark {
    /// The machine's time, for display.
    pub at: Timestamp,
    /// The elapsed time at that point.
    pub passed: Duration,
    /// How often the clock had been set back by then.
    pub set_backs: u32,
}

impl FileClock {
    /// Creates a clock at its first reading.
    pub const fn begin(now: Timestamp) -> Self {
        Self { last: now, passed: Duration::ZERO, set_backs: 0 }
    }

    /// Reads the clock again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido_client::queue::age::FileClock;
    /// use ichido_core::time::Timestamp;
    ///
    /// let hours = |hours: i64| Timestamp::from_secs(1_800_000_000 + hours * 3_600);
    /// let sent = FileClock::begin(hours(0));
    /// let later = sent.look(hours(5));
    /// assert_eq!(later.since(sent.mark()), Some(Duration::from_hours(5)));
    /// // Three hours back: the true age can no longer be known.
    /// assert_eq!(later.look(hours(2)).since(sent.mark()), None);
    /// ```
    #[must_use]
    pub fn look(self, now: Timestamp) -> Self {
        let back = self.last.since(now);
        let is_set_back = SET_BACK_SLACK < back;
        Self {
            last: now,
            // Going back counts as going forward: if it is unclear which reading was right, the stricter one applies.
            passed: self.passed.saturating_add(now.since(self.last)).saturating_add(back),
            set_backs: self.set_backs.saturating_add(u32::from(is_set_back)),
        }
    }

    /// Returns the current point in time.
    pub const fn mark(self) -> ClockMark {
        ClockMark { at: self.last, passed: self.passed, set_backs: self.set_backs }
    }

    /// Returns the maximum age of `mark`, or `None` if the clock was set back since.
    pub fn since(self, mark: ClockMark) -> Option<Duration> {
        (mark.set_backs == self.set_backs).then(|| self.passed.saturating_sub(mark.passed))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: i64 = 1_800_000_000_000_000;

    proptest! {
        /// Whatever the clock does, real time after the mark is never undercounted.
        #[test]
        fn age_is_never_less_than_the_real_time_passed(steps in prop::collection::vec((-7_200_000_000_i64..7_200_000_000, 0_u64..3_600_000_000), 0..20)) {
            let mut watch = FileClock::begin(Timestamp::from_micros(START));
            let mark = watch.mark();
            let (mut clock, mut honest) = (START, 0_u64);
            for (jump, runs) in steps {
                // The clock is set and read; then it runs normally and is read again.
                clock += jump;
                watch = watch.look(Timestamp::from_micros(clock));
                clock += i64::try_from(runs).unwrap();
                watch = watch.look(Timestamp::from_micros(clock));
                honest += runs;
            }
            if let Some(age) = watch.since(mark) {
                prop_assert!(Duration::from_micros(honest) <= age);
            }
        }
    }

    #[test]
    fn a_small_correction_leaves_the_age_known_and_never_less() {
        let at = |secs: i64| Timestamp::from_secs(1_800_000_000 + secs);
        let sent = FileClock::begin(at(0));
        let corrected = sent.look(at(100)).look(at(70));
        assert_eq!(corrected.since(sent.mark()), Some(Duration::from_secs(130)));
        assert_eq!(corrected.look(at(9)).since(sent.mark()), None, "61 s back");
        let now = corrected.look(at(9));
        assert_eq!(
            now.look(at(19)).since(now.mark()),
            Some(Duration::from_secs(10)),
            "what comes after is known"
        );
    }
}
