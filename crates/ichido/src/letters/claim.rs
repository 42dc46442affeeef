//! The hold of a bulk on the letters of its queue, by a lease.
//!
//! Two bulks over the same letters would each count what the other took; so there is one at a time for a queue, and one for all queues
//! is alone. A bulk whose process was killed says nothing any more: its lease lapses, by which it is known, and the next one goes on.
//!
//! Letters that are named by their ids need no hold: each is one step, refused where it does not fit.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
use ichido_store::node::{Duty, LettersKept};
use uuid::Uuid;

use super::bulk::limits::{BUSY_TRIES, LEASE};
use crate::clock::Clock;
use crate::destination::Cancel;
use crate::lease::{self, Lease, Leases, Renew};

/// The bulks that are heard of, as of one look.
#[derive(Clone, Debug)]
pub struct Living {
    /// From before the look, so that no bulk seems to be older than it is.
    as_of: Timestamp,
    kept: Vec<LettersKept>,
}

impl Living {
    /// Looks. What the trail says of a bulk is to be read after this: a bulk says how it ended, and only then lets go.
    pub async fn look(store: &Store) -> Result<Self, StoreError> {
        let as_of = store.now().await?;
        Ok(Self { as_of, kept: store.nodes().letter_keepers().await? })
    }

    /// Whether a bulk that has not said how it ended never will: its process is gone.
    pub fn is_abandoned(&self, operation: Uuid, begun_at: Timestamp) -> bool {
        // One that began after the look could not be seen by it, and none lapses before its first lease.
        begun_at.plus(LEASE) <= self.as_of && !self.kept.iter().any(|kept| kept.by == operation)
    }
}

/// The letters of a queue, or of all, held by one bulk.
#[derive(Clone)]
pub(super) struct BulkClaim {
    store: Store,
    queue: Option<QueueName>,
    operation: Uuid,
    /// Another took hold, because this one was not heard of for too long.
    lost: Cancel,
}

impl BulkClaim {
    /// Takes hold, or says which bulk has.
    pub(super) async fn take(
        store: &Store,
        queue: Option<&QueueName>,
        operation: Uuid,
    ) -> Result<Result<Self, Uuid>, StoreError> {
        let claim = Self { store: store.clone(), queue: queue.cloned(), operation, lost: Cancel::new() };
        for _ in 0..BUSY_TRIES {
            // First taken and then looked around, so that of two that overlap at least one sees the other.
            let is_taken = claim.claim_lease().await?;
            match (is_taken, claim.other().await?) {
                (true, None) => return Ok(Ok(claim)),
                (true, Some(other)) => {
                    store.nodes().release_duties(operation).await?;
                    return Ok(Err(other));
                }
                (false, Some(other)) => return Ok(Err(other)),
                // Whoever had it has just let go.
                (false, None) => (),
            }
        }
        Err(StoreError::Busy)
    }

    /// A lease, and what renews it until it is dropped. Both go to their ends before the release: a renewal that is cut off could still
    /// come after it.
    pub(super) fn renewed(&self) -> (Lease<Self>, impl Future<Output = ()> + use<>) {
        // A clock of its own says when to renew; whether the letters are held is said by the store's.
        let clock = Arc::new(Clock::alone());
        let leases = Leases::new(self.clone(), Arc::clone(&clock));
        // It was taken a moment ago, which the third of a lease after which it is renewed allows for.
        let lease = leases.hold((), LEASE, clock.own());
        (lease, lease::run(Arc::downgrade(&leases)))
    }

    /// Whether it was not heard of for so long that another took hold.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Lets go. Should that fail, the lease lapses by itself.
    pub(super) async fn release(self) {
        if let Err(error) = self.store.nodes().release_duties(self.operation).await {
            tracing::warn!(%error, operation = %self.operation, "a bulk that has ended could not let go of its letters");
        }
    }

    async fn claim_lease(&self) -> Result<bool, StoreError> {
        self.store.nodes().claim_duty(Duty::Letters(self.queue.as_ref()), self.operation, LEASE).await
    }

    async fn other(&self) -> Result<Option<Uuid>, StoreError> {
        let kept = self.store.nodes().letter_keepers().await?;
        let other = kept.iter().find(|kept| kept.by != self.operation && kept.overlaps(self.queue.as_ref()));
        Ok(other.map(|kept| kept.by))
    }
}

impl Renew for BulkClaim {
    type Subject = ();

    /// Another that came while this one was silent keeps what it has.
    async fn renew(&self, subjects: &[()], _: Duration) -> Result<Vec<bool>, StoreError> {
        let is_ours = self.other().await?.is_none() && self.claim_lease().await?;
        Ok(vec![is_ours; subjects.len()])
    }

    fn lost(&self, (): &()) {
        self.lost.cancel();
    }
}
