//! The pace of a destination: how fast it is called, and when it is left alone.
//!
//! Guarantee: all nodes that share a [`Pace`] together send no faster than its rate, send nothing before a
//! pause the destination asked for is over, and leave alone a destination that is down. A destination that
//! never refused is held to its configured maximum and to how it is begun with, and to nothing less. No operation panics or overflows.
//!
//! A pace is a row in the store. A node reads it, asks it one thing, and writes back what it got, by compare
//! and swap; so each operation here takes the pace and returns the next one. To write the row seldom, a node
//! takes its slots in bulk ([`Pace::reserve`]) and reports its successes as a count ([`Pace::on_success`]),
//! at least once a second.
//!
//! Where to start: [`Pace::reserve`] is what a node asks before it sends; which of the three reports an answer calls
//! for is told by [`Verdict::tells_pace`](crate::verdict::Verdict::tells_pace). How the rate is learned is told in
//! [`rate`], when a destination counts as down in [`circuit`]. [`choose`] picks one of several endpoints;
//! [`places_left`] and [`first_call_at`] bound how many calls of one node are under way.

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
pub use endpoints::{CallEnd, Choice, EndpointSet, Opening, Record, choose, choose_avoiding, left_out};
pub use paced::{Paced, Phase};
pub use parallel::{first_call_at, places_left};
pub use per_second::PerSecond;
pub use rate::{Rate, Tally};
pub use refusals::{Answers, Evidence};
pub use settings::Settings;
pub use slots::{Grant, Hold, Slots};

use circuit::CircuitEvent;

/// The clocks that nodes read differ by less than this; so do two readings of one, when a write is retried.
const CLOCKS_APART_MAX: Duration = Duration::from_mins(1);
/// After a pause one call asks whether it is over, and the next one only if there is no answer for so long.
const ASKING_RATE: PerSecond = PerSecond::clamped(1.0);

/// What all nodes together know of one destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How fast it may be called.
    pub rate: Rate,
    /// The latest slot handed out to anyone.
    pub last_slot: Timestamp,
    /// Somebody waits for a slot, until this moment at least: the rate is used to the full.
    pub wanted_until: Timestamp,
    /// It asked not to be called before this moment.
    pub paused_until: Timestamp,
    /// Nothing was accepted since it asked for that: one call at a time asks whether it may be called again.
    pub asking: bool,
    /// Whether it is up.
    pub circuit: Circuit,
}

impl Pace {
    /// Of a destination not yet called.
    pub const NEW: Self = Self {
        rate: Rate::NEW,
        last_slot: Timestamp::EPOCH,
        wanted_until: Timestamp::EPOCH,
        paused_until: Timestamp::EPOCH,
        asking: false,
        circuit: Circuit::NEW,
    };

    /// The most calls a second at present; `None` is without limit.
    pub fn limit(&self, settings: &Settings) -> Option<PerSecond> {
        let limit = self.rate.limit(settings);
        if self.asking { Some(limit.map_or(ASKING_RATE, |limit| limit.slower(ASKING_RATE))) } else { limit }
    }

