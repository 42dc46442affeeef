//! Operators' steps on SQLite: read, ask the lifecycle, write, in one transaction of the single writer.

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, Why};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::{Sqlite, Writing};
use crate::columns::Row;
use crate::error::StoreError;
use crate::message::limits::LEASE_MAX;
use crate::message::{Note, QueueName, Stepped};
use crate::moves;
use crate::placement::Moves;
use crate::rescue::lapsed_ends;
use crate::statement::{Value, sqlite_only};
use crate::take::{Found, Step, add_proof, take};

impl Sqlite {
    /// Takes one message by one event, whatever table it is in; answers also which queue it can be claimed from now.
    pub(crate) async fn step(
        &self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<(Stepped, Option<QueueName>), StoreError> {
        let mut writing = self.write().await?;
        let stepped = step(&mut writing, id, event, note).await?;
        writing.commit().await?;
        Ok(stepped)
    }

    /// One lapsed lease, of these queues if any are named.
    pub(crate) async fn lapsed(
        &self,
        writing: &mut Writing,
        queues: Option<&[&str]>,
    ) -> Result<Option<Row>, StoreError> {
        let alive = self.own.alive();
        for (from, to) in lapsed_ends(writing.now, LEASE_MAX) {
            let values = [from.into(), Value::Numbers(&alive), Value::Texts(queues), to.into()];
            let lease = writing.either().optional(sqlite_only!("rescue_find"), &values).await?;
            if lease.is_some() {
                return Ok(lease);
            }
        }
        Ok(None)
    }

    /// A claim was rescued, and that is committed.
    pub(crate) fn rescued(&self, fence: Fence, _queue: &QueueName) {
        self.own.release(fence);
        self.held.forget(fence);
    }
}

impl Writing {
    /// Writes what a set of steps comes to; an event without a fence draws one.
    pub(crate) async fn apply(&mut self, moves: &mut Moves) -> Result<(), StoreError> {
        for event in &mut moves.events {
            if event.fence.is_none() {
                event.fence = Some(self.draw_one()?);
            }
        }
        moves::apply(&mut self.either(), moves).await
    }
}

/// Takes one message by one event. A step that is refused leaves everything as it was: other steps of the transaction stand.
pub(super) async fn step(
    writing: &mut Writing,
    id: Uuid,
    event: impl Fn(Timestamp) -> Event,
    note: &Note,
) -> Result<(Stepped, Option<QueueName>), StoreError> {
    sqlx::query("SAVEPOINT ichido_step").execute(writing.connection()).await?;
    let step = match take(&mut writing.either(), id).await? {
        Found::Here(taken) => {
            let event = event(taken.now);
            Some(taken.step(event, note))
        }
        Found::Nowhere => None,
        // Nothing moves under a write transaction, so this is not a moment between two tables.
        Found::Moving => {
            let detail = "a message is in no table".to_owned();
            return Err(StoreError::Corrupt { table: "messages", detail });
        }
    };
    let mut queue = None;
    let stepped = match step {
        Some(Step::Moved { mut moves, next, moving }) => {
            writing.apply(&mut moves).await?;
            queue = (!moves.ready.is_empty()).then_some(moving.queue);
            Stepped::Now(next)
        }
        Some(Step::Proof { fence, holder }) => {
            add_proof(&mut writing.either(), id, (fence, holder), note).await?;
            // The message is somebody else's, whose try goes on.
            Stepped::Refused(Why::StaleFence)
        }
        undone @ (Some(Step::Refused(_)) | None) => {
            // The rows that were taken come back.
            sqlx::query("ROLLBACK TO ichido_step").execute(writing.connection()).await?;
            if let Some(Step::Refused(why)) = undone { Stepped::Refused(why) } else { Stepped::NoSuchMessage }
        }
    };
    sqlx::query("RELEASE ichido_step").execute(writing.connection()).await?;
    Ok((stepped, queue))
}
