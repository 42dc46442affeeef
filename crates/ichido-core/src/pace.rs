//! The pace of a destination: how fast it is called, and when it is paused.
//!
//! Guarantee: all nodes that share a [`Pace`] together send no faster than its rate, send nothing before a requested
//! pause ends, and do not call a destination that is down. A destination that never refused is limited only by its
//! configured maximum and its starting rate. No operation panics or overflows.
//!
//! A pace is a row in the store. A node reads it, performs one operation and writes the result back with
//! compare-and-swap, so each operation here takes the pace and returns the next one. To write the row seldom, a node
//! reserves slots in bulk ([`Pace::reserve`]) and reports its successes as a count ([`Pace::on_success`]), at least
//! once a second.
//!
//! Where to start: a node calls [`Pace::reserve`] before it sends.
//! [`Verdict::pace_report`](crate::verdict::Verdict::pace_report) says which of the three reports a response calls for.
//! [`rate`] explains how the rate is learned, [`circuit`] when a destination counts as down. [`choose`] picks one of
//! several endpoints; [`permits_left`] and [`first_call_at`] limit how many calls of one node are in flight.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Timestamp;

pub mod circuit;
mod endpoints;
mod paced;
mod parallel;
mod per_second;
pub mod rate;
mod refusals;
mod settings;
mod slots;

pub use circuit::{Circuit, CircuitSettings};
pub use endpoints::{
    CallOutcome, Choice, EndpointRecord, EndpointSet, Opening, choose, choose_avoiding, left_out,
};
pub use paced::{PacePhase, Paced};
pub use parallel::{first_call_at, permits_left};
pub use per_second::PerSecond;
pub use rate::{AcceptedCounts, Rate};
pub use refusals::{Evidence, ResponseCounts};
pub use settings::PaceSettings;
pub use slots::{Grant, PauseReason, Slots};

use circuit::CircuitEvent;

/// The clocks of nodes differ by less than this.
///
/// So do two readings of one clock when a write is retried.
const MAX_CLOCKS_APART: Duration = Duration::from_mins(1);
/// After a pause, one call probes whether it has ended.
///
/// The next one follows only without a response for this long.
const ASKING_RATE: PerSecond = PerSecond::clamped(1.0);
/// How long to wait before looking again whether an operator ended a pause.
const OPERATOR_LOOK: Duration = Duration::from_secs(10);

/// What all nodes together know about one destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How fast it may be called.
    pub rate: Rate,
    /// The latest slot that was handed out.
    pub last_slot: Timestamp,
    /// A node waits for a slot at least until this time.
    ///
    /// The rate is fully used.
    pub wanted_until: Timestamp,
    /// The destination asked for no calls before this time.
    pub paused_until: Timestamp,
    /// Nothing was accepted since that request: one call at a time probes the destination.
    pub asking: bool,
    /// The circuit breaker.
    pub circuit: Circuit,
}

impl Pace {
    /// The pace of a destination that was never called.
    pub const NEW: Self = Self {
        rate: Rate::NEW,
        last_slot: Timestamp::EPOCH,
        wanted_until: Timestamp::EPOCH,
        paused_until: Timestamp::EPOCH,
        asking: false,
        circuit: Circuit::NEW,
    };

    /// Returns the current maximum of calls per second; `None` is unlimited.
    pub fn limit(&self, settings: &PaceSettings) -> Option<PerSecond> {
        let limit = self.rate.limit(settings);
        if self.asking { Some(limit.map_or(ASKING_RATE, |limit| limit.slower(ASKING_RATE))) } else { limit }
    }

    /// Returns the pace without a pause and without what was learned, as an operator requests.
    ///
    /// If the destination requested a pause, one call probes it first.
    #[must_use]
    pub fn forgotten(self) -> Self {
        Self { asking: self.asking, ..Self::NEW }
    }

