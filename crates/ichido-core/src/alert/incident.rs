//! An incident from its opening to its end.

use std::time::Duration;

use super::Terms;
use crate::time::Timestamp;

/// How long a measure must stay clear before its incident ends.
///
/// A measure that comes and goes is one incident.
pub const CLEAR_FOR: Duration = Duration::from_mins(2);
/// The share of the threshold below which a measure is clear.
///
/// One that hovers around the threshold is not.
pub const CLEAR_SHARE: f64 = 0.9;

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The value in the rule's unit.
    pub value: f64,
    /// The number of samples.
    pub samples: u64,
}

impl Reading {
    /// Nothing happened.
    pub const NOTHING: Self = Self { value: 0.0, samples: 0 };

    /// Counts events; each is a sample.
    pub fn of_count(count: u64) -> Self {
        Self { value: super::measure::float(count), samples: count }
    }
}

/// The status of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no incident.
    Quiet,
    /// There is an incident.
    Firing {
        /// Since when the measure is clear; `None` while it is not.
        clear_since: Option<Timestamp>,
    },
}

/// What follows from a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Stay,
    /// An incident opens: somebody is notified.
    Open,
    /// It is clear from now on.
    Clear,
    /// It is no longer clear: the same incident continues.
    Relapse,
    /// It has been clear long enough: somebody is notified.
    Resolve,
}

/// Decides what follows from a reading, given the alert's status.
pub fn judge(terms: Terms, standing: Standing, reading: Reading, now: Timestamp) -> Step {
    match standing {
        Standing::Quiet if fires(terms, reading) => Step::Open,
        Standing::Quiet => Step::Stay,
        Standing::Firing { clear_since } => match (clear_since, is_clear(terms, reading)) {
            (None, true) => Step::Clear,
            (Some(_), false) => Step::Relapse,
            (Some(since), true) if since.plus(CLEAR_FOR) <= now => Step::Resolve,
            (None, false) | (Some(_), true) => Step::Stay,
        },
    }
}

fn fires(terms: Terms, reading: Reading) -> bool {
    terms.least <= reading.samples && terms.above < reading.value
}

/// Returns whether it is clear.
///
/// Too few samples count as clear: the events have left the window.
fn is_clear(terms: Terms, reading: Reading) -> bool {
    reading.samples < terms.least || reading.value <= terms.above * CLEAR_SHARE
}
