//! From counts to readings.
//!
//! Guarantee: of no samples each measure is [`Reading::NOTHING`]; none divides by zero or is not a number. The 95th percentile is off by
//! less than a quarter of itself, whatever was measured.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Reading;

/// The window before the last one that the usual is taken from, in windows.
pub const USUAL_WINDOWS: u32 = 12;

/// Steps between a duration and its double; each is a slot of its own.
const STEPS: u64 = 4;
/// Below this many milliseconds each has a slot of its own.
const EXACT_BELOW: u64 = STEPS;

/// How long things took: how many in each slot, and all of it in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// How many, by [`slot`].
    pub slots: BTreeMap<u8, u64>,
    /// All of them together, in microseconds.
    pub micros: u64,
}

/// The slot that a duration is counted in: milliseconds by a quarter of each doubling.
pub fn slot(took: Duration) -> u8 {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    if millis < EXACT_BELOW {
        // Less than four.
        return u8::try_from(millis).unwrap_or(u8::MAX);
    }
    let doubling = u64::from(millis.ilog2());
    let step = (millis >> (doubling - 2)) & (STEPS - 1);
    // 63 doublings of 4 steps are less than 256.
    u8::try_from((doubling - 1) * STEPS + step).unwrap_or(u8::MAX)
}

/// Where a slot begins, in milliseconds.
fn begins(slot: u8) -> u64 {
    let slot = u64::from(slot);
    if slot < EXACT_BELOW {
        return slot;
    }
    let (doubling, step) = (slot / STEPS + 1, slot % STEPS);
    // The last slots are beyond any duration of milliseconds.
    (STEPS + step).checked_shl(u32::try_from(doubling - 2).unwrap_or(u32::MAX)).unwrap_or(u64::MAX)
}

impl Took {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.slots.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The mean, in seconds.
    pub fn mean(&self) -> Reading {
        match self.count() {
            0 => Reading::NOTHING,
            samples => Reading { value: float(self.micros) / 1e6 / float(samples), samples },
        }
    }

    /// What all but one of twenty do not exceed, in seconds: taken within its slot as if the slot were filled evenly.
    pub fn p95(&self) -> Reading {
        let samples = self.count();
        // The rank of the last of the nineteen, rounded up.
        let rank = samples.saturating_sub(samples / 20);
        let mut below = 0;
        for (slot, count) in &self.slots {
            let until = below + count;
            if rank <= until && 0 < rank {
                let (from, to) = (float(begins(*slot)), float(begins(slot.saturating_add(1))));
                let part = float(rank - below) / float(*count);
                return Reading { value: (from + (to - from) * part) / 1e3, samples };
            }
            below = until;
        }
        Reading::NOTHING
    }
}

/// Which part of all.
pub fn share(part: u64, all: u64) -> Reading {
    if all == 0 { Reading::NOTHING } else { Reading { value: float(part) / float(all), samples: all } }
}

/// How many times the usual: `now` in the last window, `before` in the [`USUAL_WINDOWS`] windows before it. Less than one a window is
/// taken as one, so that the first few are no surge.
pub fn surge(now: u64, before: u64) -> Reading {
    if now == 0 {
        return Reading::NOTHING;
    }
    let usual = (float(before) / f64::from(USUAL_WINDOWS)).max(1.0);
    Reading { value: float(now) / usual, samples: now }
}

#[expect(clippy::cast_precision_loss, reason = "counts are exact far beyond what is counted in hours")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
