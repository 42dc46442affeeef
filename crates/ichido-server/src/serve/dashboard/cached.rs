//! A value that is read once for all who ask for it.
//!
//! Guarantee: one caller reads at a time. A caller that waited gets a value whose read began after it asked, however long the read took:
//! a slow store is not read once for each caller.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::sync::lock;
use tokio::time::Instant;

/// A value and when its read began.
pub(super) struct Cached<T> {
    latest: Mutex<Option<(Instant, Arc<T>)>>,
    /// Whether somebody changed something since.
    is_stale: AtomicBool,
    /// Held during a read.
    reading: tokio::sync::Mutex<()>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self {
            latest: Mutex::new(None),
            is_stale: AtomicBool::new(false),
            reading: tokio::sync::Mutex::default(),
        }
    }
}

impl<T> Cached<T> {
    /// Returns a value that is not older than `fresh_for`, or that was read since the call.
    pub(super) async fn get<E>(
        &self,
        fresh_for: Duration,
        read: impl Future<Output = Result<T, E>>,
    ) -> Result<Arc<T>, E> {
        let asked_at = Instant::now();
        if let Some(value) = self.since(asked_at, fresh_for) {
            return Ok(value);
        }
        let _reading = self.reading.lock().await;
        if let Some(value) = self.since(asked_at, fresh_for) {
            return Ok(value);
        }
        // Before the read: a change during it is not in the value.
        let began_at = Instant::now();
        self.is_stale.store(false, Ordering::SeqCst);
        let value = Arc::new(read.await?);
        *lock(&self.latest) = Some((began_at, Arc::clone(&value)));
        Ok(value)
    }

    /// Reads again for the next who asks.
    pub(super) fn forget(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// Returns the last value, however old.
    pub(super) fn latest(&self) -> Option<Arc<T>> {
        lock(&self.latest).as_ref().map(|(_, value)| Arc::clone(value))
    }

    /// Returns whether somebody reads now, or the last value is not older than `fresh_for`.
    pub(super) fn is_needed(&self, fresh_for: Duration) -> bool {
        self.reading.try_lock().is_err() || self.since(Instant::now(), fresh_for).is_some()
    }

    /// Returns when the last read began.
    pub(super) fn read_at(&self) -> Option<Instant> {
        lock(&self.latest).as_ref().map(|(at, _)| *at)
    }

    fn since(&self, asked_at: Instant, fresh_for: Duration) -> Option<Arc<T>> {
        if self.is_stale.load(Ordering::SeqCst) {
            return None;
        }
        let is_fresh = |at: Instant| asked_at <= at || asked_at.duration_since(at) < fresh_for;
        lock(&self.latest).as_ref().filter(|(at, _)| is_fresh(*at)).map(|(_, value)| Arc::clone(value))
    }

    /// Lets nobody read until the guard is dropped.
    #[cfg(test)]
    pub(super) async fn block(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.reading.lock().await
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::AtomicU32;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_value_is_read_again_when_it_is_old_or_forgotten() {
        let (cached, reads) = (Cached::default(), AtomicU32::new(0));
        let read = || async { Ok::<_, Infallible>(reads.fetch_add(1, Ordering::SeqCst)) };
        for (advance, forgets, expected) in [
            (Duration::ZERO, false, 0),
            (Duration::from_millis(999), false, 0),
            (Duration::from_millis(1), false, 1),
            (Duration::ZERO, true, 2),
            (Duration::ZERO, false, 2),
        ] {
            tokio::time::advance(advance).await;
            if forgets {
                cached.forget();
            }
            assert_eq!(cached.get(SECOND, read()).await.map(|value| *value), Ok(expected));
        }
        assert_eq!(cached.latest().as_deref(), Some(&2));
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_for_a_slow_read_share_the_next() {
        let (cached, reads) = (Arc::new(Cached::default()), Arc::new(AtomicU32::new(0)));
        let blocked = cached.block().await;
        let view = || {
            let (cached, reads) = (Arc::clone(&cached), Arc::clone(&reads));
            let slow = async move {
                // The value is old before anybody has it.
                tokio::time::advance(10 * SECOND).await;
                Ok::<_, Infallible>(reads.fetch_add(1, Ordering::SeqCst))
            };
            tokio::spawn(async move { cached.get(SECOND, slow).await.map(|value| *value) })
        };
        let viewers: Vec<_> = (0..50).map(|_| view()).collect();
        // All of them ask, and wait.
        tokio::task::yield_now().await;
        drop(blocked);
        for viewer in viewers {
            assert_eq!(viewer.await.ok(), Some(Ok(0)));
        }
        assert_eq!(reads.load(Ordering::SeqCst), 1);
    }
}
