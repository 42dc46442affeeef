//! The hold of a bulk on the letters of its queue, by a lease.
//!
//! Two bulks over the same letters would each count what the other took; so there is one at a time for a queue, and one for all queues
//! is alone. A bulk whose process was killed says nothing any more: its lease lapses, by which it is known, and the next one goes on.
//!
//! Letters that are named by their ids need no hold: each is one step, refused where it does not fit.

use std::sync::atomic::{AtomicBool, Ordering};

use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
use ichido_store::node::{Duty, LettersKept};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use uuid::Uuid;

use super::bulk::limits::{BEAT_EVERY, BUSY_TRIES, LEASE};

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
pub(super) struct Hold<'a> {
    store: &'a Store,
    queue: Option<&'a QueueName>,
    operation: Uuid,
    is_lost: AtomicBool,
}

impl<'a> Hold<'a> {
    /// Takes hold, or says which bulk has.
    pub(super) async fn take(
        store: &'a Store,
        queue: Option<&'a QueueName>,
        operation: Uuid,
    ) -> Result<Result<Self, Uuid>, StoreError> {
        let hold = Self { store, queue, operation, is_lost: AtomicBool::new(false) };
        for _ in 0..BUSY_TRIES {
            // First taken and then looked around, so that of two that overlap at least one sees the other.
            let is_taken = hold.lease().await?;
            match (is_taken, hold.other().await?) {
                (true, None) => return Ok(Ok(hold)),
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

    /// Keeps it until all is over.
    pub(super) async fn keep(&self, over: &Notify) {
        let mut beat = interval_at(Instant::now() + BEAT_EVERY, BEAT_EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = beat.tick() => match self.renew().await {
                    Ok(is_ours) => self.is_lost.store(!is_ours, Ordering::SeqCst),
                    // The next one may come in time.
                    Err(error) => tracing::warn!(%error, operation = %self.operation, "a bulk could not say that it runs"),
                },
                () = over.notified() => return,
            }
        }
    }

    /// Whether it was not heard of for so long that another took hold.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Lets go. Should that fail, the lease lapses by itself.
    pub(super) async fn release(self) {
        if let Err(error) = self.store.nodes().release_duties(self.operation).await {
            tracing::warn!(%error, operation = %self.operation, "a bulk that has ended could not let go of its letters");
        }
    }

    /// Who came while it was silent keeps what it has.
    async fn renew(&self) -> Result<bool, StoreError> {
        Ok(self.other().await?.is_none() && self.lease().await?)
    }

    async fn lease(&self) -> Result<bool, StoreError> {
        self.store.nodes().claim_duty(Duty::Letters(self.queue), self.operation, LEASE).await
    }

    async fn other(&self) -> Result<Option<Uuid>, StoreError> {
        let kept = self.store.nodes().letter_keepers().await?;
        let other = kept.iter().find(|kept| kept.by != self.operation && kept.overlaps(self.queue));
        Ok(other.map(|kept| kept.by))
    }
}
