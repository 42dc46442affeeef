//! The circuit breaker: stops calling a destination that is down, and asks now and then whether it is back.
//!
//! Guarantee: a destination that failed [`CircuitSettings::failures`] times in a row is not called until its
//! rest is over; then at most [`CircuitSettings::probes`] calls go out, and one success closes the circuit
//! again. It cannot stay half open for good: probes that never report are replaced after another rest. Only
//! a failed probe lengthens the rest; what becomes of calls that were sent before it does not. However many messages
//! fail whenever they are tried, those that do not are kept waiting no longer than one first rest by their retries.
//!
//! It counts failures in a row, not a share over a window. The breaker is for a destination that is down; one
//! that fails a third of its calls is the retries' business, and cutting it off would turn a bad hour into an
//! outage. And a count is one number that nodes can share in a row, where a window is a list.
//!
//! What says that a destination is down are different messages that fail. One that has failed before and fails again may be bad
//! itself, so it never opens a circuit, and must not keep one open for others: it is a probe only when none that has not
//! failed came for one for a whole first rest, and its failing does not lengthen the rest. It needs no breaker, either: its own
//! backoff spaces its tries.
//!
//! A refusal for coming too fast is not a failure here: the destination is up, and `pace` slows down.
// SPEC E2.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Timestamp;

/// When the circuit opens and how it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitSettings {
    /// Failures in a row that open it.
    pub failures: NonZeroU32,
    /// The first rest; each failed probe doubles it.
    pub rest: Duration,
    /// The longest rest.
    pub rest_max: Duration,
    /// Calls let through after a rest.
    pub probes: NonZeroU32,
}

impl CircuitSettings {
    /// Ten in a row, then five seconds, up to five minutes; one probe.
    pub const DEFAULT: Self = Self {
        failures: NonZeroU32::new(10).expect("ten is not zero"),
        rest: Duration::from_secs(5),
        rest_max: Duration::from_mins(5),
        probes: NonZeroU32::MIN,
    };

    fn rest_after(&self, rest: Duration) -> Duration {
        rest.saturating_mul(2).max(self.rest).min(self.rest_max)
    }
}

/// Whether a destination is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    /// It is; this many calls in a row failed.
    Closed {
        /// Failures since the last success.
        failures: u32,
    },
    /// It is not.
    Open {
        /// The moment the rest is over.
        until: Timestamp,
        /// How long the rest is, to double it.
        rest: Duration,
    },
    /// A few calls are, to see.
    HalfOpen {
        /// The moment the rest was over: a call sent since then is a probe. Probes that replace others leave it
        /// as it is, for an answer may take longer than a rest.
        since: Timestamp,
        /// Calls that may still go out.
        probes_left: u32,
        /// If nothing was heard of the probes by then, new ones go out.
        renewed_at: Timestamp,
        /// How long the rest was, to double it.
        rest: Duration,
    },
}

/// What a circuit hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitEvent {
    /// Someone wants to call.
    Asked,
    /// Someone wants to call for a message of which a try has failed before.
    AskedAgain,
    /// This many calls were let through.
    LetThrough(u32),
    /// A call did its work, or was refused for a reason of its own: the destination is up.
    Succeeded,
    /// A call failed in a way that says the destination is down: no connection, no answer, a 5xx.
    Failed {
        /// The slot of the call.
        sent: Timestamp,
    },
    /// The same, of a call for a message of which a try had failed before.
    FailedAgain {
        /// The slot of the call.
        sent: Timestamp,
    },
    /// A call was refused for coming too fast.
    Throttled {
        /// The slot of the call.
        sent: Timestamp,
    },
}

impl Circuit {
    /// Of a destination not yet called.
    pub const NEW: Self = Self::Closed { failures: 0 };

    /// How many calls it lets through at present.
    pub const fn admits(self) -> u32 {
        match self {
            Self::Closed { .. } => u32::MAX,
            Self::Open { .. } => 0,
            Self::HalfOpen { probes_left, .. } => probes_left,
        }
    }

