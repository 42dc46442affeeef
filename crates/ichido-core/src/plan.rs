//! Estimates how long a batch takes, and what to change if that is too long.
//!
//! Guarantee: an estimate is one formula, `ceil(items / parallel) × (interval + latency) + retried × waits`, computed
//! exactly and saturating, never more than the time in which every item could use up all its retries, and never less
//! than a known [pace](PlannedPace) needs for the first calls. A proposal's
//! bad day fits its deadline, and no smaller change in the stated order does. It remains an estimate, and a bad day is
//! not the worst one: latencies vary, and every item may be retried. [`may_start`], checked before every call, enforces
//! a deadline by the clock.
//!
//! What the formula omits and what it overstates: the calls that retries make, and the
//! jitter on their waits, are not counted. The waits are added one after another, as if no two items ever waited at the
//! same time.
//!
//! - With two or more in parallel, and waits longer than the latency, adding the waits one after another more than
//!   compensates for what is not counted: the estimate is pessimistic. With many in parallel, so many waits at the same
//!   time that their sum is impossible. That is what the limit is for: a batch that never leaves a slot free while an
//!   item could use it takes at most the work of all other items, spread over all slots, and then one item alone with
//!   all its calls and waits (Graham's bound).
//! - With one at a time, or with short waits, it does not: a run with many retries takes longer than estimated. Leave a
//!   margin before a deadline, or count a retry's call by adding the latency to its wait.
// SPEC B9 fixes the numbers of the formula.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use crate::time::Timestamp;

mod proposal;

pub use proposal::{Proposal, Tuning, TuningLimits, propose};

/// A batch about to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPlan<'a> {
    /// The number of items.
    pub items: u64,
    /// The number of items in parallel.
    pub parallel: NonZeroU32,
    /// The wait before an item's first call, while it holds its permit.
    pub interval: Duration,
    /// How long a call takes.
    pub latency: Duration,
    /// The waits before an item's first, second … retry, without jitter.
    ///
    /// There are as many retries as waits.
    pub waits: &'a [Duration],
    /// The limit on how fast calls start; `None` if there is none.
    pub pace: Option<PlannedPace>,
}

/// How fast the calls of a batch start at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedPace {
    /// The time between two calls.
    pub spacing: Duration,
    /// Whether it halves each second, as at a destination that has not refused yet.
    pub is_rising: bool,
}

impl PlannedPace {
    /// Returns the time in which this many calls start.
    fn takes(mut self, mut calls: u64) -> Duration {
        const SECOND: Duration = Duration::from_secs(1);
        let mut before = Duration::ZERO;
        while self.is_rising && SECOND < times(self.spacing, calls) {
            let started = SECOND.as_nanos().checked_div(self.spacing.as_nanos()).unwrap_or_default();
            calls = calls.saturating_sub(u64::try_from(started).unwrap_or(u64::MAX));
            before = before.saturating_add(SECOND);
            self.spacing /= 2;
        }
        before.saturating_add(times(self.spacing, calls))
    }
}

/// The share of items that is retried, and how often each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// This many items …
    pub of: u64,
    /// … of every this many. A fraction of an item counts as an item.
    pub per: NonZeroU64,
    /// How often each of them is retried.
    pub retries: Retries,
}

/// How often an item is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// This often, or as often as allowed if that is less.
    Times(usize),
    /// As often as allowed.
    Max,
}

impl Assumption {
    /// No item is retried.
    pub const BEST: Self = Self { of: 0, per: Self::PER, retries: Retries::Times(0) };
    /// Ten of 120 items are retried three times.
    pub const LIKELY: Self = Self { of: 10, per: Self::PER, retries: Retries::Times(3) };
    /// Twenty of 120 items use all their retries.
    pub const BAD_DAY: Self = Self { of: 20, per: Self::PER, retries: Retries::Max };

    const PER: NonZeroU64 = NonZeroU64::new(120).expect("120 is not zero");

    /// Returns how many of `items` are retried.
    pub fn retried(&self, items: u64) -> u64 {
        let share = (u128::from(items) * u128::from(self.of)).div_ceil(u128::from(self.per.get()));
        u64::try_from(share).unwrap_or(u64::MAX).min(items)
    }

    /// Returns how often an item is retried that may be retried this often.
    pub fn retries(&self, allowed: usize) -> usize {
        match self.retries {
            Retries::Times(times) => times.min(allowed),
            Retries::Max => allowed,
        }
    }
}

