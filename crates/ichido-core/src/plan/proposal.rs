//! Settings whose bad day fits a deadline.
//!
//! Guarantee: of all settings within the [`TuningLimits`] whose bad day fits, the smallest change is proposed, in this
//! order of preference, each used to its limit before the next:
//!
//! 1. nothing, if it already fits;
//! 2. more in parallel: costs only haste, and the pace intervenes if the destination objects;
//! 3. a shorter interval: the same, but it crowds the start of every call;
//! 4. fewer retries: items that another attempt would have saved get a fallback;
//! 5. fewer items: the rest get a fallback without a call.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Assumption, BatchPlan, estimate_with, items_that_fit};

/// How far a proposal may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuningLimits {
    /// The maximum in parallel.
    pub max_parallel: NonZeroU32,
    /// The minimum interval.
    pub min_interval: Duration,
    /// The minimum number of retries.
    pub min_retries: usize,
}

impl TuningLimits {
    /// Eight in parallel, half a second apart, one retry.
    pub const DEFAULT: Self = Self {
        max_parallel: NonZeroU32::new(8).expect("eight is not zero"),
        min_interval: Duration::from_millis(500),
        min_retries: 1,
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
    /// Nothing: the bad day fits.
    AsItIs,
    /// With these settings the bad day fits.
    Change(Tuning),
    /// No settings within the bounds fit all items. With these, this many do.
    FewerItems {
        /// The settings that fit the most items.
        tuning: Tuning,
        /// How many items fit on a bad day.
        items: u64,
    },
}

/// Proposes the smallest change to `batch` that makes it end `within` this time on a `bad_day`.
pub fn propose(
    batch: &BatchPlan<'_>,
    bad_day: &Assumption,
    bounds: &TuningLimits,
    within: Duration,
) -> Proposal {
    if estimate_with(batch, bad_day) <= within {
        return Proposal::AsItIs;
    }
    // A batch that already exceeds the bounds is not reduced.
    let max_parallel = bounds.max_parallel.max(batch.parallel);
    let min_interval = bounds.min_interval.min(batch.interval);
    let min_retries = bounds.min_retries.min(batch.waits.len());
    for retries in (min_retries..=batch.waits.len()).rev() {
        let tried = BatchPlan { waits: batch.waits.get(..retries).unwrap_or(batch.waits), ..*batch };
        if let Some((parallel, interval)) = fitting(&tried, bad_day, max_parallel, min_interval, within) {
            return Proposal::Change(Tuning { parallel, interval, retries });
        }
    }
    let tuning = Tuning { parallel: max_parallel, interval: min_interval, retries: min_retries };
    let waits = batch.waits.get(..min_retries).unwrap_or(batch.waits);
    let hurried = BatchPlan { parallel: max_parallel, interval: min_interval, waits, ..*batch };
    Proposal::FewerItems { tuning, items: items_that_fit(&hurried, bad_day, within) }
}

/// Returns the longest interval that fits, and the smallest parallelism that fits with it.
fn fitting(
    batch: &BatchPlan<'_>,
    bad_day: &Assumption,
    max_parallel: NonZeroU32,
    min_interval: Duration,
    within: Duration,
) -> Option<(NonZeroU32, Duration)> {
    let fits =
        |parallel, interval| estimate_with(&BatchPlan { parallel, interval, ..*batch }, bad_day) <= within;
    if !fits(max_parallel, min_interval) {
        return None;
    }
    let interval = longest_interval(batch.interval, min_interval, |interval| fits(max_parallel, interval));
    // Invariant: `high` in parallel fit.
    let (mut low, mut high) = (batch.parallel, max_parallel);
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

/// Returns the longest interval that fits: this one, or a shorter one in whole milliseconds, because people read
/// settings.
fn longest_interval(interval: Duration, min_interval: Duration, fits: impl Fn(Duration) -> bool) -> Duration {
    if fits(interval) {
        return interval;
    }
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    // Invariant: what is added to the shortest interval fits with `low`, and does not with more than `high`.
    let (mut low, mut high) = (0, millis(interval.saturating_sub(min_interval)));
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(min_interval.saturating_add(Duration::from_millis(middle))) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    min_interval.saturating_add(Duration::from_millis(low))
}
