//! An incident from its opening to its end.

use std::time::Duration;

use super::AlertTerms;
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
pub struct Measurement {
    /// The value in the rule's unit.
    pub value: f64,
    /// The number of samples.
    pub samples: u64,
}

impl Measurement {
    /// Nothing happened.
    pub const NOTHING: Self = Self { value: 0.0, samples: 0 };

    /// Counts events; each is a sample.
    pub fn of_count(count: u64) -> Self {
        Self { value: super::measure::float(count), samples: count }
    }
}

/// The status of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertStatus {
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
pub enum AlertStep {
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
pub fn judge(terms: AlertTerms, standing: AlertStatus, reading: Measurement, now: Timestamp) -> AlertStep {
    match standing {
        AlertStatus::Quiet if fires(terms, reading) => AlertStep::Open,
        AlertStatus::Quiet => AlertStep::Stay,
        AlertStatus::Firing { clear_since } => match (clear_since, is_clear(terms, reading)) {
            (None, true) => AlertStep::Clear,
            (Some(_), false) => AlertStep::Relapse,
            (Some(since), true) if since.plus(CLEAR_FOR) <= now => AlertStep::Resolve,
            (None, false) | (Some(_), true) => AlertStep::Stay,
        },
    }
}

fn fires(terms: AlertTerms, reading: Measurement) -> bool {
    terms.min_samples <= reading.samples && terms.above < reading.value
}

/// Returns whether it is clear.
///
/// Too few samples count as clear: the events have left the window.
fn is_clear(terms: AlertTerms, reading: Measurement) -> bool {
    reading.samples < terms.min_samples || reading.value <= terms.above * CLEAR_SHARE
}
