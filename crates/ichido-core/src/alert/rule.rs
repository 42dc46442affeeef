//! The built-in alerts and their default terms.

use std::time::Duration;

use crate::words;

/// The longest window: counts are kept this long.
pub const WINDOW_MAX: Duration = Duration::from_hours(2);
/// The shortest window: counts are per minute.
pub const WINDOW_MIN: Duration = Duration::from_mins(2);

words! {
    /// A built-in alert.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Rule {
        /// Messages were dead-lettered.
        // SPEC E5.
        DeadLetter = "dead_letter",
        /// Many messages were dead-lettered in an hour.
        // SPEC A15.
        DeadLetters = "dead_letters",
        /// Many more messages were dead-lettered than usual.
        // SPEC D19.
        DeadSurge = "dead_surge",
        /// Retries fail.
        // SPEC A15.
        FailedRetries = "failed_retries",
        /// Most of what arrives is a duplicate.
        // SPEC A15.
        Duplicates = "duplicates",
        /// Messages take long from enqueue to end, on average.
        // SPEC A15.
        ProcessingDelay = "processing_delay",
        /// The 95th percentile of message time is high.
        // SPEC D19.
        LagP95 = "lag_p95",
        /// A message that could be sent waits long.
        OldestWaiting = "oldest_waiting",
        /// The effect of messages is unknown and a person must decide.
        // SPEC D8.
        Parked = "parked",
        /// A destination counts as down and is not called.
        CircuitOpen = "circuit_open",
        /// The audit trail differs from what was sealed.
        // SPEC F5.
        AuditBroken = "audit_broken",
    }
}

/// The terms on which an alert fires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// How far back it looks; `None` if it looks at the current state.
    pub window: Option<Duration>,
    /// The minimum number of samples.
    pub least: u64,
    /// The threshold, in the rule's [`Unit`].
    pub above: f64,
}

words! {
    /// The unit of a rule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit {
        /// How many.
        Count = "count",
        /// A share, from 0 to 1.
        Share = "share",
        /// Seconds.
        Seconds = "seconds",
        /// A multiple of the usual.
        Times = "times",
    }
}

impl Rule {
    /// Returns its unit.
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

    /// Returns whether it is about queues, which may each have their own terms.
    pub const fn is_of_queues(self) -> bool {
        !matches!(self, Self::CircuitOpen | Self::AuditBroken)
    }

    /// Returns the default terms.
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
