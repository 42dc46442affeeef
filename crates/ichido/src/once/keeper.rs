//! Keeps a store's live claims: renews all their leases together while their handlers run.
//!
//! It also runs the ledger's maintenance, until the last clone of the keeper and of its layers is dropped, and counts requests in flight, because a stopping process must wait for work that is detached from its connection.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::RecordName;
use ichido_core::sync::lock;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::waiters::Waiters;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::maintenance::{self, OperationNames};
use super::settings::limits;
use crate::clock::Clock;
use crate::lease::{self, Lease, Leases, Renew};

/// Keeps the claims of one store alive while their handlers run, and maintains its ledger: deletes expired keys, and
/// reports keys of unknown outcome.
///
/// Cheap to clone; all clones share one keeper. Use one keeper for all operations of a store.
#[derive(Clone)]
pub struct LeaseKeeper(Arc<KeeperInner>);

struct KeeperInner {
    store: Store,
    clock: Arc<Clock>,
    claims: Arc<Leases<KeyClaims>>,
    in_flight: watch::Sender<usize>,
    /// Waiting duplicates by the hash of their record's name.
    ///
    /// Ten thousand that each queried the store would block everybody else.
    duplicates: Waiters<[u8; 32]>,
    /// The requests that run here without a claim, by the hash of their record's name.
    unclaimed: Mutex<HashMap<[u8; 32], Fingerprint>>,
    operations: OperationNames,
    /// Aborted when it is dropped.
    _maintenance: JoinSet<()>,
}

/// Renews claims of keys.
pub(crate) struct KeyClaims(Store);

impl Renew for KeyClaims {
    type Subject = (RecordName, Fence);

    async fn renew(&self, subjects: &[Self::Subject], lease: Duration) -> Result<Vec<bool>, StoreError> {
        let claims: Vec<_> = subjects.iter().map(|(name, fence)| (name.clone(), *fence, lease)).collect();
        self.0.keys().renew(&claims).await
    }

    fn lost(&self, (name, fence): &Self::Subject) {
        let key = name.key.log_hash();
        tracing::warn!(operation = name.operation, key, %fence, "claim lost while its handler was running");
    }
}

impl LeaseKeeper {
    /// Creates the keeper of a store.
    ///
    /// Call it within a tokio runtime, which runs the renewals and the maintenance.
    pub fn new(store: Store) -> Self {
        let clock = Arc::new(Clock::new(store.clone()));
        let claims = Leases::new(KeyClaims(store.clone()), Arc::clone(&clock));
        tokio::spawn(lease::run(Arc::downgrade(&claims)));
        let operations = OperationNames::default();
        let mut maintenance = JoinSet::new();
        maintenance.spawn(maintenance::run(store.clone(), Arc::clone(&clock), Arc::clone(&operations)));
        Self(Arc::new(KeeperInner {
            store,
            clock,
            claims,
            in_flight: watch::Sender::new(0),
            duplicates: Waiters::default(),
            unclaimed: Mutex::default(),
            operations,
            _maintenance: maintenance,
        }))
    }

    /// Returns the store whose claims it keeps.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Waits until nothing is in flight; call it on shutdown, after the server has stopped.
    ///
    /// Wrap it in a timeout. Requests still in flight then are treated as after a crash, and their leases resolve them.
    pub async fn drained(&self) {
        let mut in_flight = self.0.in_flight.subscribe();
        // The sender lives as long as this keeper.
        drop(in_flight.wait_for(|count| *count == 0).await);
    }

    /// Returns how many requests are in flight, including those whose client disconnected.
    pub fn in_flight(&self) -> usize {
        *self.0.in_flight.borrow()
    }

    pub(crate) fn track_request(&self) -> InFlightRequest {
        self.0.in_flight.send_modify(|count| *count += 1);
        InFlightRequest(Arc::clone(&self.0))
    }

    /// Marks lapsed claims of this operation as unknown from now on.
    pub(crate) fn mark_lapsed_of(&self, operation: &str) {
        lock(&self.0.operations).insert(operation.to_owned());
    }

    /// Waits up to `at_most` for a claimed key to change.
    ///
    /// The caller then claims it again.
    pub(crate) async fn wait_for(&self, name: &RecordName, at_most: Duration) {
        let poll = self.0.store.keys().wait(name, at_most.min(limits::POLL_INTERVAL));
        self.0.duplicates.wait_in_turn(&name.hash(), at_most, poll).await;
    }

    /// Reserves a key in this process, for a request that runs without a claim. Fails with the fingerprint of the request
    /// that has it.
    pub(crate) fn reserve(
        &self,
        name: &RecordName,
        fingerprint: Fingerprint,
    ) -> Result<KeyReservation, Fingerprint> {
        let name = name.hash();
        match lock(&self.0.unclaimed).entry(name) {
            Entry::Occupied(other) => Err(*other.get()),
            Entry::Vacant(free) => {
                free.insert(fingerprint);
                Ok(KeyReservation { keeper: Arc::clone(&self.0), name })
            }
        }
    }

    /// Waits up to `at_most` for the end of the request that has reserved a key.
    pub(crate) async fn wait_for_reserved(&self, name: &RecordName, at_most: Duration) {
        let name = name.hash();
        // From here on no end is missed.
        let mut waiter = self.0.duplicates.join(&name);
        if lock(&self.0.unclaimed).contains_key(&name) {
            drop(timeout(at_most, waiter.woken()).await);
        }
    }

    /// Returns the local time.
    pub(crate) fn now(&self) -> Duration {
        self.0.clock.elapsed()
    }

    /// Keeps a claim that was requested at `asked_at`.
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

impl AsRef<Self> for LeaseKeeper {
    fn as_ref(&self) -> &Self {
        self
    }
}

ichido_core::debug_only! {
    LeaseKeeper as keeper { in_flight: keeper.in_flight() }
}

/// A key that is reserved in this process, until this is dropped.
pub(crate) struct KeyReservation {
    keeper: Arc<KeeperInner>,
    name: [u8; 32],
}

impl Drop for KeyReservation {
    fn drop(&mut self) {
        lock(&self.keeper.unclaimed).remove(&self.name);
        self.keeper.duplicates.wake(&self.name);
    }
}

/// A request in flight, until this is dropped.
pub(crate) struct InFlightRequest(Arc<KeeperInner>);

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|count| *count -= 1);
    }
}
