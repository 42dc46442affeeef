//! Settings whose worst case fits a deadline.
//!
//! Guarantee: of all settings within the [`Bounds`] whose worst case fits, the least change is proposed, in
//! this order of preference, each used to its bound before the next is touched:
//!
//! 1. nothing, when it fits already;
//! 2. more at a time: costs only haste, and the pace steps in if the destination minds;
//! 3. a shorter interval: the same, but it crowds the start of every call;
//! 4. fewer retries: items that another try would have saved get a fallback;
//! 5. fewer items: the rest gets a fallback unasked.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Assumption, Batch, from_nanos, items_that_fit, takes, times};

/// How far a proposal may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No more than this at a time.
    pub parallel_max: NonZeroU32,
    /// No shorter interval than this.
    pub interval_min: Duration,
    /// No fewer retries than this.
    pub retries_min: usize,
}

impl Bounds {
    /// Eight at a time, half a second apart, one retry.
    pub const DEFAULT: Self = Self {
        parallel_max: NonZeroU32::new(8).expect("eight is not zero"),
        interval_min: Duration::from_millis(500),
        retries_min: 1,
    };
}

/// Settings to run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// How many at a time.
    pub parallel: NonZeroU32,
    /// The wait before an item's first call.
    pub interval: Duration,
    /// How many retries an item has.
    pub retries: usize,
}

/// What to do about a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// Nothing: the worst case fits.
    AsItIs,
    /// Run with these settings, and the worst case fits.
    Change(Tuning),
    /// No settings within the bounds fit all items. With these, this many items do.
    FewerItems {
        /// The settings that fit the most.
        tuning: Tuning,
        /// How many items fit, at worst.
        items: u64,
    },
}

/// The least change to `batch` that makes it end `within` this time if `worst` comes true.
pub fn propose(batch: &Batch<'_>, worst: &Assumption, bounds: &Bounds, within: Duration) -> Proposal {
    if takes(batch, worst) <= within {
        return Proposal::AsItIs;
    }
    // A batch that already goes further than the bounds is not called back.
    let parallel_max = bounds.parallel_max.max(batch.parallel);
    let interval_min = bounds.interval_min.min(batch.interval);
    let retries_min = bounds.retries_min.min(batch.waits.len());
    for retries in (retries_min..=batch.waits.len()).rev() {
        let tried = Batch { waits: batch.waits.get(..retries).unwrap_or(batch.waits), ..*batch };
        if let Some((parallel, interval)) = fitting(&tried, worst, parallel_max, interval_min, within) {
            return Proposal::Change(Tuning { parallel, interval, retries });
        }
    }
    let tuning = Tuning { parallel: parallel_max, interval: interval_min, retries: retries_min };
    let waits = batch.waits.get(..retries_min).unwrap_or(batch.waits);
    let hurried = Batch { parallel: parallel_max, interval: interval_min, waits, ..*batch };
    Proposal::FewerItems { tuning, items: items_that_fit(&hurried, worst, within) }
}

/// The longest interval that fits at all, and the fewest at a time that fit with it.
fn fitting(
    batch: &Batch<'_>,
    worst: &Assumption,
    parallel_max: NonZeroU32,
    interval_min: Duration,
    within: Duration,
) -> Option<(NonZeroU32, Duration)> {
    let fits = |parallel, interval| takes(&Batch { parallel, interval, ..*batch }, worst) <= within;
    if !fits(parallel_max, interval_min) {
        return None;
    }
    let waits = times(worst.waits(batch.waits), worst.retried(batch.items));
    let rounds = batch.items.div_ceil(u64::from(parallel_max.get())).max(1);
    let round = from_nanos(within.saturating_sub(waits).as_nanos() / u128::from(rounds));
    let longest = round.saturating_sub(batch.latency);
    let interval =
        if batch.interval <= longest { batch.interval } else { whole_millis(longest).max(interval_min) };
    // Invariant: `high` at a time fit.
    let (mut low, mut high) = (batch.parallel, parallel_max);
    while low < high {
        let middle = low.saturating_add((high.get() - low.get()) / 2);
        if fits(middle, interval) {
            high = middle;
        } else {
            low = middle.saturating_add(1);
        }
    }
    Some((high, interval))
}

/// Rounded down to milliseconds: a setting is for people to read.
fn whole_millis(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
