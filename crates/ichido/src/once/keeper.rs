//! The keeper of a store's live claims: their leases are renewed while their handlers run, all of them together.
//!
//! It also knows how much is under way, because work that is detached from its connection must be waited for when a process
//! stops.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::ledger::RecordName;
use ichido_core::sync::lock;
use ichido_store::Store;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::room::Rooms;
use super::settings::limits;

/// The part of a lease after which it is renewed: two more tries fit in before it lapses.
const RENEW_AT: u32 = 3;
/// How long to wait after the store could not be asked.
const RENEW_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// The most claims in one renewal.
const RENEW_MAX: usize = 1_000;

/// Keeps the claims of one store alive for as long as their handlers run. Cheap to clone; all clones are the same keeper, and
/// all operations of a store are best built with one.
#[derive(Clone)]
pub struct Keeper(Arc<Shared>);

struct Shared {
    store: Store,
    since: Instant,
    claims: Mutex<Claims>,
    changed: Arc<Notify>,
    under_way: watch::Sender<usize>,
    rooms: Rooms,
}

#[derive(Default)]
struct Claims {
    live: HashMap<Fence, Live>,
    /// When the next renewal is planned, if one is.
    next: Option<Duration>,
}

/// A claim whose handler runs. Moments are by our own clock, which only goes forward.
#[derive(Clone)]
struct Live {
    name: RecordName,
    lease: Duration,
    /// When it lapses, counted from before the store was asked.
    until: Duration,
    /// When to renew it.
    due: Duration,
}

impl Keeper {
    /// The keeper of a store. Must be called within a tokio runtime, on which it renews.
    pub fn of(store: Store) -> Self {
        let changed = Arc::new(Notify::new());
        let shared = Arc::new(Shared {
            store,
            since: Instant::now(),
            claims: Mutex::default(),
            changed: Arc::clone(&changed),
            under_way: watch::Sender::new(0),
            rooms: Rooms::default(),
        });
        tokio::spawn(run(Arc::downgrade(&shared), changed));
        Self(shared)
    }

    /// The store whose claims are kept.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Waits until nothing is under way: for a process that stops, after it has stopped to take requests. Wrap it in a time-out;
    /// what is left then is as if the process had crashed, and the leases resolve it.
    pub async fn drained(&self) {
        let mut under_way = self.0.under_way.subscribe();
        // The sender lives as long as this keeper.
        drop(under_way.wait_for(|count| *count == 0).await);
    }

    /// How many requests are under way, those included whose client has gone.
    pub fn under_way(&self) -> usize {
        *self.0.under_way.borrow()
    }

    pub(crate) fn begin(&self) -> UnderWay {
        self.0.under_way.send_modify(|count| *count += 1);
        UnderWay(Arc::clone(&self.0))
    }

    /// Waits for news of a claimed key, at most so long; whatever the end, it is to be claimed again.
    pub(crate) async fn wait_for(&self, name: &RecordName, at_most: Duration) {
        let look = self.0.store.keys().wait(name, at_most.min(limits::LOOK_EVERY));
        self.0.rooms.wait(name.hash(), at_most, look).await;
    }

    /// Our own clock.
    pub(crate) fn now(&self) -> Duration {
        self.0.now()
    }

    /// Keeps a claim that was asked for at `asked_at`.
    pub(crate) fn keep(&self, name: RecordName, fence: Fence, lease: Duration, asked_at: Duration) -> Kept {
        let live = Live { name, lease, until: asked_at + lease, due: asked_at + lease / RENEW_AT };
        let mut claims = lock(&self.0.claims);
        // Most claims are over before any renewal: only one that is due sooner than planned is news.
        let is_sooner = claims.next.is_none_or(|next| live.due < next);
        if is_sooner {
            claims.next = Some(live.due);
            self.0.changed.notify_one();
        }
        claims.live.insert(fence, live);
        Kept { shared: Arc::clone(&self.0), fence }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}

/// A request that is under way, until this is dropped.
pub(crate) struct UnderWay(Arc<Shared>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|count| *count -= 1);
    }
}

/// A claim that is renewed, until this is dropped.
pub(crate) struct Kept {
    shared: Arc<Shared>,
    fence: Fence,
}

impl Kept {
    /// Whether the claim still holds: by our own clock, or, where that is in doubt, by the store's word. Asked right before
    /// the effect, because the process may have stood still since the claim.
    pub(crate) async fn holds(&self) -> bool {
        let Some(live) = lock(&self.shared.claims).live.get(&self.fence).cloned() else { return false };
        // Half of a lease is ample for a call to leave the machine; with less left, or none, the store is asked.
        if self.shared.now() + live.lease / 2 < live.until {
            return true;
        }
        self.shared.renew(vec![(self.fence, live)]).await;
        lock(&self.shared.claims).live.get(&self.fence).is_some_and(|live| self.shared.now() < live.until)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        lock(&self.shared.claims).live.remove(&self.fence);
    }
}

impl Shared {
    /// A test that moves the store's clock moves this one with it.
    fn now(&self) -> Duration {
        self.since.elapsed() + self.store.skewed_by()
    }

    /// Renews what is due; answers when to come again, or `None` when there is nothing to renew.
    async fn run_once(&self) -> Option<Duration> {
        let now = self.now();
        let due: Vec<(Fence, Live)> = lock(&self.claims)
            .live
            .iter()
            .filter(|(_, live)| live.due <= now)
            .take(RENEW_MAX)
            .map(|(fence, live)| (*fence, live.clone()))
            .collect();
        if !due.is_empty() {
            self.renew(due).await;
        }
        let mut claims = lock(&self.claims);
        claims.next = claims.live.values().map(|live| live.due).min();
        Some(claims.next?.saturating_sub(self.now()))
    }

    async fn renew(&self, claims: Vec<(Fence, Live)>) {
        let asked_at = self.now();
        let asked: Vec<_> =
            claims.iter().map(|(fence, live)| (live.name.clone(), *fence, live.lease)).collect();
        let renewed = self.store.keys().renew(&asked).await;
        let live = &mut lock(&self.claims).live;
        match renewed {
            Ok(stands) => {
                for ((fence, _), stands) in claims.into_iter().zip(stands) {
                    if stands {
                        if let Some(live) = live.get_mut(&fence) {
                            live.until = asked_at + live.lease;
                            live.due = asked_at + live.lease / RENEW_AT;
                        }
                    } else if let Some(lost) = live.remove(&fence) {
                        let key = lost.name.key.log_hash();
                        tracing::warn!(operation = lost.name.operation, key, %fence, "a claim was lost while its handler runs");
                    }
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = error.in_full(),
                    claims = claims.len(),
                    "leases could not be renewed; trying again"
                );
                let again = self.now() + RENEW_AGAIN_AFTER;
                for (fence, _) in claims {
                    if let Some(live) = live.get_mut(&fence) {
                        live.due = again;
                    }
                }
            }
        }
    }
}

/// Renews until the last keeper of the store is gone.
async fn run(shared: Weak<Shared>, changed: Arc<Notify>) {
    while let Some(keeper) = shared.upgrade() {
        let wait = keeper.run_once().await;
        // Not held while waiting, or it would never be gone.
        drop(keeper);
        match wait {
            // A new claim may be due sooner.
            Some(wait) => drop(tokio::time::timeout(wait, changed.notified()).await),
            None => changed.notified().await,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}
