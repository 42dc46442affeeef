//! Schedules: how long to wait after the n-th failure.

use super::{Guarantee, MAX_WAIT};
use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Timestamp;

/// The maximum number of attempts of any schedule; more would mean never giving up.
pub const MAX_ATTEMPTS: u32 = 1_000;

/// How often to try, and how long to wait between attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// The waits before jitter.
    pub schedule: Schedule,
    /// How the waits are jittered.
    pub jitter: Jitter,
    /// The attempts allowed, including the first one; at most [`MAX_ATTEMPTS`], whatever is written here.
    pub max_attempts: NonZeroU32,
}

/// The waits, before jitter.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// `base × factor^(n − 1)` after failure n, at most `cap`.
    Exponential {
        /// The wait after the first failure.
        base: Duration,
        /// The factor between one wait and the next.
        factor: u32,
        /// The longest wait.
        cap: Duration,
    },
    /// These waits in order; the last one repeats.
    List(Vec<Duration>),
}

/// How a wait `d` is jittered, so callers that failed together do not return together.
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

/// Why a schedule is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// An empty list.
    #[error("the list of backoff waits is empty; give at least one")]
    EmptyList,
    /// A factor of zero, which would make the second wait zero.
    #[error("the factor is 0; 1 keeps the wait, 2 doubles it")]
    FactorZero,
    /// A share that is negative, greater than 1 or not a number.
    #[error("the jitter share must be between 0 and 1")]
    ShareOutOfRange,
    /// A wait over [`MAX_WAIT`].
    #[error("a wait is {wait:?}, which is longer than 30 days ({MAX_WAIT:?})")]
    WaitTooLong {
        /// The longest wait found.
        wait: Duration,
    },
    /// A cap below the first wait.
    #[error("the cap, {cap:?}, is below the first wait, {base:?}; raise the cap, or lower the base")]
    CapBelowBase {
        /// The wait after the first failure.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// More tries than [`MAX_ATTEMPTS`].
    #[error("more than {MAX_ATTEMPTS} attempts; allow fewer and wait longer between them")]
    TooManyAttempts,
}

/// The next attempt would come after the deadline.
///
/// Failing now is better than waiting for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the next attempt would be at {come_back_at}, after the deadline")]
pub struct TooLate {
    /// When the next attempt would have been: the time to tell the caller to return.
    pub come_back_at: Timestamp,
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn attempts(count: u32) -> NonZeroU32 {
    match NonZeroU32::new(count) {
        Some(count) => count,
        None => NonZeroU32::MIN,
    }
}

impl Retry {
    /// The schedule of a client's own retries.
    ///
    /// It waits 1 s, 2 s, 4 s … without a cap, plus 0 to 10 %, and makes 3 attempts in total.
    // SPEC A9.
    pub const CLIENT: Self = Self {
        schedule: Schedule::Exponential { base: secs(1), factor: 2, cap: MAX_WAIT },
        jitter: Jitter::Add(0.1),
        max_attempts: attempts(3),
    };

    /// The schedule of calls to a model.
    ///
    /// It waits 2 s, 4 s … at most 20 s, plus 0 to 50 %, and makes 4 retries after the first attempt.
    // SPEC B2, B3.
    pub const LLM: Self = Self {
        schedule: Schedule::Exponential { base: secs(2), factor: 2, cap: secs(20) },
        jitter: Jitter::Add(0.5),
        max_attempts: attempts(5),
    };

    /// Work that soon becomes useless, such as an order: 2 s, 4 s … 256 s, each ±10 %.
    ///
    /// It makes 8 retries after the first attempt, and is the default of a queue.
    // SPEC D5.
    pub const ORDER: Self = Self {
        schedule: Schedule::Exponential { base: secs(2), factor: 2, cap: secs(256) },
        jitter: Jitter::PlusMinus(0.1),
        max_attempts: attempts(9),
    };

    /// HTTP receivers that may be down for hours: 5 s, 10 s … at most 4 h, each ±10 %.
    ///
    /// It makes 17 retries after the first attempt, within about 26 hours.
    // SPEC D5.
    pub const WEBHOOK: Self = Self {
        schedule: Schedule::Exponential { base: secs(5), factor: 2, cap: secs(4 * 60 * 60) },
        jitter: Jitter::PlusMinus(0.1),
        max_attempts: attempts(18),
    };

    /// Background jobs: `2^n × 60 s` after failure n, without a cap.
    ///
    /// It makes 3 attempts unless the job says otherwise.
    // SPEC A10.
    pub const JOB: Self = Self {
        schedule: Schedule::Exponential { base: secs(120), factor: 2, cap: MAX_WAIT },
        jitter: Jitter::None,
        max_attempts: attempts(3),
    };

