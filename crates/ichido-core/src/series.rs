//! Series: counts over time, for a queue, a destination, an operation or a language model.
//!
//! Guarantee: a [`SeriesRange`] has at least one and at most [`MAX_POINTS`] points. Each is as long as the step and begins at a
//! multiple of it since 1970 in UTC, so ranges with the same step have the same points. Nothing here reads a clock or a store.
//!
//! ```
//! use ichido_core::series::{SeriesRange, SeriesStep};
//! use ichido_core::time::Timestamp;
//! use std::time::Duration;
//!
//! let step = SeriesStep::new(Duration::from_mins(5)).unwrap();
//! let at = |text| Timestamp::parse(text).unwrap();
//! let (from, to) = (at("2026-11-15T03:02:00Z"), at("2026-11-15T03:11:00Z"));
//! let range = SeriesRange::new(Some(from), Some(to), step, to).unwrap();
//! assert_eq!((range.from(), range.to()), (at("2026-11-15T03:00:00Z"), at("2026-11-15T03:15:00Z")));
//! assert_eq!(range.starts().count(), 3);
//! ```

use std::fmt;
use std::time::Duration;

use crate::alert::AlertSubject;
use crate::settings::duration;
use crate::time::Timestamp;

/// How long counts per minute are kept.
pub const MINUTES_KEPT: Duration = Duration::from_hours(25);
/// How long counts per hour are kept.
pub const HOURS_KEPT: Duration = Duration::from_hours(90 * 24);
/// The maximum number of points of one range: as many as there are minutes in [`MINUTES_KEPT`].
pub const MAX_POINTS: u32 = 1_500;
/// The number of points if only one end of the range is given, or none.
pub const DEFAULT_POINTS: u32 = 60;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// The subject of a series, written as `queue:orders`, `destination:broker`, `operation:orders.create`, `model:gpt-5`, `queues`,
/// `operations` or `models`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeriesSubject {
    /// A queue of the outbox.
    Queue(String),
    /// A destination, with the deliveries of all its queues.
    Destination(String),
    /// An operation of the ledger.
    Operation(String),
    /// A language model, with the calls of all that ask it.
    Model(String),
    /// All queues together.
    Queues,
    /// All operations together.
    Operations,
    /// All language models together.
    Models,
}

const QUEUES: &str = "queues";
const OPERATIONS: &str = "operations";
const MODELS: &str = "models";
/// Begins the text of a language model in the store.
const MODEL: &str = "model ";

impl SeriesSubject {
    /// Parses what [`fmt::Display`] wrote; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            QUEUES => return Some(Self::Queues),
            OPERATIONS => return Some(Self::Operations),
            MODELS => return Some(Self::Models),
            _ => (),
        }
        let (kind, name) = text.split_once(':').filter(|(_, name)| !name.is_empty())?;
        let name = name.to_owned();
        Some(match kind {
            "queue" => Self::Queue(name),
            "destination" => Self::Destination(name),
            "operation" => Self::Operation(name),
            "model" => Self::Model(name),
            _ => return None,
        })
    }

    /// Returns its text in the store, where alerts read the same counts: `queue orders`.
    pub fn about(&self) -> String {
        match self {
            Self::Queue(name) => AlertSubject::Queue(name.clone()).to_string(),
            Self::Destination(name) => AlertSubject::Destination(name.clone()).to_string(),
            Self::Operation(name) => AlertSubject::Operation(name.clone()).to_string(),
            Self::Model(name) => format!("{MODEL}{name}"),
            Self::Queues => QUEUES.to_owned(),
            Self::Operations => OPERATIONS.to_owned(),
            Self::Models => MODELS.to_owned(),
        }
    }

    /// Parses what [`Self::about`] returned; `None` for any other text.
    pub fn of_about(about: &str) -> Option<Self> {
        match (about, AlertSubject::parse(about)) {
            (QUEUES, _) => Some(Self::Queues),
            (OPERATIONS, _) => Some(Self::Operations),
            (MODELS, _) => Some(Self::Models),
            (_, Some(AlertSubject::Queue(name))) => Some(Self::Queue(name)),
            (_, Some(AlertSubject::Destination(name))) => Some(Self::Destination(name)),
            (_, Some(AlertSubject::Operation(name))) => Some(Self::Operation(name)),
            (_, Some(AlertSubject::Trail)) => None,
            (_, None) => about.strip_prefix(MODEL).map(|name| Self::Model(name.to_owned())),
        }
    }
}

