//! Decides whether a queue accepts more: limits how many wait, and how long they take to leave.
//!
//! Guarantee: [`QueueLoad::judge`] refuses nothing without a limit, and never for slowness alone before the queue was busy
//! for [`MIN_BUSY`]. Nothing here reads a clock or a store: observations are passed in with their time.
//!
//! [`Window`] turns observations of a queue's counts into a [`QueueLoad`]. An observation says how many messages ended since
//! the previous one. It counts only if something waited the whole time, so an idle queue is not taken for a stalled
//! one.

use std::collections::VecDeque;
use std::time::Duration;

/// How far back observations are kept, in busy time of the queue.
pub const WINDOW: Duration = Duration::from_mins(1);
/// How long a queue must have been busy before its speed is judged.
pub const MIN_BUSY: Duration = Duration::from_secs(5);
/// The maximum number of observations.
pub const MAX_SAMPLES: usize = 120;
/// The shortest and the longest time before a caller is asked to retry.
pub const MIN_RETRY_AFTER: Duration = Duration::from_secs(1);
/// See [`MIN_RETRY_AFTER`].
pub const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// What an operator allows; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimits {
    /// How long waiting messages may take to leave.
    pub drain_within: Option<Duration>,
    /// How many messages may wait.
    pub max_waiting: Option<u64>,
}

/// The load of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLoad {
    /// How many messages wait now.
    pub waiting: u64,
    /// How many messages ended in the window.
    pub finished: u64,
    /// The length of the window: busy time.
    pub busy: Duration,
}

/// Whether one more message is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAdmission {
    /// It is accepted.
    Open,
    /// It is refused for now.
    Full {
        /// The limit it would exceed.
        why: LimitReached,
        /// When to retry.
        again_after: Duration,
    },
}

/// The limit that one more message would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// The maximum number of messages already waits.
    WaitingMax,
    /// The waiting messages would take too long to leave.
    DrainWithin,
}

impl QueueLoad {
    /// Decides whether one more message is accepted.
    pub fn judge(self, bounds: QueueLimits) -> QueueAdmission {
        if let Some(most) = bounds.max_waiting
            && most <= self.waiting
        {
            let over = self.waiting - most + 1;
            return QueueAdmission::Full {
                why: LimitReached::WaitingMax,
                again_after: self.until_ended(u128::from(over)),
            };
        }
        match bounds.drain_within {
            Some(within) if MIN_BUSY <= self.busy && within < self.drains_in() => {
                let leave_in_time = self.finishing() * within.as_millis() / self.busy.as_millis().max(1);
                let over = u128::from(self.waiting).saturating_sub(leave_in_time).max(1);
                QueueAdmission::Full { why: LimitReached::DrainWithin, again_after: self.until_ended(over) }
            }
            _ => QueueAdmission::Open,
        }
    }

    /// Returns how long waiting messages take to leave at the speed of the window.
    pub fn drains_in(self) -> Duration {
        self.lasts(u128::from(self.waiting))
    }

    /// Counts one more than ended, as if the next were about to.
    ///
    /// If none ended, the first is known to take at least as long as the window, not forever.
    fn finishing(self) -> u128 {
        u128::from(self.finished) + 1
    }

    fn lasts(self, count: u128) -> Duration {
        let millis = count.saturating_mul(self.busy.as_millis()) / self.finishing();
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    fn until_ended(self, count: u128) -> Duration {
        self.lasts(count).clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER)
    }
}

/// The last observations of a queue.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// How long each observation was, and how many messages ended in it.
    looks: VecDeque<(Duration, u64)>,
    last: Option<QueueSample>,
}

/// The counts of a queue at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// The time, on any clock that never goes back.
    pub at: Duration,
    /// How many messages waited.
    pub waiting: u64,
    /// How many messages have ended, of those that are still stored.
    pub ended: u64,
}

impl Window {
    /// Adds one observation.
    pub fn record(&mut self, look: QueueSample) {
        let before = self.last.replace(look);
        // If fewer have ended than before, some were deleted or requeued, and the number that ended is unknown.
        if let Some(before) = before
            && 0 < before.waiting
            && before.ended <= look.ended
        {
            self.looks.push_back((look.at.saturating_sub(before.at), look.ended - before.ended));
        }
        while MAX_SAMPLES < self.looks.len() || WINDOW < self.busy() {
            self.looks.pop_front();
        }
        // The speed before a pause says little about the speed after it.
        if look.waiting == 0 {
            self.looks.clear();
        }
    }