/// What to assume at best, likely and on a bad day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumptions {
    /// When nothing goes wrong.
    pub best: Assumption,
    /// On an ordinary day.
    pub likely: Assumption,
    /// On a bad day; deadlines are planned with it.
    pub bad_day: Assumption,
}

impl Assumptions {
    /// None, ten of 120 three times, twenty of 120 until exhausted.
    pub const DEFAULT: Self =
        Self { best: Assumption::BEST, likely: Assumption::LIKELY, bad_day: Assumption::BAD_DAY };
}

/// How long a batch takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// When nothing goes wrong.
    pub best: Duration,
    /// On an ordinary day.
    pub likely: Duration,
    /// On a bad day. It can get worse.
    pub bad_day: Duration,
}

impl Estimate {
    /// Returns the estimate of a batch that starts after this wait.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let Self { best, likely, bad_day } = self;
        let [best, likely, bad_day] = [best, likely, bad_day].map(|takes| takes.saturating_add(wait));
        Self { best, likely, bad_day }
    }
}

/// Estimates how long `batch` takes.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::time::Duration;
/// use ichido_core::plan::{Assumptions, BatchPlan, estimate};
/// use ichido_core::retry::Retry;
///
/// let waits: Vec<Duration> = Retry::LLM.waits().collect();
/// let articles = BatchPlan {
///     items: 120,
///     parallel: NonZeroU32::new(2).unwrap(),
///     interval: Duration::from_millis(2_500),
///     latency: Duration::from_secs(5),
///     waits: &waits,
///     pace: None,
/// };
/// let estimate = estimate(&articles, &Assumptions::DEFAULT);
/// assert_eq!(estimate.best, Duration::from_secs(450));
/// assert_eq!(estimate.likely, Duration::from_secs(590));
/// assert_eq!(estimate.bad_day, Duration::from_secs(1_050));
/// ```
pub fn estimate(batch: &BatchPlan<'_>, assumptions: &Assumptions) -> Estimate {
    Estimate {
        best: estimate_with(batch, &assumptions.best),
        likely: estimate_with(batch, &assumptions.likely),
        bad_day: estimate_with(batch, &assumptions.bad_day),
    }
}

/// Estimates how long `batch` takes under one assumption.
pub fn estimate_with(batch: &BatchPlan<'_>, assumption: &Assumption) -> Duration {
    let rounds = batch.items.div_ceil(u64::from(batch.parallel.get()));
    let first_call = batch.interval.saturating_add(batch.latency);
    let retries = assumption.retries(batch.waits.len());
    let waits = batch.waits.iter().take(retries).fold(Duration::ZERO, |sum, wait| sum.saturating_add(*wait));
    let in_sequence = times(first_call, rounds).saturating_add(times(waits, assumption.retried(batch.items)));
    let Some(others) = batch.items.checked_sub(1) else { return Duration::ZERO };
    let calls = first_call.saturating_add(times(batch.latency, retries as u64));
    let spread = from_nanos(times(calls, others).as_nanos() / u128::from(batch.parallel.get()));
    let paced = batch.pace.map_or(Duration::ZERO, |pace| pace.takes(batch.items));
    in_sequence.min(spread.saturating_add(calls).saturating_add(waits)).max(paced)
}

/// Returns how many of the items finish within `left`; the rest get their fallback.
pub fn items_that_fit(batch: &BatchPlan<'_>, assumption: &Assumption, left: Duration) -> u64 {
    let fits = |items| estimate_with(&BatchPlan { items, ..*batch }, assumption) <= left;
    // Invariant: `low` items fit, because zero items take no time; more than `high` are not requested or do not fit.
    let (mut low, mut high) = (0, batch.items);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Returns whether a step that `needs` this long may still start.
///
/// That is a first call (`interval + latency`) or a retry (its wait, then `latency`). If it may not, the item gets its
/// fallback now, so the batch ends in time.
pub fn may_start(now: Timestamp, deadline: Timestamp, needs: Duration) -> bool {
    now <= deadline && needs <= deadline.since(now)
}

/// Multiplies `span`.
fn times(span: Duration, count: u64) -> Duration {
    from_nanos(span.as_nanos().saturating_mul(u128::from(count)))
}

/// Converts nanoseconds, or returns the longest duration.
fn from_nanos(nanos: u128) -> Duration {
    const NANOS_PER_SEC: u128 = 1_000_000_000;
    match (u64::try_from(nanos / NANOS_PER_SEC), u32::try_from(nanos % NANOS_PER_SEC)) {
        (Ok(secs), Ok(nanos)) => Duration::new(secs, nanos),
        _ => Duration::MAX,
    }
}

#[cfg(test)]
mod tests;
