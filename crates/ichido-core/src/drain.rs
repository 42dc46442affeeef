//! Whether a queue takes more in: a bound on how many wait, and on how long those who wait take to leave.
//!
//! Guarantee: [`Load::judge`] refuses nothing where no bound is set, and never for slowness alone before the queue had something to do
//! for [`BUSY_MIN`]. Nothing here reads a clock or a store: looks come in with their time.
//!
//! [`Window`] makes a [`Load`] of looks at the counts of a queue. A look tells how many messages ended since the one before; it counts
//! only where something waited all along, so that a queue with nothing to do is not taken for one that stands still.

use std::collections::VecDeque;
use std::time::Duration;

/// How far back looks are remembered, in time that the queue had something to do.
pub const WINDOW: Duration = Duration::from_mins(1);
/// How long a queue must have had something to do before it is judged by its speed.
pub const BUSY_MIN: Duration = Duration::from_secs(5);
/// The most looks that are remembered.
pub const LOOKS_MAX: usize = 120;
/// The shortest and the longest that somebody is asked to wait before asking again.
pub const AGAIN_AFTER_MIN: Duration = Duration::from_secs(1);
/// See [`AGAIN_AFTER_MIN`].
pub const AGAIN_AFTER_MAX: Duration = Duration::from_mins(1);

/// What an operator allows; what is `None` is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// How long those who wait may take to leave.
    pub drain_within: Option<Duration>,
    /// How many may wait.
    pub waiting_max: Option<u64>,
}

/// How a queue stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many wait now.
    pub waiting: u64,
    /// How many ended in the window.
    pub finished: u64,
    /// How long the window is: time in which there was something to do.
    pub busy: Duration,
}

/// Whether one more is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// It is.
    Open,
    /// It is not, for now.
    Full {
        /// Which bound it would break.
        why: Full,
        /// When to ask again.
        again_after: Duration,
    },
}

/// Which bound one more message would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// As many wait as may.
    WaitingMax,
    /// Those who wait would take too long to leave.
    DrainWithin,
}

impl Load {
    /// Whether one more is taken.
    pub fn judge(self, bounds: Bounds) -> Intake {
        if let Some(most) = bounds.waiting_max
            && most <= self.waiting
        {
            let over = self.waiting - most + 1;
            return Intake::Full { why: Full::WaitingMax, again_after: self.until_ended(u128::from(over)) };
        }
        match bounds.drain_within {
            Some(within) if BUSY_MIN <= self.busy && within < self.drains_in() => {
                let leave_in_time = self.finishing() * within.as_millis() / self.busy.as_millis().max(1);
                let over = u128::from(self.waiting).saturating_sub(leave_in_time).max(1);
                Intake::Full { why: Full::DrainWithin, again_after: self.until_ended(over) }
            }
            _ => Intake::Open,
        }
    }

    /// How long those who wait take to leave, at the speed of the window.
    pub fn drains_in(self) -> Duration {
        self.lasts(u128::from(self.waiting))
    }

    /// One more than ended, as if the next were about to: of a queue in which none ended it is known that the first takes at least as
    /// long as the window, not that it takes for ever.
    fn finishing(self) -> u128 {
        u128::from(self.finished) + 1
    }

    fn lasts(self, count: u128) -> Duration {
        let millis = count.saturating_mul(self.busy.as_millis()) / self.finishing();
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    fn until_ended(self, count: u128) -> Duration {
        self.lasts(count).clamp(AGAIN_AFTER_MIN, AGAIN_AFTER_MAX)
    }
}

/// The last looks at a queue.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// How long each look was, and how many ended in it.
    looks: VecDeque<(Duration, u64)>,
    last: Option<Look>,
}

/// The counts of a queue at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// When, on any clock that only goes forward.
    pub at: Duration,
    /// How many waited.
    pub waiting: u64,
    /// How many have ended, of those that are still kept.
    pub ended: u64,
}

impl Window {
    /// Takes one more look in.
    pub fn look(&mut self, look: Look) {
        let before = self.last.replace(look);
        // Where fewer have ended than before, some were forgotten or sent again, and nobody knows how many ended.
        if let Some(before) = before
            && 0 < before.waiting
            && before.ended <= look.ended
        {
            self.looks.push_back((look.at.saturating_sub(before.at), look.ended - before.ended));
        }
        while LOOKS_MAX < self.looks.len() || WINDOW < self.busy() {
            self.looks.pop_front();
        }
        // What was done before a rest says little of what comes after it.
        if look.waiting == 0 {
            self.looks.clear();
        }
    }

