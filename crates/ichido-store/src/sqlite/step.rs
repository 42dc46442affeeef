//! Operators' steps on SQLite: read, ask the lifecycle, write, in one transaction of the single writer.

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, StepRefusal};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::{Sqlite, WriteTransaction};
use crate::columns::Row;
use crate::error::StoreError;
use crate::message::limits::MAX_LEASE;
use crate::message::{Note, QueueName, StepResult};
use crate::placement::RowChanges;
use crate::rescue::lapsed_ends;
use crate::row_changes;
use crate::statement::{SqlValue, sqlite_only};
use crate::take::{StepOutcome, TakeOutcome, add_proof, take};

impl Sqlite {
    /// Applies an event to one message, whatever table it is in. Also returns the queue from which it can be claimed now.
    pub(crate) async fn step(
        &self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<(StepResult, Option<QueueName>), StoreError> {
        let mut tx = self.write().await?;
        let stepped = step(&mut tx, id, event, note).await?;
        tx.commit().await?;
        Ok(stepped)
    }

    /// Finds one lapsed lease, of these queues if any are given.
    pub(crate) async fn lapsed(
        &self,
        tx: &mut WriteTransaction,
        queues: Option<&[&str]>,
    ) -> Result<Option<Row>, StoreError> {
        let alive = self.own_claims.valid_claims();
        for (from, to) in lapsed_ends(tx.now, MAX_LEASE) {
            let values = [from.into(), SqlValue::Numbers(&alive), SqlValue::Texts(queues), to.into()];
            let lease = tx.db_connection().optional(sqlite_only!("rescue_find"), &values).await?;
            if lease.is_some() {
                return Ok(lease);
            }
        }
        Ok(None)
    }

    /// Stops tracking a claim that was rescued or finished, after the commit.
    pub(crate) fn claim_ended(&self, fence: Fence) {
        self.own_claims.release(fence);
        self.claim_tracker.forget(fence);
    }
}

impl WriteTransaction {
    /// Writes the rows of a set of steps. An event without a fence gets one.
    pub(crate) async fn apply(&mut self, changes: &mut RowChanges) -> Result<(), StoreError> {
        for event in &mut changes.events {
            if event.fence.is_none() {
                event.fence = Some(self.draw_one()?);
            }
        }
        row_changes::apply(&mut self.db_connection(), changes).await
    }
}

/// Applies an event to one message. A refused step changes nothing: other steps of the transaction stay.
pub(super) async fn step(
    tx: &mut WriteTransaction,
    id: Uuid,
    event: impl Fn(Timestamp) -> Event,
    note: &Note,
) -> Result<(StepResult, Option<QueueName>), StoreError> {
    sqlx::query("SAVEPOINT ichido_step").execute(tx.connection()).await?;
    let step = match take(&mut tx.db_connection(), id).await? {
        TakeOutcome::Here(taken) => {
            let event = event(taken.now);
            Some(taken.step(event, note))
        }
        TakeOutcome::Missing => None,
        // Nothing moves during a write transaction, so the message is not between two tables.
        TakeOutcome::Moving => {
            let detail = "a message is in no table".to_owned();
            return Err(StoreError::Corrupt { table: "messages", detail });
        }
    };
    let mut queue = None;
    let stepped = match step {
        Some(StepOutcome::Moved { mut changes, next, moving }) => {
            tx.apply(&mut changes).await?;
            queue = (!changes.ready.is_empty()).then_some(moving.queue);
            StepResult::Now(next)
        }
        Some(StepOutcome::Proof { fence, holder }) => {
            add_proof(&mut tx.db_connection(), id, (fence, holder), note).await?;
            // Somebody else holds the message, and their attempt continues.
            StepResult::Refused(StepRefusal::StaleFence)
        }
        undone @ (Some(StepOutcome::Refused(_)) | None) => {
            // This restores the rows that were taken.
            sqlx::query("ROLLBACK TO ichido_step").execute(tx.connection()).await?;
            if let Some(StepOutcome::Refused(why)) = undone {
                StepResult::Refused(why)
            } else {
                StepResult::NoSuchMessage
            }
        }
    };
    sqlx::query("RELEASE ichido_step").execute(tx.connection()).await?;
    Ok((stepped, queue))
}
