//! Tracks the claims of this process on its own clock.
//!
//! Guarantee: a claim of this process lapses when its lease has passed on the monotonic clock, and never because the wall clock
//! was set. The database's clock is this machine's wall clock. On a file with one process, which is what SQLite is for, a clock
//! jump would otherwise take every claim from its live owner. Claims of other processes are judged by the wall clock alone, and
//! so is everything after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::sync::lock;

use crate::columns::number;
use crate::micros;
use crate::skew::Skew;

pub(super) struct OwnClaims {
    clock: Arc<Skew>,
    /// When each claim lapses, in microseconds of the monotonic clock.
    until: Mutex<HashMap<Fence, i64>>,
}

impl OwnClaims {
    pub(super) fn new(clock: Arc<Skew>) -> Self {
        Self { clock, until: Mutex::default() }
    }

    fn now(&self) -> i64 {
        micros(self.clock.monotonic())
    }

    /// Notes that a claim was made or renewed.
    pub(super) fn hold(&self, fence: Fence, lease: Duration) {
        let until = self.now().saturating_add(micros(lease));
        lock(&self.until).insert(fence, until);
    }

    /// Removes a claim that has ended.
    pub(super) fn release(&self, fence: Fence) {
        lock(&self.until).remove(&fence);
    }

    /// Returns the time left of a claim, or `None` if it has lapsed or is not ours.
    pub(super) fn time_left(&self, fence: Fence) -> Option<Duration> {
        let until = *lock(&self.until).get(&fence)?;
        let left = u64::try_from(until.saturating_sub(self.now())).ok()?;
        (0 < left).then(|| Duration::from_micros(left))
    }

    /// Returns all valid claims, and removes the others.
    pub(super) fn valid_claims(&self) -> Vec<i64> {
        let now = self.now();
        let mut until = lock(&self.until);
        until.retain(|_, until| now < *until);
        until.keys().map(|fence| number(*fence)).collect()
    }
}
