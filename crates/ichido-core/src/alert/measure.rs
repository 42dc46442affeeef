//! Turns counts into readings.
//!
//! Guarantee: without samples each measure is [`Measurement::NOTHING`]; none divides by zero or yields NaN. A percentile is off
//! by less than a quarter of itself, whatever was measured, and however many [`Durations`] were merged.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Measurement;

/// How many windows before the last one define the usual value.
pub const USUAL_WINDOWS: u32 = 12;

/// Slots between a duration and its double.
const STEPS: u64 = 4;
/// Below this many milliseconds each has its own slot.
const EXACT_BELOW: u64 = STEPS;

/// Durations: how many per slot, and their sum in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// The count per [`slot`].
    pub slots: BTreeMap<u8, u64>,
    /// The sum in microseconds.
    pub micros: u64,
}

/// Returns the slot of a duration: four slots per doubling of its milliseconds.
pub fn slot(took: Duration) -> u8 {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    if millis < EXACT_BELOW {
        // Less than four.
        return u8::try_from(millis).unwrap_or(u8::MAX);
    }
    let doubling = u64::from(millis.ilog2());
    let step = (millis >> (doubling - 2)) & (STEPS - 1);
    // 63 doublings of 4 slots are less than 256.
    u8::try_from((doubling - 1) * STEPS + step).unwrap_or(u8::MAX)
}

/// Returns where a slot begins, in milliseconds.
fn begins(slot: u8) -> u64 {
    let slot = u64::from(slot);
    if slot < EXACT_BELOW {
        return slot;
    }
    let (doubling, step) = (slot / STEPS + 1, slot % STEPS);
    // The last slots exceed any duration in milliseconds.
    (STEPS + step).checked_shl(u32::try_from(doubling - 2).unwrap_or(u32::MAX)).unwrap_or(u64::MAX)
}

impl Durations {
    /// Adds one duration.
    pub fn add(&mut self, took: Duration) {
        let slot = self.slots.entry(slot(took)).or_default();
        *slot = slot.saturating_add(1);
        self.micros = self.micros.saturating_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds the durations of another process, or of another time.
    pub fn merge(&mut self, other: &Self) {
        for (slot, count) in &other.slots {
            let slot = self.slots.entry(*slot).or_default();
            *slot = slot.saturating_add(*count);
        }
        self.micros = self.micros.saturating_add(other.micros);
    }

    /// Returns how many there are.
    pub fn count(&self) -> u64 {
        self.slots.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the mean, in seconds.
    pub fn mean(&self) -> Measurement {
        match self.count() {
            0 => Measurement::NOTHING,
            samples => Measurement { value: float(self.micros) / 1e6 / float(samples), samples },
        }
    }

    /// Returns the 95th percentile, in seconds.
    pub fn p95(&self) -> Measurement {
        self.percentile(95)
    }

    /// Returns a percentile in seconds, as if its slot were filled evenly.
    pub fn percentile(&self, percent: u8) -> Measurement {
        let samples = self.count();
        // So many are not above it, rounded up.
        let above = u128::from(samples) * u128::from(100_u8.saturating_sub(percent)) / 100;
        let rank = samples.saturating_sub(u64::try_from(above).unwrap_or(u64::MAX));
        let mut below = 0;
        for (slot, count) in &self.slots {
            let until = below + count;
            if rank <= until && 0 < rank {
                let (from, to) = (float(begins(*slot)), float(begins(slot.saturating_add(1))));
                let part = float(rank - below) / float(*count);
                return Measurement { value: (from + (to - from) * part) / 1e3, samples };
            }
            below = until;
        }
        Measurement::NOTHING
    }
}

/// Returns a share of the total.
pub fn share(part: u64, all: u64) -> Measurement {
    if all == 0 {
        Measurement::NOTHING
    } else {
        Measurement { value: float(part) / float(all), samples: all }
    }
}

/// Returns the ratio to the usual: `now` in the last window, `before` in the [`USUAL_WINDOWS`] windows before it.
///
/// Less than one per window counts as one, so the first few are not a surge.
pub fn surge(now: u64, before: u64) -> Measurement {
    if now == 0 {
        return Measurement::NOTHING;
    }
    let usual = (float(before) / f64::from(USUAL_WINDOWS)).max(1.0);
    Measurement { value: float(now) / usual, samples: now }
}

#[expect(clippy::cast_precision_loss, reason = "counts are exact far beyond what is counted in hours")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
