//! The built-in alerts and their default terms.

use std::time::Duration;

use crate::words;

/// The longest window: counts are kept this long.
pub const MAX_WINDOW: Duration = Duration::from_hours(2);
/// The shortest window: counts are per minute.
pub const MIN_WINDOW: Duration = Duration::from_mins(2);

words! {
    /// A built-in alert.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum AlertRule {
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
        /// The outcome of requests is unknown and a person must decide.
        // SPEC F2.
        UnknownOutcome = "unknown_outcome",
    }
}

/// The terms on which an alert fires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlertTerms {
    /// How far back it looks; `None` if it looks at the current state.
    pub window: Option<Duration>,
    /// The minimum number of samples.
    pub min_samples: u64,
    /// The threshold, in the rule's [`MeasureUnit`].
    pub above: f64,
}

words! {
    /// The unit of a rule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MeasureUnit {
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

impl AlertRule {
    /// Returns its unit.
    pub const fn unit(self) -> MeasureUnit {
        match self {
            Self::DeadLetter
            | Self::DeadLetters
            | Self::Parked
            | Self::CircuitOpen
            | Self::AuditBroken
            | Self::UnknownOutcome => MeasureUnit::Count,
            Self::FailedRetries | Self::Duplicates => MeasureUnit::Share,
            Self::ProcessingDelay | Self::LagP95 | Self::OldestWaiting => MeasureUnit::Seconds,
            Self::DeadSurge => MeasureUnit::Times,
        }
    }

    /// Returns whether it is about queues, which may each have their own terms.
    pub const fn is_of_queues(self) -> bool {
        !matches!(self, Self::CircuitOpen | Self::AuditBroken | Self::UnknownOutcome)
    }

    /// Returns the default terms.
    pub const fn terms(self) -> AlertTerms {
        match self {
            Self::DeadLetter => {
                AlertTerms { window: Some(Duration::from_mins(15)), min_samples: 1, above: 0.0 }
            }
            Self::DeadLetters => {
                AlertTerms { window: Some(Duration::from_hours(1)), min_samples: 1, above: 10.0 }
            }
            Self::DeadSurge => {
                AlertTerms { window: Some(Duration::from_mins(5)), min_samples: 10, above: 5.0 }
            }
            Self::FailedRetries => {
                AlertTerms { window: Some(Duration::from_mins(15)), min_samples: 20, above: 0.05 }
            }
            Self::Duplicates => {
                AlertTerms { window: Some(Duration::from_mins(15)), min_samples: 100, above: 0.5 }
            }
            Self::ProcessingDelay => {
                AlertTerms { window: Some(Duration::from_mins(5)), min_samples: 5, above: 300.0 }
            }
            Self::LagP95 => {
                AlertTerms { window: Some(Duration::from_mins(5)), min_samples: 20, above: 120.0 }
            }
            Self::OldestWaiting => AlertTerms { window: None, min_samples: 1, above: 600.0 },
            Self::Parked | Self::CircuitOpen | Self::AuditBroken | Self::UnknownOutcome => {
                AlertTerms { window: None, min_samples: 1, above: 0.0 }
            }
        }
    }
}
