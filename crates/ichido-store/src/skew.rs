//! The store's clocks: how much time has passed, and how far tests have moved the database's clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::clock::{Now, Retention};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use tokio::time::Instant;

#[cfg(feature = "testing")]
use crate::micros;

/// How far retention has come in this process, and how far it is stored.
pub(crate) struct RetentionProgress {
    pub(crate) retention: Retention,
    pub(crate) written: Option<Timestamp>,
}

/// The clocks. Only tests move them.
pub(crate) struct Skew {
    since: Instant,
    /// Added to the database's clock, in microseconds.
    wall: AtomicI64,
    /// The part of it that does not count as passed time.
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
    /// Lets time pass: both clocks advance.
    #[cfg(feature = "testing")]
    pub(crate) fn pass(&self, time: Duration) {
        self.wall.fetch_add(micros(time), Ordering::Relaxed);
    }

    /// Sets the wall clock without letting time pass.
    #[cfg(feature = "testing")]
    pub(crate) fn step(&self, micros: i64) {
        self.stepped.fetch_add(micros, Ordering::Relaxed);
        self.wall.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns what is added to the database's clock, in microseconds.
    pub(crate) fn wall(&self) -> i64 {
        self.wall.load(Ordering::Relaxed)
    }

    /// Returns the time that tests let pass.
    pub(crate) fn passed(&self) -> Duration {
        let passed = self.wall().saturating_sub(self.stepped.load(Ordering::Relaxed));
        Duration::from_micros(u64::try_from(passed).unwrap_or(0))
    }

    /// Returns the monotonic clock: the time since this store was opened.
    pub(crate) fn monotonic(&self) -> Duration {
        self.since.elapsed() + self.passed()
    }

    /// Returns how far retention has come.
    pub(crate) fn progress(&self) -> MutexGuard<'_, Option<RetentionProgress>> {
        lock(&self.progress)
    }

    /// Returns the time until which records have expired, if the wall clock agrees. Before retention begins, nothing has.
    pub(crate) fn retention(&self) -> Timestamp {
        let monotonic = self.monotonic();
        self.progress().as_ref().map_or(Timestamp::EPOCH, |progress| progress.retention.at(monotonic))
    }

    /// Returns the time to judge records that were read at this wall-clock time.
    pub(crate) fn now(&self, wall: Timestamp) -> Now {
        Now { wall, retention: self.retention() }
    }
}
