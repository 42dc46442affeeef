//! Waiters in this process, by key.
//!
//! Guarantee: a wake-up after [`Waiters::join`] is not missed. Of many that wait for one key with [`Waiters::wait_in_turn`],
//! one looks at a time, and what it finds wakes all. A waiter that leaves, however that happens, leaves nothing behind.
//!
//! A wake-up reaches this process only, so a waiter waits with a timeout and then looks again.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::sync::lock;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::sleep;

/// Waiters by key.
pub struct Waiters<K> {
    entries: Mutex<HashMap<K, Arc<WaitEntry>>>,
    /// For which keys a wake-up without a waiter is remembered for the next one.
    remembers: fn(&K) -> bool,
    /// The number of keys beyond which no further wake-up is remembered.
    max_remembered: usize,
}

#[derive(Default)]
struct WaitEntry {
    woken: Arc<Notify>,
    /// The task that holds it looks for all.
    turn: tokio::sync::Mutex<()>,
}

impl<K> Default for Waiters<K> {
    fn default() -> Self {
        Self::with_remembered(|_| false, 0)
    }
}

impl<K> Waiters<K> {
    /// Remembers wake-ups without a waiter, for these keys and up to a maximum.
    pub(crate) fn with_remembered(remembers: fn(&K) -> bool, max_remembered: usize) -> Self {
        Self { entries: Mutex::default(), remembers, max_remembered }
    }

    /// Returns whether nobody waits and no wake-up is remembered.
    pub fn is_empty(&self) -> bool {
        lock(&self.entries).is_empty()
    }
}

impl<K: Hash + Eq + Clone> Waiters<K> {
    /// Returns the keys with waiters.
    pub fn keys(&self) -> Vec<K> {
        lock(&self.entries).keys().cloned().collect()
    }

    /// Starts waiting: from here on no wake-up is missed.
    pub fn join(&self, key: &K) -> Waiter<'_, K> {
        let mut entries = lock(&self.entries);
        let entry = Arc::clone(entries.entry(key.clone()).or_default());
        // While the map is locked, so no wake-up comes in between.
        let woken = Box::pin(Arc::clone(&entry.woken).notified_owned());
        drop(entries);
        Waiter { waiters: self, key: key.clone(), entry, woken }
    }

    /// Wakes all waiters of a key.
    pub fn wake(&self, key: &K) {
        let mut entries = lock(&self.entries);
        match entries.get(key) {
            // Only our reference: nobody waits.
            Some(entry) if Arc::strong_count(entry) == 1 => entry.woken.notify_one(),
            Some(entry) => entry.woken.notify_waiters(),
            None if (self.remembers)(key) && entries.len() < self.max_remembered => {
                entries.entry(key.clone()).or_default().woken.notify_one();
            }
            None => (),
        }
    }

    /// Waits up to `at_most` for a wake-up of a key, or for a look at it.
    ///
    /// `look` returns whether something happened, and runs only in this waiter's turn. However the wait ends, the caller checks
    /// again.
    pub async fn wait_in_turn(&self, key: &K, at_most: Duration, look: impl Future<Output = bool>) {
        let mut waiting = self.join(key);
        let Waiter { entry, woken, .. } = &mut waiting;
        let looked = async {
            let _turn = entry.turn.lock().await;
            if look.await {
                entry.woken.notify_waiters();
            }
        };
        tokio::select! {
            biased;
            () = woken.as_mut() => {}
            () = sleep(at_most) => {}
            () = looked => {}
        }
    }
}

/// A waiter, until it is dropped.
pub struct Waiter<'a, K: Hash + Eq> {
    waiters: &'a Waiters<K>,
    key: K,
    entry: Arc<WaitEntry>,
    woken: Pin<Box<OwnedNotified>>,
}

impl<K: Hash + Eq> Waiter<'_, K> {
    /// Completes at the first wake-up since [`Waiters::join`].
    pub fn woken(&mut self) -> Pin<&mut OwnedNotified> {
        self.woken.as_mut()
    }
}

impl<K: Hash + Eq> Drop for Waiter<'_, K> {
    fn drop(&mut self) {
        let mut entries = lock(&self.waiters.entries);
        // The map's reference and ours: nobody else waits, and nobody can join while the map is locked.
        if Arc::strong_count(&self.entry) == 2 && !(self.waiters.remembers)(&self.key) {
            entries.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    const KEY: u8 = 7;
    const LOOK: Duration = Duration::from_millis(250);
    /// Not a multiple of `LOOK`, so the last look is cut short.
    const WAIT: Duration = Duration::from_millis(1_900);
    const MANY: usize = 1_000;

    /// Counts the looks until all waiters have left, if the look with this number finds something.
    async fn looks_of_many(news_at: usize) -> usize {
        let (waiters, looks) = (Arc::new(Waiters::default()), Arc::new(AtomicUsize::new(0)));
        let waiting = (0..MANY).map(|_| {
            let (waiters, looks) = (Arc::clone(&waiters), Arc::clone(&looks));
            tokio::spawn(async move {
                let until = Instant::now() + WAIT;
                while Instant::now() < until && looks.load(Ordering::SeqCst) < news_at {
                    let look = async {
                        let number = looks.fetch_add(1, Ordering::SeqCst) + 1;
                        sleep(LOOK).await;
                        number == news_at
                    };
                    let left = until.saturating_duration_since(Instant::now());
                    waiters.wait_in_turn(&KEY, left, look).await;
                }
            })
        });
        for waiter in waiting.collect::<Vec<_>>() {
            waiter.await.expect("it leaves");
        }
        assert!(waiters.is_empty(), "nothing is left behind");
        looks.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn one_waiter_checks_at_a_time() {
        let began = Instant::now();
        assert_eq!(looks_of_many(usize::MAX).await, 8, "one look after another, for as long as they wait");
        assert_eq!(began.elapsed(), WAIT, "and all of them wait for no longer");
    }

    #[tokio::test(start_paused = true)]
    async fn one_waiters_result_wakes_all() {
        let began = Instant::now();
        assert_eq!(looks_of_many(3).await, 3);
        assert_eq!(began.elapsed(), LOOK * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_waiter_passes_its_turn_on() {
        let waiters = Waiters::default();
        let mut gone = Box::pin(waiters.wait_in_turn(&KEY, WAIT, std::future::pending()));
        let mut next = Box::pin(waiters.wait_in_turn(&KEY, WAIT, std::future::ready(true)));
        let both = std::future::poll_fn(|cx| {
            assert!(gone.as_mut().poll(cx).is_pending());
            assert!(next.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        });
        both.await;
        drop(gone);
        let began = Instant::now();
        next.await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(waiters.is_empty());
    }

    #[tokio::test]
    async fn wake_up_without_waiters_is_kept_only_if_remembered() {
        let waiters = Waiters::with_remembered(|key: &u8| *key == KEY, 1);
        waiters.wake(&KEY);
        waiters.wake(&8);
        assert_eq!(waiters.keys(), [KEY]);
        waiters.join(&KEY).woken().await;
        let mut waiting = waiters.join(&KEY);
        std::future::poll_fn(|cx| {
            assert!(waiting.woken().poll(cx).is_pending(), "it wakes once");
            std::task::Poll::Ready(())
        })
        .await;
    }
}
