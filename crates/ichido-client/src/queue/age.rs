//! How much time has passed, by a clock that somebody may set.
//!
//! Guarantee: what is said to be so old is at least so old, or it is said that nobody knows. A clock that is set forward makes things older
//! than they are, never younger; one that is set back leaves the age of what was there before open.

use std::time::Duration;

use ichido_core::time::Timestamp;

/// How far a clock may go back between two looks at it without being called set back: what keeps time on a network moves it by less.
pub const SET_BACK_SLACK: Duration = Duration::from_mins(1);

/// The clock of a file, as it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileClock {
    /// What the machine's clock said.
    pub last: Timestamp,
    /// All differences between one reading and the next, added up whichever way the clock had moved. It never falls.
    pub passed: Duration,
    /// How often the clock was set back.
    pub set_backs: u32,
}

/// When something happened, by a [`FileClock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMark {
    /// What the machine's clock said, for people.
    pub at: Timestamp,
    /// What had passed by then.
    pub passed: Duration,
    /// How often the clock had been set back by then.
    pub set_backs: u32,
}

impl FileClock {
    /// One that is looked at for the first time.
    pub const fn begin(now: Timestamp) -> Self {
        Self { last: now, passed: Duration::ZERO, set_backs: 0 }
    }

    /// Looks at the clock again.
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
    /// // Three hours back: whether that is five hours ago, or fifty, nobody knows any more.
    /// assert_eq!(later.look(hours(2)).since(sent.mark()), None);
    /// ```
    #[must_use]
    pub fn look(self, now: Timestamp) -> Self {
        let back = self.last.since(now);
        let is_set_back = SET_BACK_SLACK < back;
        Self {
            last: now,
            // Back counts as forth: where it is not known which reading was right, the stricter one is taken.
            passed: self.passed.saturating_add(now.since(self.last)).saturating_add(back),
            set_backs: self.set_backs.saturating_add(u32::from(is_set_back)),
        }
    }

    /// This moment.
    pub const fn mark(self) -> ClockMark {
        ClockMark { at: self.last, passed: self.passed, set_backs: self.set_backs }
    }

    /// How long ago that was, at most; `None` where the clock was set back since, so that nobody knows.
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
        /// Whatever the clock does, a stretch of honest time after the mark is never counted short.
        #[test]
        fn nothing_is_younger_than_the_time_that_honestly_passed(steps in prop::collection::vec((-7_200_000_000_i64..7_200_000_000, 0_u64..3_600_000_000), 0..20)) {
            let mut watch = FileClock::begin(Timestamp::from_micros(START));
            let mark = watch.mark();
            let (mut clock, mut honest) = (START, 0_u64);
            for (jump, runs) in steps {
                // It is set, and looked at; then it runs as it should, and is looked at again.
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