    /// The moment it lets calls through next; `None` when it does already.
    pub fn rests_until(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Open { until, .. } if now < until => Some(until),
            Self::HalfOpen { probes_left: 0, renewed_at, .. } if now < renewed_at => Some(renewed_at),
            Self::Closed { .. } | Self::Open { .. } | Self::HalfOpen { .. } => None,
        }
    }

    /// The same for a message of which a try has failed before: it gives way to the others for one first rest.
    pub fn rests_until_again(self, settings: &CircuitSettings, now: Timestamp) -> Option<Timestamp> {
        let gives_way_until = match self {
            Self::Closed { .. } => now,
            Self::Open { until: over, .. } | Self::HalfOpen { since: over, .. } => {
                over.plus(settings.rest.min(settings.rest_max))
            }
        };
        let until = self.rests_until(now).unwrap_or(now).max(gives_way_until);
        (now < until).then_some(until)
    }

    /// The circuit after `event`.
    #[must_use]
    pub fn step(self, settings: &CircuitSettings, now: Timestamp, event: CircuitEvent) -> Self {
        use CircuitEvent::{Asked, AskedAgain, Failed, FailedAgain, LetThrough, Succeeded, Throttled};
        match (self, event) {
            (Self::Closed { .. } | Self::HalfOpen { .. }, Succeeded) => Self::NEW,
            (Self::Closed { failures }, Failed { .. }) => match failures.saturating_add(1) {
                failures if failures < settings.failures.get() => Self::Closed { failures },
                _ => Self::opened(now, settings.rest.min(settings.rest_max)),
            },
            // Sent before the rest, so it is no probe and tells nothing of how the destination is now.
            (Self::HalfOpen { since, .. }, Failed { sent } | FailedAgain { sent } | Throttled { sent })
                if sent < since =>
            {
                self
            }
            (Self::HalfOpen { rest, .. }, Failed { .. }) => Self::opened(now, settings.rest_after(rest)),
            // It may be the message, so others need not wait longer for it.
            (Self::HalfOpen { rest, .. }, FailedAgain { .. }) => Self::opened(now, rest),
            (Self::Closed { .. } | Self::Open { .. } | Self::HalfOpen { .. }, AskedAgain) => {
                match self.rests_until_again(settings, now) {
                    Some(_) => self,
                    None => self.step(settings, now, Asked),
                }
            }
            (Self::Open { until, rest }, Asked) if until <= now => Self::probing(settings, now, until, rest),
            (Self::HalfOpen { since, renewed_at, rest, .. }, Asked) if renewed_at <= now => {
                Self::probing(settings, now, since, rest)
            }
            (Self::HalfOpen { since, probes_left, renewed_at, rest }, LetThrough(count)) => {
                let probes_left = probes_left.saturating_sub(count);
                Self::HalfOpen { since, probes_left, renewed_at, rest }
            }
            // The probe learned nothing of what it asked, so it is given back.
            (Self::HalfOpen { since, probes_left, renewed_at, rest }, Throttled { .. }) => {
                let probes_left = probes_left.saturating_add(1).min(settings.probes.get());
                Self::HalfOpen { since, probes_left, renewed_at, rest }
            }
            // What an open circuit hears is late, from calls before it opened; the probe will tell.
            (
                Self::Open { .. },
                Asked | LetThrough(_) | Succeeded | Failed { .. } | FailedAgain { .. } | Throttled { .. },
            )
            | (Self::Closed { .. }, Asked | LetThrough(_) | FailedAgain { .. } | Throttled { .. })
            | (Self::HalfOpen { .. }, Asked) => self,
        }
    }

    /// The same with no rest longer than the longest and no probe from the future, for a clock that was set
    /// back.
    pub(super) fn steadied(self, settings: &CircuitSettings, now: Timestamp) -> Self {
        let bound = now.plus(settings.rest_max);
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

    /// Half open with all its probes.
    fn probing(settings: &CircuitSettings, now: Timestamp, since: Timestamp, rest: Duration) -> Self {
        Self::HalfOpen { since, probes_left: settings.probes.get(), renewed_at: now.plus(rest), rest }
    }
}

#[cfg(test)]
mod tests;
