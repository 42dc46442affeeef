//! The clocks of a store: how much time has passed, and how far tests have moved the database's clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::micros;

/// Outside tests nothing is ever moved.
pub(crate) struct Skew {
    since: Instant,
    /// Added to the database's clock, in microseconds.
    wall: AtomicI64,
    /// The part of it that does not count as time that has passed.
    stepped: AtomicI64,
}

impl Default for Skew {
    fn default() -> Self {
        Self { since: Instant::now(), wall: AtomicI64::new(0), stepped: AtomicI64::new(0) }
    }
}

impl Skew {
    /// Lets time pass: both clocks go ahead.
    pub(crate) fn pass(&self, time: Duration) {
        self.wall.fetch_add(micros(time), Ordering::Relaxed);
    }

    /// Sets the wall clock, and lets no time pass.
    #[cfg(feature = "testing")]
    pub(crate) fn step(&self, micros: i64) {
        self.stepped.fetch_add(micros, Ordering::Relaxed);
        self.wall.fetch_add(micros, Ordering::Relaxed);
    }

    /// What is added to the database's clock, in microseconds.
    pub(crate) fn wall(&self) -> i64 {
        self.wall.load(Ordering::Relaxed)
    }

    /// The time that tests let pass.
    pub(crate) fn passed(&self) -> Duration {
        let passed = self.wall().saturating_sub(self.stepped.load(Ordering::Relaxed));
        Duration::from_micros(u64::try_from(passed).unwrap_or(0))
    }

    /// The monotonic clock: the time since this store was opened.
    pub(crate) fn monotonic(&self) -> Duration {
        self.since.elapsed() + self.passed()
    }
}
