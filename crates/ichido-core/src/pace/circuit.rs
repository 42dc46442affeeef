//! The circuit breaker.
//!
//! It stops calling a destination that is down, and probes whether it is back.
//!
//! Guarantee: a destination that failed [`CircuitSettings::failures`] times in a row is not called until its rest ends;
//! then at most [`CircuitSettings::probes`] calls go out, and one success closes the circuit. It cannot stay half open
//! forever: probes that never report are replaced after another rest. Only a failed probe extends the rest; the results
//! of calls that were sent earlier do not. However many messages fail at every attempt, their retries delay other
//! messages by at most one first rest.
//!
//! It counts failures in a row, not a share over a window. The breaker is for a destination that is down. One that
//! fails a third of its calls is handled by retries, and cutting it off would turn a bad hour into an outage. Also,
//! nodes can share a count in a row of the database, while a window is a list.
//!
//! Failures of different messages show that a destination is down. A message that failed before and fails again may be
//! the cause itself, so it never opens a circuit and must not keep one open for others: it becomes a probe only if no
//! message without a failure wanted to be one for a whole first rest, and its failure does not extend the rest. It
//! needs no breaker either: its own backoff spaces its attempts.
//!
//! A throttled call is not a failure here: the destination is up, and `pace` slows down.
// SPEC E2.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Timestamp;

/// When the circuit opens and how it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitSettings {
    /// The failures in a row that open it.
    pub failures: NonZeroU32,
    /// The first rest; each failed probe doubles it.
    pub rest: Duration,
    /// The longest rest.
    pub max_rest: Duration,
    /// The calls that are allowed after a rest.
    pub probes: NonZeroU32,
}

impl CircuitSettings {
    /// Ten in a row, then five seconds, up to five minutes; one probe.
    pub const DEFAULT: Self = Self {
        failures: NonZeroU32::new(10).expect("ten is not zero"),
        rest: Duration::from_secs(5),
        max_rest: Duration::from_mins(5),
        probes: NonZeroU32::MIN,
    };

    fn rest_after(&self, rest: Duration) -> Duration {
        rest.saturating_mul(2).max(self.rest).min(self.max_rest)
    }
}

/// Whether a destination is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    /// It is called; this many calls in a row failed.
    Closed {
        /// Failures since the last success.
        failures: u32,
    },
    /// It is not called.
    Open {
        /// When the rest ends.
        until: Timestamp,
        /// The length of the rest, to double it.
        rest: Duration,
    },
    /// A few calls probe it.
    HalfOpen {
        /// When the rest ended: a call sent since then is a probe.
        ///
        /// Replacement probes leave it unchanged, because a response may take longer than a rest.
        since: Timestamp,
        /// The calls that may still go out.
        probes_left: u32,
        /// When new probes go out if the others have not reported.
        renewed_at: Timestamp,
        /// The length of the rest, to double it.
        rest: Duration,
    },
}

/// An event that changes a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitEvent {
    /// A node wants to call.
    CallRequested,
    /// A node wants to call for a message of which an attempt has failed before.
    RetryRequested,
    /// This many calls were allowed.
    CallsAllowed(u32),
    /// A call succeeded, or was refused for its own reasons: the destination is up.
    Succeeded,
    /// A call found the destination down: no connection, no response, a 5xx.
    Failed {
        /// The slot of the call.
        sent: Timestamp,
    },
    /// A call found the destination down, for a message of which an attempt had failed before.
    RetryFailed {
        /// The slot of the call.
        sent: Timestamp,
    },
    /// A call was throttled.
    Throttled {
        /// The slot of the call.
        sent: Timestamp,
    },
}

impl Circuit {
    /// The circuit of a destination that was never called.
    pub const NEW: Self = Self::Closed { failures: 0 };

    /// Returns how many calls it allows now.
    pub const fn admits(self) -> u32 {
        match self {
            Self::Closed { .. } => u32::MAX,
            Self::Open { .. } => 0,
            Self::HalfOpen { probes_left, .. } => probes_left,
        }
    }