    /// Returns [`Retry::WEBHOOK`], ended early if the receiver would forget the key before its last attempt.
    ///
    /// Every attempt then arrives within the receiver's key window, as long as no call takes longer than `max_call`, none
    /// is still in flight `max_delay` after its end, and no server asks for a longer wait. Without a key window, it is the
    /// whole schedule.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido_core::retry::{Guarantee, Retry};
    ///
    /// let keyed = Guarantee::Keyed { keeps_for: Duration::from_hours(24) };
    /// let retry = Retry::webhook(keyed, Duration::from_secs(15), Duration::from_mins(1));
    /// assert_eq!(retry.max_attempts.get(), 17, "one less than of an idempotent receiver");
    /// ```
    // SPEC D5.
    pub fn webhook(guarantee: Guarantee, max_call: Duration, max_delay: Duration) -> Self {
        let mut retry = Self::WEBHOOK;
        if let Guarantee::Keyed { keeps_for } = guarantee {
            let end = |retry: &Self| retry.horizon(max_call, Duration::ZERO).saturating_add(max_delay);
            while keeps_for < end(&retry) && 1 < retry.max_attempts.get() {
                retry.max_attempts = attempts(retry.max_attempts.get() - 1);
            }
        }
        retry
    }

    /// Validates a schedule from a file or a caller.
    pub fn checked(self) -> Result<Self, ScheduleError> {
        let longest = match &self.schedule {
            Schedule::Exponential { factor: 0, .. } => return Err(ScheduleError::FactorZero),
            Schedule::Exponential { base, cap, .. } if cap < base => {
                return Err(ScheduleError::CapBelowBase { base: *base, cap: *cap });
            }
            Schedule::Exponential { cap, .. } => *cap,
            Schedule::List(waits) => *waits.iter().max().ok_or(ScheduleError::EmptyList)?,
        };
        if MAX_WAIT < longest {
            return Err(ScheduleError::WaitTooLong { wait: longest });
        }
        if MAX_ATTEMPTS < self.max_attempts.get() {
            return Err(ScheduleError::TooManyAttempts);
        }
        match self.jitter {
            Jitter::PlusMinus(share) | Jitter::Add(share) if !(0.0..=1.0).contains(&share) => {
                Err(ScheduleError::ShareOutOfRange)
            }
            _ => Ok(self),
        }
    }

    /// Returns whether an attempt is left after `failures` failures.
    ///
    /// Failure n is final if n ≥ tries.
    // SPEC E1.
    pub fn has_attempts_left(&self, failures: u32) -> bool {
        failures < self.max_attempts()
    }

    /// Returns how long to wait after failure `failure`, counted from 1.
    ///
    /// `dice` is uniform in [0, 1) and drawn by the caller. `hint` is the wait that the server asked for. It is a
    /// minimum, with the jitter on top, because callers that got the same hint must not all return at the same moment.
    pub fn wait(&self, failure: NonZeroU32, dice: f64, hint: Option<Duration>) -> Duration {
        let dice = if dice.is_finite() { dice.clamp(0.0, 1.0) } else { 0.0 };
        let own = self.jitter.spread(self.schedule.wait(failure), dice);
        match hint {
            Some(hint) => own.max(self.jitter.above(hint.min(MAX_WAIT), dice)),
            None => own,
        }
    }

    /// Returns the waits of all possible retries without jitter, for a plan to add up.
    pub fn waits(&self) -> impl Iterator<Item = Duration> + '_ {
        self.failures_retried().map(|failure| self.schedule.wait(failure))
    }

    /// Returns the longest time from the start of the first attempt to the end of the last.
    ///
    /// A key must be kept at least this long.
    ///
    /// It holds as long as no call takes longer than `max_call` and no hint exceeds `max_hint`.
    pub fn horizon(&self, max_call: Duration, max_hint: Duration) -> Duration {
        let calls = max_call.saturating_mul(self.max_attempts());
        self.failures_retried()
            .fold(calls, |sum, failure| sum.saturating_add(self.wait(failure, 1.0, Some(max_hint))))
    }

    /// Returns the time of the next attempt, or an error if it is after the deadline.
    pub fn due(now: Timestamp, wait: Duration, deadline: Option<Timestamp>) -> Result<Timestamp, TooLate> {
        let due = now.plus(wait);
        match deadline {
            Some(deadline) if deadline <= due => Err(TooLate { come_back_at: due }),
            _ => Ok(due),
        }
    }

    /// Returns `tries`, bounded again, because an unchecked value must not block anyone.
    fn max_attempts(&self) -> u32 {
        self.max_attempts.get().min(MAX_ATTEMPTS)
    }

    /// Returns the failures that another attempt may follow, in order.
    fn failures_retried(&self) -> impl Iterator<Item = NonZeroU32> + use<> {
        (1..self.max_attempts()).filter_map(NonZeroU32::new)
    }
}

impl Schedule {
    /// Returns the wait after failure `failure` (from 1), before jitter.
    pub fn wait(&self, failure: NonZeroU32) -> Duration {
        let steps = failure.get() - 1;
        match self {
            Self::Exponential { base, factor, cap } => {
                let times = factor.saturating_pow(steps);
                base.saturating_mul(times).min(*cap).min(MAX_WAIT)
            }
            Self::List(waits) => {
                let step = usize::try_from(steps).unwrap_or(usize::MAX);
                let wait = waits.get(step).or(waits.last()).copied().unwrap_or_default();
                wait.min(MAX_WAIT)
            }
        }
    }
}

impl Jitter {
    /// The jitter above a server's hint if the schedule itself only jitters downwards.
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

/// Returns `wait × by` for any `by`.
///
/// An invalid share from a file must not panic during a retry.
fn times(wait: Duration, by: f64) -> Duration {
    Duration::try_from_secs_f64(wait.as_secs_f64() * by.max(0.0)).unwrap_or(wait)
}
