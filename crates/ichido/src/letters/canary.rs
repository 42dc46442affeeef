//! The canary: a few letters first, and more only when those are well.
//!
//! Nothing here asks a clock or a database.

use std::time::Duration;

use ichido_core::lifecycle::Stage;

/// How much of all has gone after each step, in percent.
const SHARES: [u64; 4] = [1, 5, 25, 100];

/// How carefully to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// It halts when more than so many of a hundred that are watched fail.
    pub failures_percent_max: u8,
    /// It halts when those of a step have not all ended within this time: perhaps no worker runs.
    pub watch_for: Duration,
}

impl Canary {
    /// One in ten, and five minutes.
    pub const DEFAULT: Self = Self { failures_percent_max: 10, watch_for: Duration::from_mins(5) };
}

/// How many of `total` have gone when a step ends, the first step being 0; `None` when that is all of them, which nobody need watch.
pub(super) fn goal(step: usize, total: u64) -> Option<u64> {
    let share = SHARES.get(step).copied().filter(|share| *share < 100)?;
    // Never less than one more than the step before, however few there are.
    let min = u64::try_from(step).unwrap_or(u64::MAX).saturating_add(1);
    let goal = (total.saturating_mul(share)).div_ceil(100).max(min);
    (goal < total).then_some(goal)
}

/// What one requeued message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// Its first try has not ended.
    Pending,
    /// Its first try was a success.
    Succeeded,
    /// A try failed, whatever becomes of it later.
    Failed,
    /// Nothing: somebody took it back.
    Cancelled,
}

/// What a message shows by where it is and how often it was tried since it was requeued. It must not matter when one looks: what
/// failed and was sent by the next try, between two looks, failed all the same.
pub(super) const fn observe(stage: Stage, tries: u32) -> Observation {
    match (stage, tries) {
        (Stage::Cancelled, 0) => Observation::Cancelled,
        (Stage::Sent, 0 | 1) => Observation::Succeeded,
        // A try that is under way counts, so the first one is 1 in it and 0 before it.
        (Stage::Queued, 0) | (Stage::Sending, 0 | 1) => Observation::Pending,
        (
            Stage::Queued
            | Stage::Sending
            | Stage::Sent
            | Stage::Failed
            | Stage::Parked
            | Stage::Dead
            | Stage::Cancelled,
            _,
        ) => Observation::Failed,
    }
}

/// What those that are watched show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Not ended yet.
    pub waiting: u64,
    /// Sent by the first try.
    pub well: u64,
    /// Failed at least once.
    pub ill: u64,
}

impl Watched {
    pub(super) const fn add(&mut self, observation: Observation) {
        match observation {
            Observation::Pending => self.waiting += 1,
            Observation::Succeeded => self.well += 1,
            Observation::Failed => self.ill += 1,
            Observation::Cancelled => (),
        }
    }
}

/// What follows from what is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CanaryDecision {
    /// They are well: the next step may go.
    Widen,
    /// Not all have ended.
    Wait,
    /// Too many failed, they do not end, or they show nothing.
    Halt,
}

/// Judges those that are watched. As soon as enough have failed it halts: what the others do cannot mend it.
pub(super) fn judge(watched: Watched, canary: Canary, is_timed_out: bool) -> CanaryDecision {
    let Watched { waiting, well, ill } = watched;
    let all = waiting.saturating_add(well).saturating_add(ill);
    if u64::from(canary.failures_percent_max).saturating_mul(all) < ill.saturating_mul(100) {
        CanaryDecision::Halt
    } else if all == 0 {
        // All were taken back: nobody knows what the others would meet.
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