    /// How the queue stands since the last look.
    pub fn load(&self) -> Load {
        Load {
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

    fn load(waiting: u64, finished: u64, busy: u64) -> Load {
        Load { waiting, finished, busy: secs(busy) }
    }

    fn full(why: Full, again_after: u64) -> Intake {
        Intake::Full { why, again_after: secs(again_after) }
    }

    #[test]
    fn without_a_bound_everything_is_taken() {
        for load in [load(0, 0, 0), load(u64::MAX, 0, 3600), load(1, u64::MAX, 60)] {
            assert_eq!(load.judge(Bounds::default()), Intake::Open);
        }
    }

    #[test]
    fn no_more_wait_than_may() {
        let bounds = Bounds { waiting_max: Some(3), drain_within: None };
        let none = Bounds { waiting_max: Some(0), drain_within: None };
        for (load, bounds, expected) in [
            (load(2, 0, 60), bounds, Intake::Open),
            (load(3, 0, 0), bounds, full(Full::WaitingMax, 1)),
            (load(3, 59, 60), bounds, full(Full::WaitingMax, 1)),
            (load(12, 59, 60), bounds, full(Full::WaitingMax, 10)),
            (load(1_000, 0, 60), bounds, full(Full::WaitingMax, 60)),
            (load(0, 0, 0), none, full(Full::WaitingMax, 1)),
        ] {
            assert_eq!(load.judge(bounds), expected, "{load:?}");
        }
    }

    #[test]
    fn what_cannot_leave_in_time_is_not_taken_in() {
        let bounds = Bounds { waiting_max: None, drain_within: Some(secs(100)) };
        for (load, expected) in [
            // One a second: a hundred leave in time, and one more does not.
            (load(100, 59, 60), Intake::Open),
            (load(101, 59, 60), full(Full::DrainWithin, 1)),
            (load(120, 59, 60), full(Full::DrainWithin, 20)),
            (load(100_000, 59, 60), full(Full::DrainWithin, 60)),
            // None ended: the first takes a minute or longer, so that two do not leave in time.
            (load(1, 0, 60), Intake::Open),
            (load(2, 0, 60), full(Full::DrainWithin, 60)),
            // Nobody knows yet.
            (load(100_000, 0, 4), Intake::Open),
            (load(0, 0, 60), Intake::Open),
            (load(u64::MAX, u64::MAX, 60), Intake::Open),
        ] {
            assert_eq!(load.judge(bounds), expected, "{load:?}");
        }
    }

    fn looked(looks: &[(u64, u64, u64)]) -> Load {
        let mut window = Window::default();
        for &(at, waiting, ended) in looks {
            window.look(Look { at: secs(at), waiting, ended });
        }
        window.load()
    }

    #[test]
    fn time_with_nothing_to_do_is_no_slowness() {
        assert_eq!(looked(&[(0, 0, 7), (60, 0, 7), (61, 1, 7)]), load(1, 0, 0));
        assert_eq!(looked(&[(0, 5, 0), (1, 4, 1), (2, 0, 5), (60, 3, 5)]), load(3, 0, 0));
        assert_eq!(looked(&[(0, 5, 10), (1, 5, 12), (3, 5, 15)]), load(5, 5, 3));
    }

    #[test]
    fn looks_in_which_messages_were_forgotten_say_nothing() {
        assert_eq!(looked(&[(0, 5, 1_000), (1, 5, 1_002), (2, 5, 400), (3, 5, 403)]), load(5, 5, 2));
    }

    #[test]
    fn what_is_remembered_is_bounded_in_time_and_in_number() {
        let minutes: Vec<_> = (0..300).map(|at| (at, 5, at * 10)).collect();
        assert_eq!(looked(&minutes), load(5, 600, 60));
        let mut window = Window::default();
        for at in 0..1_000 {
            window.look(Look { at: Duration::from_millis(at), waiting: 1, ended: at });
        }
        assert_eq!(window.load().finished, LOOKS_MAX as u64);
        // A look after a long silence is longer than the whole window.
        assert_eq!(looked(&[(0, 5, 0), (3_600, 5, 9)]), load(5, 0, 0));
    }
}
