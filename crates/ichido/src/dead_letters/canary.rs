//! The canary: moves a few letters first, and more only if those succeed.
//!
//! Nothing here reads a clock or a database.

use std::time::Duration;

use ichido_core::lifecycle::StateName;

/// The share moved after each step, in percent.
const SHARES: [u64; 4] = [1, 5, 25, 100];

/// The settings of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// It halts if more than this percentage of the watched messages fail.
    pub max_failures_percent: u8,
    /// It halts if the messages of a step have not all ended within this time.
    ///
    /// Perhaps no worker runs.
    pub watch_for: Duration,
}

impl Canary {
    /// Ten percent, and five minutes.
    pub const DEFAULT: Self = Self { max_failures_percent: 10, watch_for: Duration::from_mins(5) };

    /// Returns how many of `total`, or more, have been moved each time the canary waits; empty if one step moves them all.
    pub fn steps(total: u64, has_more: bool) -> Vec<u64> {
        (0..SHARES.len()).map_while(|step| goal(step, total, has_more)).collect()
    }
}

/// Returns how many of `total` have been moved when a step ends, counting steps from 0.
///
/// `None` for the last step, which needs no watching. If there are more than `total`, each step is a smaller share of them, and the
/// last step is never the only one.
pub(super) fn goal(step: usize, total: u64, has_more: bool) -> Option<u64> {
    let share = SHARES.get(step).copied().filter(|share| *share < 100)?;
    // At least one more than in the previous step, however few there are.
    let min = u64::try_from(step).unwrap_or(u64::MAX).saturating_add(1);
    let goal = (total.saturating_mul(share)).div_ceil(100).max(min);
    (has_more || goal < total).then_some(goal)
}

/// What one requeued message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// Its first attempt has not ended.
    Pending,
    /// Its first attempt succeeded.
    Succeeded,
    /// An attempt failed, whatever happens later.
    Failed,
    /// It was cancelled and shows nothing.
    Cancelled,
}

/// Derives an observation from a message's state and its attempts since the requeue.
///
/// The moment of looking must not matter: a message that failed and was sent by the next attempt, between two looks, counts
/// as failed.
pub(super) const fn observe(stage: StateName, attempts: u32) -> Observation {
    match (stage, attempts) {
        (StateName::Cancelled, 0) => Observation::Cancelled,
        (StateName::Sent, 0 | 1) => Observation::Succeeded,
        // An attempt in flight counts, so the first one is 1 during it and 0 before it.
        (StateName::Queued, 0) | (StateName::Sending, 0 | 1) => Observation::Pending,
        (
            StateName::Queued
            | StateName::Sending
            | StateName::Sent
            | StateName::Failed
            | StateName::Parked
            | StateName::Dead
            | StateName::Cancelled,
            _,
        ) => Observation::Failed,
    }
}

/// The counts of the watched messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CanaryCounts {
    /// Not ended yet.
    pub pending: u64,
    /// Sent by the first attempt.
    pub succeeded: u64,
    /// Failed at least once.
    pub failed: u64,
}

impl CanaryCounts {
    pub(super) const fn add(&mut self, observation: Observation) {
        match observation {
            Observation::Pending => self.pending += 1,
            Observation::Succeeded => self.succeeded += 1,
            Observation::Failed => self.failed += 1,
            Observation::Cancelled => (),
        }
    }
}

/// What to do after an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CanaryDecision {
    /// They succeeded: start the next step.
    Widen,
    /// Not all have ended.
    Wait,
    /// Too many failed, they do not end, or they show nothing.
    Halt,
}

/// Judges the watched messages.
///
/// Halts as soon as enough have failed: the others cannot change that.
pub(super) fn judge(watched: CanaryCounts, canary: Canary, is_timed_out: bool) -> CanaryDecision {
    let CanaryCounts { pending: waiting, succeeded: well, failed: ill } = watched;
    let all = waiting.saturating_add(well).saturating_add(ill);
    if u64::from(canary.max_failures_percent).saturating_mul(all) < ill.saturating_mul(100) {
        CanaryDecision::Halt
    } else if all == 0 {
        // All were cancelled: nothing is known of what the others would meet.
        CanaryDecision::Halt
    } else if waiting == 0 {
        CanaryDecision::Widen
    } else if is_timed_out {
        CanaryDecision::Halt
    } else {
        CanaryDecision::Wait
    }
}

#[cfg(test)]
mod tests;