impl fmt::Display for SeriesSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => write!(f, "queue:{name}"),
            Self::Destination(name) => write!(f, "destination:{name}"),
            Self::Operation(name) => write!(f, "operation:{name}"),
            Self::Model(name) => write!(f, "model:{name}"),
            Self::Queues => f.write_str(QUEUES),
            Self::Operations => f.write_str(OPERATIONS),
            Self::Models => f.write_str(MODELS),
        }
    }
}

/// The length of a point: whole minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesStep(Duration); // Invariant: MINUTE..=MAX, whole minutes.

impl SeriesStep {
    /// One minute, the shortest.
    pub const MINUTE: Self = Self(MINUTE);
    /// The longest: as long as counts are kept.
    pub const MAX: Duration = HOURS_KEPT;

    /// Returns a step; `None` unless it is a whole number of minutes, at least one and at most [`Self::MAX`].
    pub fn new(step: Duration) -> Option<Self> {
        let is_whole = step.as_nanos().is_multiple_of(MINUTE.as_nanos());
        (is_whole && (MINUTE..=Self::MAX).contains(&step)).then_some(Self(step))
    }

    /// Returns the duration.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// Returns whether counts per hour suffice for it.
    pub fn is_hourly(self) -> bool {
        self.0.as_secs().is_multiple_of(HOUR.as_secs())
    }

    /// Returns how long the counts are kept that it needs.
    pub fn kept_for(self) -> Duration {
        if self.is_hourly() { HOURS_KEPT } else { MINUTES_KEPT }
    }

    fn micros(self) -> i64 {
        i64::try_from(self.0.as_micros()).unwrap_or(i64::MAX)
    }
}

/// A range of time, in points of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesRange {
    // Invariant: multiples of the step, and from < to.
    from: i64,
    to: i64,
    step: SeriesStep,
}

/// Why a range cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeriesRangeError {
    /// It ends before it begins.
    #[error("from must be before to")]
    Empty,
    /// It has more than [`MAX_POINTS`] points.
    #[error("the range has {points} points of {step}, and at most {MAX_POINTS} are returned; use a longer step or a shorter range", step = duration::format(*.step))]
    TooManyPoints {
        /// How many it has.
        points: u64,
        /// Their length.
        step: Duration,
    },
}

impl SeriesRange {
    /// Returns the points that contain a range of time.
    ///
    /// Without `to` it has [`DEFAULT_POINTS`] points since `from`, without `from` as many until `to`, and without both as many until
    /// `now`, whose point is the last one and still counts.
    pub fn new(
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        step: SeriesStep,
        now: Timestamp,
    ) -> Result<Self, SeriesRangeError> {
        let micros = step.micros();
        let start = |at: Timestamp| at.as_micros().saturating_sub(at.as_micros().rem_euclid(micros));
        // The end of the last point, exclusive.
        let end = |at: Timestamp| match at.as_micros().rem_euclid(micros) {
            0 => at.as_micros(),
            rest => at.as_micros().saturating_add(micros - rest),
        };
        let length = micros.saturating_mul(i64::from(DEFAULT_POINTS));
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) if to <= from => return Err(SeriesRangeError::Empty),
            (Some(from), Some(to)) => (start(from), end(to)),
            (Some(from), None) => (start(from), start(from).saturating_add(length)),
            (None, Some(to)) => (end(to).saturating_sub(length), end(to)),
            (None, None) => {
                let to = start(now).saturating_add(micros);
                (to.saturating_sub(length), to)
            }
        };
        let points = to.abs_diff(from) / micros.unsigned_abs();
        if u64::from(MAX_POINTS) < points {
            return Err(SeriesRangeError::TooManyPoints { points, step: step.get() });
        }
        Ok(Self { from, to, step })
    }

    /// Returns when the first point begins.
    pub const fn from(&self) -> Timestamp {
        Timestamp::from_micros(self.from)
    }

    /// Returns when the last point ends, exclusive.
    pub const fn to(&self) -> Timestamp {
        Timestamp::from_micros(self.to)
    }

    /// Returns the length of a point.
    pub const fn step(&self) -> SeriesStep {
        self.step
    }

    /// Returns when each point begins, oldest first.
    pub fn starts(&self) -> impl Iterator<Item = Timestamp> {
        let (to, step) = (self.to, self.step.micros());
        let next = move |at: &i64| at.checked_add(step).filter(|next| *next < to);
        std::iter::successors(Some(self.from), next).map(Timestamp::from_micros)
    }

    /// Returns the time before which its counts were deleted.
    pub fn kept_from(&self, now: Timestamp) -> Timestamp {
        let kept = i64::try_from(self.step.kept_for().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(now.as_micros().saturating_sub(kept))
    }
}

#[cfg(test)]
mod tests;
