//! The clocks of a store: how much time has passed, and how far tests have moved the database's clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::clock::{Now, Retention};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use tokio::time::Instant;

use crate::micros;

/// How far retention has come in this process, and what of it is written down.
pub(crate) struct RetentionProgress {
    pub(crate) retention: Retention,
    pub(crate) written: Option<Timestamp>,
}

/// Outside tests nothing is ever moved.
pub(crate) struct Skew {
    since: Instant,
    /// Added to the database's clock, in microseconds.
    wall: AtomicI64,
    /// The part of it that does not count as time that has passed.
    stepped: AtomicI64,
    /// `None` until the store is open.
    progress: Mutex<Option<RetentionProgress>>,
}

impl Default for Skew {
    fn default() -> Self {
        let (wall, stepped) = (AtomicI64::new(0), AtomicI64::new(0));
        Self { since: Instant::now(), wall, stepped, progress: Mutex::default() }
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

    /// How far retention has come.
    pub(crate) fn progress(&self) -> MutexGuard<'_, Option<RetentionProgress>> {
        lock(&self.progress)
    }

    /// The moment until which records have expired, if the wall clock agrees. Before retention begins nothing has.
    pub(crate) fn retention(&self) -> Timestamp {
        let monotonic = self.monotonic();
        self.progress().as_ref().map_or(Timestamp::EPOCH, |progress| progress.retention.at(monotonic))
    }

    /// The time by which records are judged that were read at a moment of the wall clock.
    pub(crate) fn now(&self, wall: Timestamp) -> Now {
        Now { wall, retention: self.retention() }
    }
}
