//! How hard a model is asked, and for how long.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::pace::{self, CircuitSettings, PerSecond};
use ichido_core::retry::{Retry, ScheduleError, WAIT_MAX};
use ichido_store::answer::limits::TOPIC_BYTES_MAX;

use crate::models::Model;

/// The bounds of a batch.
pub mod limits {
    use std::time::Duration;

    /// The most calls at once.
    pub const PARALLEL_MAX: u32 = 1_000;
    /// The longest that an endpoint is left alone because it asked for it: a mistaken `Retry-After` must not stop batches for a month.
    pub const PAUSE_MAX: Duration = Duration::from_hours(1);
    /// The longest wait before an item's first call.
    pub const INTERVAL_MAX: Duration = Duration::from_hours(1);
    /// How many calls a second an endpoint gets of which nothing is known. The limits of most models lie near it; from here a higher one is
    /// reached within a few seconds.
    pub const RATE_START: f64 = 20.0;
    /// So few calls at once are no flood: they are made as they come, whatever is known of the endpoint.
    pub const PARALLEL_FEW: u32 = 4;
    /// The most endpoints of a model.
    pub const ENDPOINTS_MAX: usize = 32;
}

/// How far ahead calls get their slots. Each asks for its own, so that there is no need to hand many out; and what is handed out keeps its
/// moment when the endpoint refuses.
const HORIZON: Duration = Duration::from_millis(250);

/// How a batch is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// At most this many calls at once (SPEC B4).
    pub parallel: NonZeroU32,
    /// How long an item waits in its place before its first call (SPEC B4).
    pub interval: Duration,
    /// When a call that was throttled, or that found nobody, is made again (SPEC B2, B3).
    pub retry: Retry,
    /// How often an answer that is not what was asked for is asked for again, besides (SPEC B1).
    pub answer_retries: u32,
    /// How fast each endpoint is called at most, and what holds when it refuses. However often it does, it is called once in the time
    /// of the first retry's wait, so that one item alone is retried when its schedule says. Its `rate_start` holds for more than
    /// [`limits::PARALLEL_FEW`] calls at once.
    pub pace: pace::Settings,
    /// The longest that a run takes; what is not answered by then gets a fallback (SPEC B9).
    pub deadline: Option<Duration>,
}

/// What cannot be run with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The retries make no sense.
    #[error("the retries: {0}")]
    Retry(#[from] ScheduleError),
    /// More at once than [`limits::PARALLEL_MAX`].
    #[error("{found} calls at once are more than {}; lower it", limits::PARALLEL_MAX)]
    Parallel {
        /// As it was set.
        found: u32,
    },
    /// A longer interval than [`limits::INTERVAL_MAX`].
    #[error("an interval of {found:?} is longer than {:?}; shorten it", limits::INTERVAL_MAX)]
    Interval {
        /// As it was set.
        found: Duration,
    },
    /// No endpoint, or more than [`limits::ENDPOINTS_MAX`].
    #[error("the model has {found} endpoints; it needs one, and may have {}", limits::ENDPOINTS_MAX)]
    Endpoints {
        /// How many there are.
        found: usize,
    },
    /// A topic without a name, or with too long a one.
    #[error("a topic's name has 1 to {TOPIC_BYTES_MAX} bytes")]
    Topic,
}

impl Settings {
    /// As the specification has it: two at a time, 2.5 s apart, 4 retries after 2, 4, 8 and 16 s and up to half as much again, no deadline.
    pub const DEFAULT: Self = Self {
        parallel: NonZeroU32::new(2).expect("two is not zero"),
        interval: Duration::from_millis(2_500),
        retry: Retry::LLM,
        answer_retries: 2,
        pace: pace::Settings {
            rate_start: Some(PerSecond::clamped(limits::RATE_START)),
            horizon: HORIZON,
            ..pace::Settings::DEFAULT
        },
        deadline: None,
    };

    /// The same, if a model can be asked so.
    pub(super) fn checked(self, model: &dyn Model) -> Result<Self, SettingsError> {
        let (parallel, endpoints) = (self.parallel.get(), model.endpoints().len());
        if limits::PARALLEL_MAX < parallel {
            return Err(SettingsError::Parallel { found: parallel });
        }
        if limits::INTERVAL_MAX < self.interval {
            return Err(SettingsError::Interval { found: self.interval });
        }
        if endpoints == 0 || limits::ENDPOINTS_MAX < endpoints {
            return Err(SettingsError::Endpoints { found: endpoints });
        }
        let deadline = self.deadline.map(|deadline| deadline.min(WAIT_MAX));
        let retry = self.retry.checked()?;
        let first_wait = retry.schedule.wait(NonZeroU32::MIN).as_secs_f64();
        let rate_floor = PerSecond::clamped(self.pace.rate_floor.get().max(1.0 / first_wait));
        let rate_start = self.pace.rate_start.filter(|_| limits::PARALLEL_FEW < parallel);
        let pause_max = self.pace.pause_max.min(limits::PAUSE_MAX);
        // An endpoint that is down is looked at again no later than an item's longest wait is over, so that a plan holds.
        let rest_max = retry.waits().max().unwrap_or_default();
        let circuit = CircuitSettings {
            rest: self.pace.circuit.rest.min(rest_max),
            rest_max: self.pace.circuit.rest_max.min(rest_max),
            ..self.pace.circuit
        };
        let pace = pace::Settings { rate_floor, rate_start, pause_max, circuit, ..self.pace };
        Ok(Self { retry, pace, deadline, ..self })
    }
}
