//! An incident, from its opening to its end.

use std::time::Duration;

use super::Terms;
use crate::time::Timestamp;

/// How long a measure must stay clear before its incident is over: what comes and goes is one incident.
pub const CLEAR_FOR: Duration = Duration::from_mins(2);
/// The share of the bound that a measure must not exceed to count as clear: what hovers around the bound is not over.
pub const CLEAR_SHARE: f64 = 0.9;

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// In the rule's unit.
    pub value: f64,
    /// Of how many samples.
    pub samples: u64,
}

impl Reading {
    /// Nothing happened.
    pub const NOTHING: Self = Self { value: 0.0, samples: 0 };

    /// So many; each is a sample.
    pub fn of_count(count: u64) -> Self {
        Self { value: super::measure::float(count), samples: count }
    }
}

/// How an alert stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no incident.
    Quiet,
    /// There is one.
    Firing {
        /// Since when the measure is clear again; `None` while it is not.
        clear_since: Option<Timestamp>,
    },
}

/// What follows from a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Stay,
    /// An incident opens: somebody is told.
    Open,
    /// It is clear, from now on.
    Clear,
    /// It was clear, and is not any more: it is the same incident.
    Relapse,
    /// It has been clear for long enough: somebody is told.
    Resolve,
}

/// What follows from a reading, given how the alert stands.
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

/// Too few samples say nothing against it: what happened is out of the window.
fn is_clear(terms: Terms, reading: Reading) -> bool {
    reading.samples < terms.least || reading.value <= terms.above * CLEAR_SHARE
}
