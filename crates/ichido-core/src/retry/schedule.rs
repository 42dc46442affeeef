//! Schedules: how long to wait after the n-th failure.

use super::WAIT_MAX;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Timestamp;

/// The most tries that any schedule makes: beyond this, a schedule is a way to never give up.
pub const TRIES_MAX: u32 = 1_000;

/// How often to try, and how long to wait in between.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// The waits before jitter.
    pub schedule: Schedule,
    /// How the waits are spread.
    pub jitter: Jitter,
    /// Tries allowed, the first one included; [`TRIES_MAX`] at most, whatever is written here.
    pub tries: NonZeroU32,
}

/// The waits, before jitter.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// `base × factor^(n − 1)` after failure n, at most `cap`.
    Exponential {
        /// The wait after the first failure.
        base: Duration,
        /// What each wait is multiplied by to give the next.
        factor: u32,
        /// The longest wait.
        cap: Duration,
    },
    /// These waits in order; the last one again when they run out.
    List(Vec<Duration>),
}

/// How a wait `d` is spread, so that those who failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// `d` itself.
    None,
    /// Uniform in `d × (1 − share) … d × (1 + share)`.
    PlusMinus(f64),
    /// Uniform in `d … d × (1 + share)`.
    Add(f64),
    /// Uniform in `0 … d`.
    Full,
}

/// Why a schedule cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A list without a wait.
    #[error("the list of waits is empty; give at least one")]
    EmptyList,
    /// A factor of zero would make the second wait none at all.
    #[error("the factor is 0; 1 keeps the wait, 2 doubles it")]
    FactorZero,
    /// A share that is negative, over 1 or not a number.
    #[error("the jitter's share is not between 0 and 1")]
    ShareOutOfRange,
    /// A wait over [`WAIT_MAX`].
    #[error("a wait is {wait:?}, which is longer than 30 days ({WAIT_MAX:?})")]
    WaitTooLong {
        /// The longest wait found.
        wait: Duration,
    },
    /// A cap below the first wait: no wait would be as long as the base says.
    #[error("the cap, {cap:?}, is below the first wait, {base:?}; raise the cap, or lower the base")]
    CapBelowBase {
        /// The wait after the first failure.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// More tries than [`TRIES_MAX`].
    #[error("more than {TRIES_MAX} tries; allow fewer and wait longer in between")]
    TooManyTries,
}

/// The next try would come after the deadline; it is better to say so now than to wait in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the next try would be at {come_back_at}, after the deadline")]
pub struct TooLate {
    /// When the next try would have been: what to tell the caller as the time to come back.
    pub come_back_at: Timestamp,
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn tries(count: u32) -> NonZeroU32 {
    match NonZeroU32::new(count) {
        Some(count) => count,
        None => NonZeroU32::MIN,
    }
}

impl Retry {
    /// A client's own retries: 1 s, 2 s, 4 s … without a cap of its own, plus 0 to 10 %; 3 tries in all.
    // SPEC A9.
    pub const CLIENT: Self = Self {
        schedule: Schedule::Exponential { base: secs(1), factor: 2, cap: WAIT_MAX },
        jitter: Jitter::Add(0.1),
        tries: tries(3),
    };

    /// Calls to a model: 2 s, 4 s … at most 20 s, plus 0 to 50 %; 4 retries after the first try.
    // SPEC B2, B3.
    pub const LLM: Self = Self {
        schedule: Schedule::Exponential { base: secs(2), factor: 2, cap: secs(20) },
        jitter: Jitter::Add(0.5),
        tries: tries(5),
    };

    /// The outbox: 2 s, 4 s … 256 s, each ±10 %; 8 retries after the first try.
    // SPEC D5.
    pub const OUTBOX: Self = Self {
        schedule: Schedule::Exponential { base: secs(2), factor: 2, cap: secs(256) },
        jitter: Jitter::PlusMinus(0.1),
        tries: tries(9),
    };

    /// Background jobs: `2^n × 60 s` after failure n, without a cap of its own; 3 tries unless the job says otherwise.
    // SPEC A10.
    pub const JOB: Self = Self {
        schedule: Schedule::Exponential { base: secs(120), factor: 2, cap: WAIT_MAX },
        jitter: Jitter::None,
        tries: tries(3),
    };

