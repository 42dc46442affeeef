//! The keeper of a store's live claims: their leases are renewed while their handlers run, all of them together.
//!
//! It also knows how much is under way, because work that is detached from its connection must be waited for when a process
//! stops.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::ledger::RecordName;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::waiters::Waiters;
use tokio::sync::watch;

use super::settings::limits;
use crate::clock::Clock;
use crate::lease::{self, Lease, Leases, Renew};

/// Keeps the claims of one store alive for as long as their handlers run. Cheap to clone; all clones are the same keeper, and
/// all operations of a store are best built with one.
#[derive(Clone)]
pub struct Keeper(Arc<KeeperInner>);

struct KeeperInner {
    store: Store,
    clock: Arc<Clock>,
    claims: Arc<Leases<KeyClaims>>,
    in_flight: watch::Sender<usize>,
    /// Duplicates, by the hash of their record's name: ten thousand that each asked the store would keep everybody else from it.
    duplicates: Waiters<[u8; 32]>,
}

/// Claims of keys.
pub(crate) struct KeyClaims(Store);

impl Renew for KeyClaims {
    type Subject = (RecordName, Fence);

    async fn renew(&self, subjects: &[Self::Subject], lease: Duration) -> Result<Vec<bool>, StoreError> {
        let claims: Vec<_> = subjects.iter().map(|(name, fence)| (name.clone(), *fence, lease)).collect();
        self.0.keys().renew(&claims).await
    }

    fn lost(&self, (name, fence): &Self::Subject) {
        let key = name.key.log_hash();
        tracing::warn!(operation = name.operation, key, %fence, "a claim was lost while its handler runs");
    }
}

impl Keeper {
    /// The keeper of a store. Must be called within a tokio runtime, on which it renews.
    pub fn of(store: Store) -> Self {
        let clock = Arc::new(Clock::new(store.clone()));
        let claims = Leases::new(KeyClaims(store.clone()), Arc::clone(&clock));
        tokio::spawn(lease::run(Arc::downgrade(&claims)));
        let (in_flight, duplicates) = (watch::Sender::new(0), Waiters::default());
        Self(Arc::new(KeeperInner { store, clock, claims, in_flight, duplicates }))
    }

    /// The store whose claims are kept.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Waits until nothing is under way: for a process that stops, after it has stopped to take requests. Wrap it in a time-out;
    /// what is left then is as if the process had crashed, and the leases resolve it.
    pub async fn drained(&self) {
        let mut in_flight = self.0.in_flight.subscribe();
        // The sender lives as long as this keeper.
        drop(in_flight.wait_for(|count| *count == 0).await);
    }

    /// How many requests are under way, those included whose client has gone.
    pub fn under_way(&self) -> usize {
        *self.0.in_flight.borrow()
    }

    pub(crate) fn track_request(&self) -> InFlightRequest {
        self.0.in_flight.send_modify(|count| *count += 1);
        InFlightRequest(Arc::clone(&self.0))
    }

    /// Waits for news of a claimed key, at most so long; whatever the end, it is to be claimed again.
    pub(crate) async fn wait_for(&self, name: &RecordName, at_most: Duration) {
        let look = self.0.store.keys().wait(name, at_most.min(limits::LOOK_EVERY));
        self.0.duplicates.wait_in_turn(&name.hash(), at_most, look).await;
    }

    /// Our own clock.
    pub(crate) fn now(&self) -> Duration {
        self.0.clock.own()
    }

    /// Keeps a claim that was asked for at `asked_at`.
    pub(crate) fn hold_claim(
        &self,
        name: RecordName,
        fence: Fence,
        lease: Duration,
        asked_at: Duration,
    ) -> Lease<KeyClaims> {
        self.0.claims.hold((name, fence), lease, asked_at)
    }
}

ichido_core::debug_only! {
    Keeper as keeper { under_way: keeper.under_way() }
}

/// A request that is under way, until this is dropped.
pub(crate) struct InFlightRequest(Arc<KeeperInner>);

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|count| *count -= 1);
    }
}