    /// Returns the load since the last observation.
    pub fn load(&self) -> QueueLoad {
        QueueLoad {
            waiting: self.last.map_or(0, |look| look.waiting),
            finished: self.looks.iter().map(|(_, finished)| finished).sum(),
            busy: self.busy(),
        }
    }

    fn busy(&self) -> Duration {
        self.looks.iter().map(|(length, _)| length).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn load(waiting: u64, finished: u64, busy: u64) -> QueueLoad {
        QueueLoad { waiting, finished, busy: secs(busy) }
    }

    fn full(why: LimitReached, again_after: u64) -> QueueAdmission {
        QueueAdmission::Full { why, again_after: secs(again_after) }
    }

    #[test]
    fn without_a_limit_everything_is_accepted() {
        for load in [load(0, 0, 0), load(u64::MAX, 0, 3600), load(1, u64::MAX, 60)] {
            assert_eq!(load.judge(QueueLimits::default()), QueueAdmission::Open);
        }
    }

    #[test]
    fn waiting_messages_never_exceed_the_limit() {
        let bounds = QueueLimits { max_waiting: Some(3), drain_within: None };
        let none = QueueLimits { max_waiting: Some(0), drain_within: None };
        for (load, bounds, expected) in [
            (load(2, 0, 60), bounds, QueueAdmission::Open),
            (load(3, 0, 0), bounds, full(LimitReached::WaitingMax, 1)),
            (load(3, 59, 60), bounds, full(LimitReached::WaitingMax, 1)),
            (load(12, 59, 60), bounds, full(LimitReached::WaitingMax, 10)),
            (load(1_000, 0, 60), bounds, full(LimitReached::WaitingMax, 60)),
            (load(0, 0, 0), none, full(LimitReached::WaitingMax, 1)),
        ] {
            assert_eq!(load.judge(bounds), expected, "{load:?}");
        }
    }

    #[test]
    fn messages_that_cannot_drain_in_time_are_refused() {
        let bounds = QueueLimits { max_waiting: None, drain_within: Some(secs(100)) };
        for (load, expected) in [
            // One a second: a hundred leave in time, one more does not.
            (load(100, 59, 60), QueueAdmission::Open),
            (load(101, 59, 60), full(LimitReached::DrainWithin, 1)),
            (load(120, 59, 60), full(LimitReached::DrainWithin, 20)),
            (load(100_000, 59, 60), full(LimitReached::DrainWithin, 60)),
            // None ended: the first takes a minute or longer, so two do not leave in time.
            (load(1, 0, 60), QueueAdmission::Open),
            (load(2, 0, 60), full(LimitReached::DrainWithin, 60)),
            // Not known yet.
            (load(100_000, 0, 4), QueueAdmission::Open),
            (load(0, 0, 60), QueueAdmission::Open),
            (load(u64::MAX, u64::MAX, 60), QueueAdmission::Open),
        ] {
            assert_eq!(load.judge(bounds), expected, "{load:?}");
        }
    }

    fn looked(looks: &[(u64, u64, u64)]) -> QueueLoad {
        let mut window = Window::default();
        for &(at, waiting, ended) in looks {
            window.record(QueueSample { at: secs(at), waiting, ended });
        }
        window.load()
    }

    #[test]
    fn idle_time_does_not_count_as_slow() {
        assert_eq!(looked(&[(0, 0, 7), (60, 0, 7), (61, 1, 7)]), load(1, 0, 0));
        assert_eq!(looked(&[(0, 5, 0), (1, 4, 1), (2, 0, 5), (60, 3, 5)]), load(3, 0, 0));
        assert_eq!(looked(&[(0, 5, 10), (1, 5, 12), (3, 5, 15)]), load(5, 5, 3));
    }

    #[test]
    fn readings_with_deleted_messages_are_ignored() {
        assert_eq!(looked(&[(0, 5, 1_000), (1, 5, 1_002), (2, 5, 400), (3, 5, 403)]), load(5, 5, 2));
    }

    #[test]
    fn samples_are_bounded_in_age_and_number() {
        let minutes: Vec<_> = (0..300).map(|at| (at, 5, at * 10)).collect();
        assert_eq!(looked(&minutes), load(5, 600, 60));
        let mut window = Window::default();
        for at in 0..1_000 {
            window.record(QueueSample { at: Duration::from_millis(at), waiting: 1, ended: at });
        }
        assert_eq!(window.load().finished, MAX_SAMPLES as u64);
        // An observation after a long silence is longer than the whole window.
        assert_eq!(looked(&[(0, 5, 0), (3_600, 5, 9)]), load(5, 0, 0));
    }
}
