//! Operators' steps on PostgreSQL: lock, ask the lifecycle, write.

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, StepRefusal};
use ichido_core::time::Timestamp;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::Postgres;
use crate::columns::{Row, number};
use crate::error::StoreError;
use crate::message::limits::MAX_LEASE;
use crate::message::{Note, QueueName, StepResult};
use crate::micros;
use crate::row_changes::apply;
use crate::statement::{SqlValue, postgres_only};
use crate::take::{StepOutcome, TakeOutcome, add_proof, take};

/// How often to look for a message that is moving from one table to another.
const MAX_ROUNDS: usize = 3;

impl Postgres {
    /// Applies an event to one message, whatever table it is in. Also returns the queue from which it can be claimed now.
    pub(crate) async fn step(
        &self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<(StepResult, Option<QueueName>), StoreError> {
        self.calls.with_connection(async |connection| self.step_over(connection, id, event, note).await).await
    }

    /// Does the same over a connection without a transaction.
    pub(super) async fn step_over(
        &self,
        connection: &mut PgConnection,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<(StepResult, Option<QueueName>), StoreError> {
        for _ in 0..MAX_ROUNDS {
            let mut transaction = connection.begin().await?;
            let taken = match take(&mut self.connection(&mut transaction), id).await? {
                TakeOutcome::Here(taken) => taken,
                TakeOutcome::Moving => {
                    transaction.rollback().await?;
                    continue;
                }
                TakeOutcome::Missing => return Ok((StepResult::NoSuchMessage, None)),
            };
            let event = event(taken.now);
            match taken.step(event, note) {
                StepOutcome::Refused(why) => {
                    // Awaited, not left to the drop: until the rollback a claim would skip the row.
                    transaction.rollback().await?;
                    return Ok((StepResult::Refused(why), None));
                }
                StepOutcome::Proof { fence, holder } => {
                    if self.keep_proof(&mut transaction, id, (fence, holder), note).await? {
                        transaction.commit().await?;
                        // Somebody else holds the message, and their attempt continues.
                        return Ok((StepResult::Refused(StepRefusal::StaleFence), None));
                    }
                    transaction.rollback().await?;
                }
                StepOutcome::Moved { changes, next, moving } => {
                    apply(&mut self.connection(&mut transaction), &changes).await?;
                    transaction.commit().await?;
                    self.note_requeued(&moving.queue);
                    return Ok((StepResult::Now(next), (!changes.ready.is_empty()).then_some(moving.queue)));
                }
            }
        }
        Err(StoreError::Busy)
    }

    /// Stores a late success of a message that somebody else holds. Returns `false` if their attempt has ended meanwhile.
    async fn keep_proof(
        &self,
        connection: &mut PgConnection,
        id: Uuid,
        (fence, holder): (Fence, Fence),
        note: &Note,
    ) -> Result<bool, StoreError> {
        let mut connection = self.connection(connection);
        // In its own statement, so the next one sees every end before it.
        let lease = connection.optional(postgres_only!("lease_lock"), &[number(holder).into()]).await?;
        Ok(lease.is_some() && add_proof(&mut connection, id, (fence, holder), note).await?)
    }

    /// Locks one lapsed lease, of these queues if any are given.
    pub(crate) async fn lapsed(
        &self,
        connection: &mut PgConnection,
        queues: Option<&[&str]>,
    ) -> Result<Option<Row>, StoreError> {
        for ends_too_late in [false, true] {
            let values =
                [SqlValue::Now, SqlValue::Texts(queues), ends_too_late.into(), micros(MAX_LEASE).into()];
            let lease = self.connection(connection).optional(postgres_only!("rescue_lock"), &values).await?;
            if lease.is_some() {
                return Ok(lease);
            }
        }
        Ok(None)
    }

    /// Stops tracking a claim that was rescued or finished, after the commit.
    pub(crate) fn claim_ended(&self, fence: Fence) {
        self.claim_tracker.forget(fence);
    }
}
