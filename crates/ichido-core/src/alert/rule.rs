//! The alerts that are built in, and on which terms when nobody says otherwise.

use std::time::Duration;

use crate::words;

/// The longest window: what is counted is kept for so long.
pub const WINDOW_MAX: Duration = Duration::from_hours(2);
/// The shortest window: counts are kept by the minute.
pub const WINDOW_MIN: Duration = Duration::from_mins(2);

words! {
    /// An alert that is built in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Rule {
        /// Messages were moved to the dead letters.
        // SPEC E5.
        DeadLetter = "dead_letter",
        /// Many were, in an hour.
        // SPEC A15.
        DeadLetters = "dead_letters",
        /// Many more were than is usual.
        // SPEC D19.
        DeadSurge = "dead_surge",
        /// Retries fail.
        // SPEC A15.
        FailedRetries = "failed_retries",
        /// Most of what arrives has arrived before.
        // SPEC A15.
        Duplicates = "duplicates",
        /// Messages take long from being put in to their end, on average.
        // SPEC A15.
        ProcessingDelay = "processing_delay",
        /// The slowest of twenty messages takes long.
        // SPEC D19.
        LagP95 = "lag_p95",
        /// A message that could be sent waits long.
        OldestWaiting = "oldest_waiting",
        /// Of messages nobody knows whether they took effect, and a person must decide.
        // SPEC D8.
        Parked = "parked",
        /// A destination counts as down, and is left alone.
        CircuitOpen = "circuit_open",
        /// The audit trail is not as it was sealed.
        // SPEC F5.
        AuditBroken = "audit_broken",
    }
}

/// On which terms an alert fires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// How far back it looks; `None` where it looks at how things stand.
    pub window: Option<Duration>,
    /// The least samples by which it fires.
    pub least: u64,
    /// It fires above this, in the rule's [`Unit`].
    pub above: f64,
}

words! {
    /// What a rule measures in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit {
        /// How many.
        Count = "count",
        /// A share, from 0 to 1.
        Share = "share",
        /// Seconds.
        Seconds = "seconds",
        /// How many times the usual.
        Times = "times",
    }
}

impl Rule {
    /// What it measures in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::DeadLetter | Self::DeadLetters | Self::Parked | Self::CircuitOpen | Self::AuditBroken => {
                Unit::Count
            }
            Self::FailedRetries | Self::Duplicates => Unit::Share,
            Self::ProcessingDelay | Self::LagP95 | Self::OldestWaiting => Unit::Seconds,
            Self::DeadSurge => Unit::Times,
        }
    }

    /// Whether it is about queues, each of which may have terms of its own.
    pub const fn is_of_queues(self) -> bool {
        !matches!(self, Self::CircuitOpen | Self::AuditBroken)
    }

    /// The terms that hold when nobody says otherwise.
    pub const fn terms(self) -> Terms {
        match self {
            Self::DeadLetter => Terms { window: Some(Duration::from_mins(15)), least: 1, above: 0.0 },
            Self::DeadLetters => Terms { window: Some(Duration::from_hours(1)), least: 1, above: 10.0 },
            Self::DeadSurge => Terms { window: Some(Duration::from_mins(5)), least: 10, above: 5.0 },
            Self::FailedRetries => Terms { window: Some(Duration::from_mins(15)), least: 20, above: 0.05 },
            Self::Duplicates => Terms { window: Some(Duration::from_mins(15)), least: 100, above: 0.5 },
            Self::ProcessingDelay => Terms { window: Some(Duration::from_mins(5)), least: 5, above: 300.0 },
            Self::LagP95 => Terms { window: Some(Duration::from_mins(5)), least: 20, above: 120.0 },
            Self::OldestWaiting => Terms { window: None, least: 1, above: 600.0 },
            Self::Parked | Self::CircuitOpen | Self::AuditBroken => {
                Terms { window: None, least: 1, above: 0.0 }
            }
        }
    }
}