    /// Returns the pace without a pause, as an operator requests.
    ///
    /// One call probes the destination first.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { paused_until: Timestamp::EPOCH, ..self }
    }

    /// Reserves up to `count` slots to send in.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use std::time::Duration;
    /// use ichido_core::pace::{Grant, Pace, PerSecond, PaceSettings};
    /// use ichido_core::time::Timestamp;
    ///
    /// let now = Timestamp::from_secs(1_000);
    /// let settings = PaceSettings { max_rate: Some(PerSecond::clamped(10.0)), ..PaceSettings::DEFAULT };
    ///
    /// let (pace, grant) = Pace::NEW.reserve(&settings, now, NonZeroU32::new(3).unwrap());
    /// let Grant::Slots(slots) = grant else { panic!("nothing is in the way") };
    /// let expected = [0, 100, 200].map(|millis| now.plus(Duration::from_millis(millis)));
    /// assert!(slots.moments().eq(expected));
    ///
    /// // The first call was refused, and all nodes pause as long as it asked for.
    /// let pace = pace.on_throttled(&settings, now, slots.first(), Some(Duration::from_secs(30)));
    /// let (_, grant) = pace.reserve(&settings, now, NonZeroU32::MIN);
    /// assert!(matches!(grant, Grant::Wait { until, .. } if until == Timestamp::from_secs(1_030)));
    /// ```
    #[must_use]
    pub fn reserve(self, settings: &PaceSettings, now: Timestamp, count: NonZeroU32) -> (Self, Grant) {
        if let Some((until, why)) = paused_by_operator(settings, now) {
            return (self, Grant::Wait { until, why });
        }
        let mut pace = self.without_future_times(settings, now);
        pace.circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::CallRequested);
        let rests_until = pace.circuit.rests_until(now);
        pace.grant(settings, now, count, rests_until)
    }

    /// Reserves slots for messages of which an attempt has failed before.
    ///
    /// While the circuit is not closed, they give way to other messages, so a message that always fails is not the
    /// probe that delays the others.
    // SPEC E2.
    #[must_use]
    pub fn reserve_again(self, settings: &PaceSettings, now: Timestamp, count: NonZeroU32) -> (Self, Grant) {
        if let Some((until, why)) = paused_by_operator(settings, now) {
            return (self, Grant::Wait { until, why });
        }
        let mut pace = self.without_future_times(settings, now);
        pace.circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::RetryRequested);
        let rests_until = pace.circuit.rests_until_again(&settings.circuit, now);
        pace.grant(settings, now, count, rests_until)
    }

    fn grant(
        self,
        settings: &PaceSettings,
        now: Timestamp,
        count: NonZeroU32,
        rests_until: Option<Timestamp>,
    ) -> (Self, Grant) {
        let mut pace = self;
        if let Some((until, why)) = longer(now, pace.paused_until, rests_until.unwrap_or(now)) {
            return (pace, Grant::Wait { until, why });
        }
        let first = pace.next_slot(settings, now);
        let spacing = pace.spacing(settings);
        let count = count.get().min(pace.circuit.admits());
        let Some(slots) = Slots::cut(first, spacing, count, now.plus(settings.horizon)) else {
            pace.wanted_until = pace.wanted_until.max(first);
            let why = PauseReason::Rate;
            return (pace, Grant::Wait { until: first, why });
        };
        pace.last_slot = slots.last();
        let short = slots.count() < count;
        let wanted_until = slots.last().plus(if short { spacing } else { Duration::ZERO });
        pace.wanted_until = pace.wanted_until.max(wanted_until);
        pace.circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::CallsAllowed(slots.count()));
        (pace, Grant::Slots(slots))
    }

    /// Returns why nothing may be sent now, and until when.
    ///
    /// A node calls this again right before it sends: a pause or an open circuit voids the slots it holds.
    pub fn stopped(&self, settings: &PaceSettings, now: Timestamp) -> Option<(Timestamp, PauseReason)> {
        let by_operator = paused_by_operator(settings, now);
        if by_operator.is_some() {
            return by_operator;
        }
        let pace = self.without_future_times(settings, now);
        let circuit_until = match pace.circuit {
            Circuit::Open { until, .. } => until,
            // A node that holds a slot while the circuit is half open holds a probe.
            Circuit::Closed { .. } | Circuit::HalfOpen { .. } => now,
        };
        longer(now, pace.paused_until, circuit_until)
    }

    /// Returns when to claim a message for this destination, if not now.
    ///
    /// Before that time no slot is within the horizon, and a claimed message would only wait in its worker.
    pub fn closed_until(&self, settings: &PaceSettings, now: Timestamp) -> Option<Timestamp> {
        if let Some((until, _)) = self.stopped(settings, now) {
            return Some(until);
        }
        let next_slot = self.without_future_times(settings, now).next_slot(settings, now);
        let wait = next_slot.since(now).saturating_sub(settings.horizon);
        (!wait.is_zero()).then(|| now.plus(wait))
    }

    /// Returns when this destination, as one endpoint of several, can take a call.
    pub fn opening(&self, settings: &PaceSettings, now: Timestamp) -> Opening {
        let pace = self.without_future_times(settings, now);
        match paused_by_operator(settings, now).or_else(|| pace.blocked(now)) {
            Some((until, _)) => Opening::Resting { until },
            None => Opening::At(pace.next_slot(settings, now)),
        }
    }

    /// Records that `count` calls were accepted since the last report.
    ///
    /// If there are refusals to report as well, report the successes first: a refusal after a success is news about the
    /// limit, one without may be an echo.
    #[must_use]
    pub fn on_success(self, settings: &PaceSettings, now: Timestamp, count: NonZeroU32) -> Self {
        let pace = self.without_future_times(settings, now);
        let held_back = now < pace.wanted_until;
        Self {
            asking: false,
            rate: pace.rate.accepted(settings, now, count.get(), held_back),
            circuit: pace.circuit.step(&settings.circuit, now, CircuitEvent::Succeeded),
            ..pace
        }
    }

    /// Records that the call with the slot at `sent` was throttled (429, a throttling error).
    ///
    /// The requested wait applies to all calls if it is at least [`PaceSettings::long_pause`], if the rate falls, or if
    /// nothing was accepted since the last pause; it extends a pause, never shortens it. Otherwise it applies only to the refused
    /// message.
    #[must_use]
    pub fn on_throttled(
        self,
        settings: &PaceSettings,
        now: Timestamp,
        sent: Timestamp,
        retry_after: Option<Duration>,
    ) -> Self {
        let pace = self.without_future_times(settings, now);
        let asked = retry_after.map_or(pace.paused_until, |pause| {
            pace.paused_until.max(now.plus(pause.min(settings.max_pause)))
        });
        let handed_out = pace.last_slot.max(now);
        let (rate, falls) = pace.rate.refused(settings, sent, handed_out, asked);
        let is_heeded = falls || pace.asking || retry_after.is_some_and(|pause| settings.long_pause <= pause);
        Self {
            rate,
            circuit: pace.circuit.step(&settings.circuit, now, CircuitEvent::Throttled { sent }),
            paused_until: if is_heeded { asked } else { pace.paused_until },
            asking: pace.asking || is_heeded && retry_after.is_some(),
            ..pace
        }
    }

    /// Records that the call with the slot at `sent` found the destination down.
    ///
    /// That is no connection, no response or a 5xx.
    #[must_use]
    pub fn on_failure(self, settings: &PaceSettings, now: Timestamp, sent: Timestamp) -> Self {
        let pace = self.without_future_times(settings, now);
        let circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::Failed { sent });
        Self { circuit, ..pace }
    }

    /// Records such a failure for a message of which an attempt had failed before.
    ///
    /// The message may be the cause, so it opens no circuit and extends no rest.
    #[must_use]
    pub fn on_failure_again(self, settings: &PaceSettings, now: Timestamp, sent: Timestamp) -> Self {
        let pace = self.without_future_times(settings, now);
        let circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::RetryFailed { sent });
        Self { circuit, ..pace }
    }

    /// Returns why no slot may be handed out now, and until when.
    fn blocked(&self, now: Timestamp) -> Option<(Timestamp, PauseReason)> {
        longer(now, self.paused_until, self.circuit.rests_until(now).unwrap_or(now))
    }

    fn next_slot(&self, settings: &PaceSettings, now: Timestamp) -> Timestamp {
        self.last_slot.plus(self.spacing(settings)).max(now)
    }

    fn spacing(&self, settings: &PaceSettings) -> Duration {
        self.limit(settings).map_or(Duration::ZERO, PerSecond::spacing)
    }

    /// Removes times so far ahead that only a clock that was set back (or larger settings) explains them.
    ///
    /// Otherwise a queue would stall until the clock has caught up.
    fn without_future_times(self, settings: &PaceSettings, now: Timestamp) -> Self {
        let believed = Self {
            paused_until: self.paused_until.min(now.plus(settings.max_pause)),
            circuit: self.circuit.without_future_times(&settings.circuit, now),
            ..self
        };
        if self.last_slot <= now.plus(settings.horizon).plus(MAX_CLOCKS_APART) {
            return believed;
        }
        // The last slot was close when the clock was set back, so the rest of a pause is known.
        let pause_left = self.paused_until.since(self.last_slot).min(settings.max_pause);
        Self {
            rate: self.rate.up_to(now),
            last_slot: now,
            wanted_until: now,
            paused_until: now.plus(pause_left),
            ..believed
        }
    }
}

/// Returns when to look again, if an operator stopped all calls.
fn paused_by_operator(settings: &PaceSettings, now: Timestamp) -> Option<(Timestamp, PauseReason)> {
    settings.is_paused.then(|| (now.plus(OPERATOR_LOOK), PauseReason::Operator))
}

/// Returns the longer of a pause and a circuit's rest, if either has not ended.
fn longer(now: Timestamp, paused: Timestamp, circuit: Timestamp) -> Option<(Timestamp, PauseReason)> {
    let (until, why) =
        if circuit < paused { (paused, PauseReason::Paused) } else { (circuit, PauseReason::Circuit) };
    (now < until).then_some((until, why))
}

#[cfg(test)]
mod tests;