    /// Returns when it allows calls next; `None` if it already does.
    pub fn rests_until(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Open { until, .. } if now < until => Some(until),
            Self::HalfOpen { probes_left: 0, renewed_at, .. } if now < renewed_at => Some(renewed_at),
            Self::Closed { .. } | Self::Open { .. } | Self::HalfOpen { .. } => None,
        }
    }

    /// Returns the same for a message of which an attempt has failed before.
    ///
    /// It gives way to others for one first rest.
    pub fn rests_until_again(self, settings: &CircuitSettings, now: Timestamp) -> Option<Timestamp> {
        let gives_way_until = match self {
            Self::Closed { .. } => now,
            Self::Open { until: over, .. } | Self::HalfOpen { since: over, .. } => {
                over.plus(settings.rest.min(settings.max_rest))
            }
        };
        let until = self.rests_until(now).unwrap_or(now).max(gives_way_until);
        (now < until).then_some(until)
    }

    /// Returns the circuit after `event`.
    #[must_use]
    pub fn step(self, settings: &CircuitSettings, now: Timestamp, event: CircuitEvent) -> Self {
        use CircuitEvent::{
            CallRequested, CallsAllowed, Failed, RetryFailed, RetryRequested, Succeeded, Throttled,
        };
        match (self, event) {
            (Self::Closed { .. } | Self::HalfOpen { .. }, Succeeded) => Self::NEW,
            (Self::Closed { failures }, Failed { .. }) => match failures.saturating_add(1) {
                failures if failures < settings.failures.get() => Self::Closed { failures },
                _ => Self::opened(now, settings.rest.min(settings.max_rest)),
            },
            // Sent before the rest, so it is not a probe and says nothing about the destination's current state.
            (Self::HalfOpen { since, .. }, Failed { sent } | RetryFailed { sent } | Throttled { sent })
                if sent < since =>
            {
                self
            }
            (Self::HalfOpen { rest, .. }, Failed { .. }) => Self::opened(now, settings.rest_after(rest)),
            // The message may be the cause, so others need not wait longer because of it.
            (Self::HalfOpen { rest, .. }, RetryFailed { .. }) => Self::opened(now, rest),
            (Self::Closed { .. } | Self::Open { .. } | Self::HalfOpen { .. }, RetryRequested) => {
                match self.rests_until_again(settings, now) {
                    Some(_) => self,
                    None => self.step(settings, now, CallRequested),
                }
            }
            (Self::Open { until, rest }, CallRequested) if until <= now => {
                Self::probing(settings, now, until, rest)
            }
            (Self::HalfOpen { since, renewed_at, rest, .. }, CallRequested) if renewed_at <= now => {
                Self::probing(settings, now, since, rest)
            }
            (Self::HalfOpen { since, probes_left, renewed_at, rest }, CallsAllowed(count)) => {
                let probes_left = probes_left.saturating_sub(count);
                Self::HalfOpen { since, probes_left, renewed_at, rest }
            }
            // The probe learned nothing, so it is returned.
            (Self::HalfOpen { since, probes_left, renewed_at, rest }, Throttled { .. }) => {
                let probes_left = probes_left.saturating_add(1).min(settings.probes.get());
                Self::HalfOpen { since, probes_left, renewed_at, rest }
            }
            // Events of an open circuit are late, from calls before it opened; the probe will decide.
            (
                Self::Open { .. },
                CallRequested
                | CallsAllowed(_)
                | Succeeded
                | Failed { .. }
                | RetryFailed { .. }
                | Throttled { .. },
            )
            | (
                Self::Closed { .. },
                CallRequested | CallsAllowed(_) | RetryFailed { .. } | Throttled { .. },
            )
            | (Self::HalfOpen { .. }, CallRequested) => self,
        }
    }

    /// Limits rests to the longest one and removes probes from the future.
    ///
    /// They come from a clock that was set back.
    pub(super) fn without_future_times(self, settings: &CircuitSettings, now: Timestamp) -> Self {
        let bound = now.plus(settings.max_rest);
        match self {
            Self::Closed { .. } => self,
            Self::Open { until, rest } => Self::Open { until: until.min(bound), rest },
            Self::HalfOpen { since, probes_left, renewed_at, rest } => {
                Self::HalfOpen { since: since.min(now), probes_left, renewed_at: renewed_at.min(bound), rest }
            }
        }
    }

    fn opened(now: Timestamp, rest: Duration) -> Self {
        Self::Open { until: now.plus(rest), rest }
    }

    /// Returns a half-open circuit with all its probes.
    fn probing(settings: &CircuitSettings, now: Timestamp, since: Timestamp, rest: Duration) -> Self {
        Self::HalfOpen { since, probes_left: settings.probes.get(), renewed_at: now.plus(rest), rest }
    }
}

#[cfg(test)]
mod tests;
