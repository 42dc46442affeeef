//! The claim of a bulk operation on the letters of its queue, under a lease.
//!
//! Two operations on the same letters would each count what the other took. So only one runs per queue, and one on all
//! queues runs alone. The lease of a killed operation lapses, which reveals it, and the next one continues.
//!
//! Letters named by id need no claim: each is one step, refused if it does not apply.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
use ichido_store::node::{BulkLease, SingletonTask};
use uuid::Uuid;

use super::bulk::limits::{BUSY_TRIES, LEASE};
use crate::clock::Clock;
use crate::destination::Cancel;
use crate::lease::{self, Lease, Leases, Renew};

/// The bulk operations that show signs of life, at one moment.
#[derive(Clone, Debug)]
pub struct LiveBulks {
    /// Read before the query, so no operation appears older than it is.
    as_of: Timestamp,
    holders: Vec<BulkLease>,
}

impl LiveBulks {
    /// Queries the live operations.
    ///
    /// Read the audit trail after this: an operation records how it ended before it releases its claim.
    pub async fn query(store: &Store) -> Result<Self, StoreError> {
        let as_of = store.now().await?;
        Ok(Self { as_of, holders: store.nodes().bulk_leases().await? })
    }

    /// Returns whether an operation without a recorded end is abandoned: its process is gone.
    pub fn is_abandoned(&self, operation: Uuid, started_at: Timestamp) -> bool {
        // An operation that started after the query is not in it, and none lapses before its first lease.
        started_at.plus(LEASE) <= self.as_of && !self.holders.iter().any(|holder| holder.by == operation)
    }
}

/// The claim of one operation on the letters of a queue, or of all.
#[derive(Clone)]
pub(super) struct BulkClaim {
    store: Store,
    queue: Option<QueueName>,
    operation: Uuid,
    /// Another operation took over, because this one was silent for too long.
    lost: Cancel,
}

impl BulkClaim {
    /// Takes the claim, or returns the operation that has it.
    pub(super) async fn take(
        store: &Store,
        queue: Option<&QueueName>,
        operation: Uuid,
    ) -> Result<Result<Self, Uuid>, StoreError> {
        let claim = Self { store: store.clone(), queue: queue.cloned(), operation, lost: Cancel::new() };
        for _ in 0..BUSY_TRIES {
            // Claim first, then check: of two overlapping operations at least one sees the other.
            let is_taken = claim.claim_lease().await?;
            match (is_taken, claim.other().await?) {
                (true, None) => return Ok(Ok(claim)),
                (true, Some(other)) => {
                    store.nodes().release_tasks(operation).await?;
                    return Ok(Err(other));
                }
                (false, Some(other)) => return Ok(Err(other)),
                // The previous holder has just released it.
                (false, None) => (),
            }
        }
        Err(StoreError::Busy)
    }

    /// Returns a lease and the future that renews it until it is dropped.
    ///
    /// Run both to completion before the release: an interrupted renewal could still arrive after it.
    pub(super) fn renewed(&self) -> (Lease<Self>, impl Future<Output = ()> + use<>) {
        // A local clock decides when to renew; the store's clock decides whether the claim holds.
        let clock = Arc::new(Clock::local());
        let leases = Leases::new(self.clone(), Arc::clone(&clock));
        // It was taken a moment ago; renewing after a third of the lease allows for that.
        let lease = leases.hold((), LEASE, clock.elapsed());
        (lease, lease::run(Arc::downgrade(&leases)))
    }

    /// Returns whether another operation took over after too long a silence.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Releases the claim. If that fails, the lease lapses.
    pub(super) async fn release(self) {
        if let Err(error) = self.store.nodes().release_tasks(self.operation).await {
            tracing::warn!(%error, operation = %self.operation, "failed to release a finished bulk operation's claim");
        }
    }

    async fn claim_lease(&self) -> Result<bool, StoreError> {
        self.store
            .nodes()
            .claim_task(SingletonTask::DeadLetters(self.queue.as_ref()), self.operation, LEASE)
            .await
    }

    async fn other(&self) -> Result<Option<Uuid>, StoreError> {
        let holders = self.store.nodes().bulk_leases().await?;
        let other =
            holders.iter().find(|holder| holder.by != self.operation && holder.overlaps(self.queue.as_ref()));
        Ok(other.map(|holder| holder.by))
    }
}

impl Renew for BulkClaim {
    type Subject = ();

    /// An operation that took over in the meantime keeps its claim.
    async fn renew(&self, subjects: &[()], _: Duration) -> Result<Vec<bool>, StoreError> {
        let is_ours = self.other().await?.is_none() && self.claim_lease().await?;
        Ok(vec![is_ours; subjects.len()])
    }

    fn lost(&self, (): &()) {
        self.lost.cancel();
    }
}
