//! Settings whose worst case fits a deadline.
//!
//! Guarantee: of all settings within the [`Bounds`] whose worst case fits, the smallest change is proposed, in this
//! order of preference, each used to its limit before the next:
//!
//! 1. nothing, if it already fits;
//! 2. more in parallel: costs only haste, and the pace intervenes if the destination objects;
//! 3. a shorter interval: the same, but it crowds the start of every call;
//! 4. fewer retries: items that another attempt would have saved get a fallback;
//! 5. fewer items: the rest get a fallback without a call.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Assumption, BatchPlan, estimate_with, from_nanos, items_that_fit, times};

/// How far a proposal may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuningLimits {
    /// The maximum in parallel.
    pub parallel_max: NonZeroU32,
    /// The minimum interval.
    pub interval_min: Duration,
    /// The minimum number of retries.
    pub retries_min: usize,
}

impl TuningLimits {
    /// Eight in parallel, half a second apart, one retry.
    pub const DEFAULT: Self = Self {
        parallel_max: NonZeroU32::new(8).expect("eight is not zero"),
        interval_min: Duration::from_millis(500),
        retries_min: 1,
    };
}

/// Settings to run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The number of items in parallel.
    pub parallel: NonZeroU32,
    /// The wait before an item's first call.
    pub interval: Duration,
    /// The retries of an item.
    pub retries: usize,
}

/// What to do about a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// Nothing: the worst case fits.
    AsItIs,
    /// With these settings the worst case fits.
    Change(Tuning),
    /// No settings within the bounds fit all items. With these, this many do.
    FewerItems {
        /// The settings that fit the most items.
        tuning: Tuning,
        /// How many items fit at worst.
        items: u64,
    },
}

/// Proposes the smallest change to `batch` that makes it end `within` this time in the `worst` case.
pub fn propose(batch: &BatchPlan<'_>, worst: &Assumption, bounds: &TuningLimits, within: Duration) -> Proposal {
    if estimate_with(batch, worst) <= within {
        return Proposal::AsItIs;
    }
    // A batch that already exceeds the bounds is not reduced.
    let parallel_max = bounds.parallel_max.max(batch.parallel);
    let interval_min = bounds.interval_min.min(batch.interval);
    let retries_min = bounds.retries_min.min(batch.waits.len());
    for retries in (retries_min..=batch.waits.len()).rev() {
        let tried = BatchPlan { waits: batch.waits.get(..retries).unwrap_or(batch.waits), ..*batch };
        if let Some((parallel, interval)) = fitting(&tried, worst, parallel_max, interval_min, within) {
            return Proposal::Change(Tuning { parallel, interval, retries });
        }
    }
    let tuning = Tuning { parallel: parallel_max, interval: interval_min, retries: retries_min };
    let waits = batch.waits.get(..retries_min).unwrap_or(batch.waits);
    let hurried = BatchPlan { parallel: parallel_max, interval: interval_min, waits, ..*batch };
    Proposal::FewerItems { tuning, items: items_that_fit(&hurried, worst, within) }
}

/// Returns the longest interval that fits, and the smallest parallelism that fits with it.
fn fitting(
    batch: &BatchPlan<'_>,
    worst: &Assumption,
    parallel_max: NonZeroU32,
    interval_min: Duration,
    within: Duration,
) -> Option<(NonZeroU32, Duration)> {
    let fits = |parallel, interval| estimate_with(&BatchPlan { parallel, interval, ..*batch }, worst) <= within;
    if !fits(parallel_max, interval_min) {
        return None;
    }
    let waits = times(worst.waits(batch.waits), worst.retried(batch.items));
    let rounds = batch.items.div_ceil(u64::from(parallel_max.get())).max(1);
    let round = from_nanos(within.saturating_sub(waits).as_nanos() / u128::from(rounds));
    let longest = round.saturating_sub(batch.latency);
    let interval =
        if batch.interval <= longest { batch.interval } else { whole_millis(longest).max(interval_min) };
    // Invariant: `high` in parallel fit.
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

/// Rounds down to milliseconds: people read settings.
fn whole_millis(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
