//! Those who wait in this process for something to happen, each by a key.
//!
//! Guarantee: a wake-up that comes after [`Waiters::join`] is not missed by who joined. Of many who wait for one key with
//! [`Waiters::wait_in_turn`], one looks at a time, and what it finds wakes all. Nobody who leaves, however that happens, leaves anything
//! behind.
//!
//! A wake-up reaches this process only; a waiter therefore waits with a bound, and looks again when it is over.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::sync::lock;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::sleep;

/// Who waits for what.
pub struct Waiters<K> {
    entries: Mutex<HashMap<K, Arc<WaitEntry>>>,
    /// For which keys a wake-up that nobody waits for is kept for who comes next.
    remembers: fn(&K) -> bool,
    /// The number of keys beyond which no further wake-up is kept.
    remembered_max: usize,
}

#[derive(Default)]
struct WaitEntry {
    woken: Arc<Notify>,
    /// Its holder looks for all.
    turn: tokio::sync::Mutex<()>,
}

impl<K> Default for Waiters<K> {
    fn default() -> Self {
        Self::with_remembered(|_| false, 0)
    }
}

impl<K> Waiters<K> {
    /// Keeps a wake-up that nobody waits for until somebody does: for these keys, and at most so many.
    pub(crate) fn with_remembered(remembers: fn(&K) -> bool, remembered_max: usize) -> Self {
        Self { entries: Mutex::default(), remembers, remembered_max }
    }

    /// Whether nobody waits, and no wake-up is remembered.
    pub fn is_empty(&self) -> bool {
        lock(&self.entries).is_empty()
    }
}

impl<K: Hash + Eq + Clone> Waiters<K> {
    /// The keys that somebody waits for.
    pub fn keys(&self) -> Vec<K> {
        lock(&self.entries).keys().cloned().collect()
    }

    /// Begins to wait: from here on no wake-up is missed.
    pub fn join(&self, key: &K) -> Waiter<'_, K> {
        let mut entries = lock(&self.entries);
        let entry = Arc::clone(entries.entry(key.clone()).or_default());
        // While the map is locked, so that no wake-up comes between.
        let woken = Box::pin(Arc::clone(&entry.woken).notified_owned());
        drop(entries);
        Waiter { waiters: self, key: key.clone(), entry, woken }
    }

    /// Wakes all who wait for a key.
    pub fn wake(&self, key: &K) {
        let mut entries = lock(&self.entries);
        match entries.get(key) {
            // Only ours: nobody waits.
            Some(entry) if Arc::strong_count(entry) == 1 => entry.woken.notify_one(),
            Some(entry) => entry.woken.notify_waiters(),
            None if (self.remembers)(key) && entries.len() < self.remembered_max => {
                entries.entry(key.clone()).or_default().woken.notify_one();
            }
            None => (),
        }
    }

    /// Waits until a key is woken or a turn to look at it is over, at most so long. `look` returns whether something happened; it runs
    /// only in this one's turn. However the wait ends, the caller asks again.
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

/// Somebody who waits, until this is dropped.
pub struct Waiter<'a, K: Hash + Eq> {
    waiters: &'a Waiters<K>,
    key: K,
    entry: Arc<WaitEntry>,
    woken: Pin<Box<OwnedNotified>>,
}

impl<K: Hash + Eq> Waiter<'_, K> {
    /// Ends at the first wake-up since [`Waiters::join`].
    pub fn woken(&mut self) -> Pin<&mut OwnedNotified> {
        self.woken.as_mut()
    }
}

impl<K: Hash + Eq> Drop for Waiter<'_, K> {
    fn drop(&mut self) {
        let mut entries = lock(&self.waiters.entries);
        // The map's and ours: nobody else waits, and nobody joins while the map is locked.
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
    /// Not a whole number of looks, so that the last one is cut short.
    const WAIT: Duration = Duration::from_millis(1_900);
    const MANY: usize = 1_000;

    /// How many looks it takes until everybody has left, where the look of this number brings news.
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
    async fn of_many_that_wait_one_looks_at_a_time() {
        let began = Instant::now();
        assert_eq!(looks_of_many(usize::MAX).await, 8, "one look after another, for as long as they wait");
        assert_eq!(began.elapsed(), WAIT, "and all of them wait for no longer");
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_finds_is_news_for_all() {
        let began = Instant::now();
        assert_eq!(looks_of_many(3).await, 3);
        assert_eq!(began.elapsed(), LOOK * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_passes_on_when_its_holder_goes_away() {
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
    async fn a_wake_up_that_nobody_waits_for_is_kept_only_where_it_is_remembered() {
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