    /// The same without a pause: an operator says that it may be called. One call asks it first.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { paused_until: Timestamp::EPOCH, ..self }
    }

    /// Up to `count` moments to send at.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use std::time::Duration;
    /// use ichido_core::pace::{Grant, Pace, PerSecond, Settings};
    /// use ichido_core::time::Timestamp;
    ///
    /// let now = Timestamp::from_secs(1_000);
    /// let settings = Settings { rate_max: Some(PerSecond::clamped(10.0)), ..Settings::DEFAULT };
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
    pub fn reserve(self, settings: &Settings, now: Timestamp, count: NonZeroU32) -> (Self, Grant) {
        let mut pace = self.steadied(settings, now);
        pace.circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::Asked);
        let rests_until = pace.circuit.rests_until(now);
        pace.grant(settings, now, count, rests_until)
    }

    /// The same for messages of which a try has failed before: while the circuit is not closed, they give way to the others, so
    /// that none which always fails is the probe that keeps them waiting.
    // SPEC E2.
    #[must_use]
    pub fn reserve_again(self, settings: &Settings, now: Timestamp, count: NonZeroU32) -> (Self, Grant) {
        let mut pace = self.steadied(settings, now);
        pace.circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::AskedAgain);
        let rests_until = pace.circuit.rests_until_again(&settings.circuit, now);
        pace.grant(settings, now, count, rests_until)
    }

    fn grant(
        self,
        settings: &Settings,
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
            let why = Hold::Rate;
            return (pace, Grant::Wait { until: first, why });
        };
        pace.last_slot = slots.last();
        let short = slots.count() < count;
        let wanted_until = slots.last().plus(if short { spacing } else { Duration::ZERO });
        pace.wanted_until = pace.wanted_until.max(wanted_until);
        pace.circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::LetThrough(slots.count()));
        (pace, Grant::Slots(slots))
    }

    /// Why nothing may be sent at this moment, and until when. A node looks once more right before it sends:
    /// the slots it holds may have been overtaken by a pause or an open circuit, and then they are void.
    pub fn stopped(&self, settings: &Settings, now: Timestamp) -> Option<(Timestamp, Hold)> {
        let pace = self.steadied(settings, now);
        let circuit_until = match pace.circuit {
            Circuit::Open { until, .. } => until,
            // Whoever holds a slot while it is half open holds a probe.
            Circuit::Closed { .. } | Circuit::HalfOpen { .. } => now,
        };
        longer(now, pace.paused_until, circuit_until)
    }

    /// When a message should be claimed for this destination, if not now. Before that moment no slot is within the horizon, and a claimed
    /// message would only wait in its worker's hands.
    pub fn closed_until(&self, settings: &Settings, now: Timestamp) -> Option<Timestamp> {
        if let Some((until, _)) = self.stopped(settings, now) {
            return Some(until);
        }
        let next_slot = self.steadied(settings, now).next_slot(settings, now);
        let wait = next_slot.since(now).saturating_sub(settings.horizon);
        (!wait.is_zero()).then(|| now.plus(wait))
    }

    /// When this destination, as one endpoint of several, can take a call.
    pub fn opening(&self, settings: &Settings, now: Timestamp) -> Opening {
        let pace = self.steadied(settings, now);
        match pace.held(now) {
            Some((until, _)) => Opening::Resting { until },
            None => Opening::At(pace.next_slot(settings, now)),
        }
    }

    /// `count` calls were accepted since the last report. When there are refusals to report as well, these
    /// come first: a refusal after a success is news of the limit, one without may be an echo.
    #[must_use]
    pub fn on_success(self, settings: &Settings, now: Timestamp, count: NonZeroU32) -> Self {
        let pace = self.steadied(settings, now);
        let held_back = now < pace.wanted_until;
        Self {
            asking: false,
            rate: pace.rate.accepted(settings, now, count.get(), held_back),
            circuit: pace.circuit.step(&settings.circuit, now, CircuitEvent::Succeeded),
            ..pace
        }
    }

    /// The call that had its slot at `sent` was refused for coming too fast (429, a throttling error). The time it asks for holds for all
    /// calls when the rate falls, or when nothing was accepted since the last pause; a pause is lengthened by it, never shortened. Otherwise
    /// it holds for the refused message alone.
    #[must_use]
    pub fn on_throttled(
        self,
        settings: &Settings,
        now: Timestamp,
        sent: Timestamp,
        retry_after: Option<Duration>,
    ) -> Self {
        let pace = self.steadied(settings, now);
        let asked = retry_after.map_or(pace.paused_until, |pause| {
            pace.paused_until.max(now.plus(pause.min(settings.pause_max)))
        });
        let handed_out = pace.last_slot.max(now);
        let (rate, falls) = pace.rate.refused(settings, sent, handed_out, asked);
        let is_heeded = falls || pace.asking;
        Self {
            rate,
            circuit: pace.circuit.step(&settings.circuit, now, CircuitEvent::Throttled { sent }),
            paused_until: if is_heeded { asked } else { pace.paused_until },
            asking: pace.asking || is_heeded && retry_after.is_some(),
            ..pace
        }
    }

    /// The call that had its slot at `sent` failed in a way that says the destination is down: no connection, no
    /// answer, a 5xx.
    #[must_use]
    pub fn on_failure(self, settings: &Settings, now: Timestamp, sent: Timestamp) -> Self {
        let pace = self.steadied(settings, now);
        let circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::Failed { sent });
        Self { circuit, ..pace }
    }

    /// The same for a message of which a try had failed before. It may be the message, so it opens no circuit, and lengthens no
    /// rest.
    #[must_use]
    pub fn on_failure_again(self, settings: &Settings, now: Timestamp, sent: Timestamp) -> Self {
        let pace = self.steadied(settings, now);
        let circuit = pace.circuit.step(&settings.circuit, now, CircuitEvent::FailedAgain { sent });
        Self { circuit, ..pace }
    }

    /// Why no slot may be handed out at this moment, and until when.
    fn held(&self, now: Timestamp) -> Option<(Timestamp, Hold)> {
        longer(now, self.paused_until, self.circuit.rests_until(now).unwrap_or(now))
    }

    fn next_slot(&self, settings: &Settings, now: Timestamp) -> Timestamp {
        self.last_slot.plus(self.spacing(settings)).max(now)
    }

    fn spacing(&self, settings: &Settings) -> Duration {
        self.limit(settings).map_or(Duration::ZERO, PerSecond::spacing)
    }

    /// The same without moments so far ahead that they can only come from a clock that was set back (or from
    /// settings that were larger). Else a queue would stand still until the clock has caught up.
    fn steadied(self, settings: &Settings, now: Timestamp) -> Self {
        let believed = Self {
            paused_until: self.paused_until.min(now.plus(settings.pause_max)),
            circuit: self.circuit.steadied(&settings.circuit, now),
            ..self
        };
        if self.last_slot <= now.plus(settings.horizon).plus(CLOCKS_APART_MAX) {
            return believed;
        }
        // The last slot was about to come when the clock was set back, so what was left of a pause is known.
        let pause_left = self.paused_until.since(self.last_slot).min(settings.pause_max);
        Self {
            rate: self.rate.up_to(now),
            last_slot: now,
            wanted_until: now,
            paused_until: now.plus(pause_left),
            ..believed
        }
    }
}

/// The longer of a pause and a circuit's rest, if either is still to end.
fn longer(now: Timestamp, paused: Timestamp, circuit: Timestamp) -> Option<(Timestamp, Hold)> {
    let (until, why) = if circuit < paused { (paused, Hold::Paused) } else { (circuit, Hold::Circuit) };
    (now < until).then_some((until, why))
}

#[cfg(test)]
mod tests;
