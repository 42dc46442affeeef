//! Settings of a batch: how fast, how often and for how long a model is asked.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::pace::{self, CircuitSettings, PerSecond};
use ichido_core::retry::{MAX_WAIT, Retry, ScheduleError};
use ichido_store::answer::limits::MAX_TOPIC_BYTES;

use crate::models::Model;

/// The limits of a batch.
pub mod limits {
    use std::time::Duration;

    /// Maximum number of calls in flight.
    pub const MAX_PARALLEL: u32 = 1_000;
    /// Maximum pause that an endpoint may ask for: a mistaken `Retry-After` must not stop batches for a month.
    pub const MAX_PAUSE: Duration = Duration::from_hours(1);
    /// A pause of this length or more that an endpoint asks for is one of the whole endpoint, and announced. A shorter one is
    /// the refused item's own wait.
    pub const MIN_PAUSE: Duration = Duration::from_secs(30);
    /// Maximum wait before an item's first call.
    pub const MAX_INTERVAL: Duration = Duration::from_hours(1);
    /// Initial calls per second to an endpoint that nothing is known of. Most models' limits are near it, and a higher
    /// one is reached within a few seconds.
    pub const RATE_START: f64 = 20.0;
    /// Up to this many calls in flight are not a flood: they are made as they come, whatever is known of the endpoint.
    pub const PARALLEL_FEW: u32 = 4;
    /// Maximum number of endpoints of a model.
    pub const MAX_ENDPOINTS: usize = 32;
}

/// How far ahead calls get their slots. Each call asks for its own, so there is no need to hand out many. A slot that
/// is handed out keeps its time when the endpoint refuses.
const HORIZON: Duration = Duration::from_millis(250);

/// Settings of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Maximum number of calls in flight.
    // SPEC B4.
    pub parallel: NonZeroU32,
    /// How long an item waits in its slot before its first call.
    // SPEC B4.
    pub interval: Duration,
    /// When a throttled or unreachable call is retried.
    // SPEC B2, B3.
    pub retry: Retry,
    /// How often an answer in the wrong form is asked for again, in addition.
    // SPEC B1.
    pub answer_retries: u32,
    /// The maximum pace of each endpoint, and what happens when it refuses.
    ///
    /// However often an endpoint refuses, it is called once within the first retry's wait, so a single item is retried
    /// on schedule. `rate_start` applies to more than [`limits::PARALLEL_FEW`] calls in flight.
    pub pace: pace::PaceSettings,
    /// Maximum duration of a run; questions without an answer by then get a fallback.
    // SPEC B9.
    pub deadline: Option<Duration>,
}

/// Why settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The retry settings are invalid.
    #[error("retry: {0}")]
    Retry(#[from] ScheduleError),
    /// The number exceeds [`limits::MAX_PARALLEL`].
    #[error("parallel is {found}; it must be at most {}", limits::MAX_PARALLEL)]
    Parallel {
        /// The value set.
        found: u32,
    },
    /// The interval exceeds [`limits::MAX_INTERVAL`].
    #[error("the interval is {found:?}; it must be at most {:?}", limits::MAX_INTERVAL)]
    Interval {
        /// The value set.
        found: Duration,
    },
    /// The model has no endpoint, or more than [`limits::MAX_ENDPOINTS`].
    #[error("the model has {found} endpoints; it must have 1 to {}", limits::MAX_ENDPOINTS)]
    Endpoints {
        /// The number of endpoints.
        found: usize,
    },
    /// The topic's name is empty or too long.
    #[error("a topic's name must have 1 to {MAX_TOPIC_BYTES} bytes")]
    Topic,
}

impl Settings {
    /// The defaults: two calls in flight, an interval of 2.5 s, four retries, no deadline.
    ///
    /// The retries come after 2, 4, 8 and 16 s, each plus up to half as much again.
    pub const DEFAULT: Self = Self {
        parallel: NonZeroU32::new(2).expect("two is not zero"),
        interval: Duration::from_millis(2_500),
        retry: Retry::LLM,
        answer_retries: 2,
        pace: pace::PaceSettings {
            rate_start: Some(PerSecond::clamped(limits::RATE_START)),
            horizon: HORIZON,
            long_pause: limits::MIN_PAUSE,
            ..pace::PaceSettings::DEFAULT
        },
        deadline: None,
    };

    /// Validates the settings, whatever the model.
    pub fn check(&self) -> Result<(), SettingsError> {
        if limits::MAX_PARALLEL < self.parallel.get() {
            return Err(SettingsError::Parallel { found: self.parallel.get() });
        }
        if limits::MAX_INTERVAL < self.interval {
            return Err(SettingsError::Interval { found: self.interval });
        }
        self.retry.clone().checked()?;
        Ok(())
    }

    /// Validates the settings for a model.
    pub(super) fn checked(self, model: &dyn Model) -> Result<Self, SettingsError> {
        self.check()?;
        let (parallel, endpoints) = (self.parallel.get(), model.endpoints().len());
        if endpoints == 0 || limits::MAX_ENDPOINTS < endpoints {
            return Err(SettingsError::Endpoints { found: endpoints });
        }
        let deadline = self.deadline.map(|deadline| deadline.min(MAX_WAIT));
        let retry = self.retry.checked()?;
        let first_wait = retry.schedule.wait(NonZeroU32::MIN).as_secs_f64();
        let min_rate = PerSecond::clamped(self.pace.min_rate.get().max(1.0 / first_wait));
        let rate_start = self.pace.rate_start.filter(|_| limits::PARALLEL_FEW < parallel);
        let max_pause = self.pace.max_pause.min(limits::MAX_PAUSE);
        // An endpoint that is down is checked again within an item's longest wait, so a plan holds.
        let max_rest = retry.waits().max().unwrap_or_default();
        let circuit = CircuitSettings {
            rest: self.pace.circuit.rest.min(max_rest),
            max_rest: self.pace.circuit.max_rest.min(max_rest),
            ..self.pace.circuit
        };
        let pace = pace::PaceSettings { min_rate, rate_start, max_pause, circuit, ..self.pace };
        Ok(Self { retry, pace, deadline, ..self })
    }
}