    /// Checks numbers that came from a file or a caller.
    pub fn checked(self) -> Result<Self, ScheduleError> {
        let longest = match &self.schedule {
            Schedule::Exponential { factor: 0, .. } => return Err(ScheduleError::FactorZero),
            Schedule::Exponential { base, cap, .. } if cap < base => {
                return Err(ScheduleError::CapBelowBase { base: *base, cap: *cap });
            }
            Schedule::Exponential { cap, .. } => *cap,
            Schedule::List(waits) => *waits.iter().max().ok_or(ScheduleError::EmptyList)?,
        };
        if WAIT_MAX < longest {
            return Err(ScheduleError::WaitTooLong { wait: longest });
        }
        if TRIES_MAX < self.tries.get() {
            return Err(ScheduleError::TooManyTries);
        }
        match self.jitter {
            Jitter::PlusMinus(share) | Jitter::Add(share) if !(0.0..=1.0).contains(&share) => {
                Err(ScheduleError::ShareOutOfRange)
            }
            _ => Ok(self),
        }
    }

    /// Whether a further try is left after `failures` failed ones. Failure n is final when n ≥ tries.
    // SPEC E1.
    pub fn may_try_again(&self, failures: u32) -> bool {
        failures < self.tries_allowed()
    }

    /// How long to wait after failure `failure`, counted from 1.
    ///
    /// `dice` is uniform in [0, 1) and drawn by the caller. `hint` is what the server asked for: a floor, with
    /// the jitter above it, because those who were told the same moment must not all come at that moment.
    pub fn wait(&self, failure: NonZeroU32, dice: f64, hint: Option<Duration>) -> Duration {
        let dice = if dice.is_finite() { dice.clamp(0.0, 1.0) } else { 0.0 };
        let own = self.jitter.spread(self.schedule.wait(failure), dice);
        match hint {
            Some(hint) => own.max(self.jitter.above(hint.min(WAIT_MAX), dice)),
            None => own,
        }
    }

    /// The waits without jitter of all the retries there may be: what a plan adds up.
    pub fn waits(&self) -> impl Iterator<Item = Duration> + '_ {
        self.failures_retried().map(|failure| self.schedule.wait(failure))
    }

    /// The longest time from the start of the first try to the end of the last: a key must be kept at least
    /// this long.
    ///
    /// It holds as long as no call takes longer than `call_max` and no hint asks for more than `hint_max`.
    pub fn horizon(&self, call_max: Duration, hint_max: Duration) -> Duration {
        let calls = call_max.saturating_mul(self.tries_allowed());
        self.failures_retried()
            .fold(calls, |sum, failure| sum.saturating_add(self.wait(failure, 1.0, Some(hint_max))))
    }

    /// The moment of the next try, or that it lies beyond the deadline.
    pub fn due(now: Timestamp, wait: Duration, deadline: Option<Timestamp>) -> Result<Timestamp, TooLate> {
        let due = now.plus(wait);
        match deadline {
            Some(deadline) if deadline <= due => Err(TooLate { come_back_at: due }),
            _ => Ok(due),
        }
    }

    /// `tries`, bounded again, since a value that never went through [`Retry::checked`] must not hold anyone up.
    fn tries_allowed(&self) -> u32 {
        self.tries.get().min(TRIES_MAX)
    }

    /// The failures that another try may follow, in order.
    fn failures_retried(&self) -> impl Iterator<Item = NonZeroU32> + use<> {
        (1..self.tries_allowed()).filter_map(NonZeroU32::new)
    }
}

impl Schedule {
    /// The wait after failure `failure` (from 1), before jitter.
    pub fn wait(&self, failure: NonZeroU32) -> Duration {
        let steps = failure.get() - 1;
        match self {
            Self::Exponential { base, factor, cap } => {
                let times = factor.saturating_pow(steps);
                base.saturating_mul(times).min(*cap).min(WAIT_MAX)
            }
            Self::List(waits) => {
                let step = usize::try_from(steps).unwrap_or(usize::MAX);
                let wait = waits.get(step).or(waits.last()).copied().unwrap_or_default();
                wait.min(WAIT_MAX)
            }
        }
    }
}

impl Jitter {
    /// How far above a server's hint to spread when the schedule itself spreads downwards only.
    const HINT_SHARE_OF_FULL: f64 = 0.5;

    fn spread(self, wait: Duration, dice: f64) -> Duration {
        match self {
            Self::None => wait,
            Self::PlusMinus(share) => times(wait, 1.0 - share + 2.0 * share * dice),
            Self::Add(share) => times(wait, 1.0 + share * dice),
            Self::Full => times(wait, dice),
        }
    }

    fn above(self, hint: Duration, dice: f64) -> Duration {
        let share = match self {
            Self::None => 0.0,
            Self::PlusMinus(share) | Self::Add(share) => share,
            Self::Full => Self::HINT_SHARE_OF_FULL,
        };
        times(hint, 1.0 + share * dice).max(hint)
    }
}

/// `wait × by`, for any `by`: a share from a broken file must not panic in the middle of a retry.
fn times(wait: Duration, by: f64) -> Duration {
    Duration::try_from_secs_f64(wait.as_secs_f64() * by.max(0.0)).unwrap_or(wait)
}
