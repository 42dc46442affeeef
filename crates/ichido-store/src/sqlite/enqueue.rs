//! Enqueuing on SQLite: by the store, or inside the caller's own transaction.

use ichido_core::clock::Now;
use ichido_core::time::Timestamp;
use sqlx::sqlite::SqliteConnection;

use super::{Sqlite, WriteTransaction, values, without_clock};
use crate::columns::Columns as _;
use crate::duplicate::{find_duplicate, find_first};
use crate::error::StoreError;
use crate::message::{EnqueueOutcome, Enqueued, NumberedMessage, compare_with_first};
use crate::statement::{DbConnection, paired};

impl Sqlite {
    /// Enqueues a message in its own transaction, unless equal content was enqueued within the window.
    // SPEC A7.
    pub(crate) async fn enqueue_same_content(
        &self,
        message: NumberedMessage,
    ) -> Result<EnqueueOutcome, StoreError> {
        let mut tx = self.write().await?;
        let now = self.skew.now(tx.now);
        let enqueued = enqueue_content(tx.connection(), &message, now).await?;
        if matches!(enqueued, Ok(Enqueued::New { .. })) {
            tx.commit().await?;
        } else {
            self.files.check()?;
        }
        Ok(enqueued)
    }

    /// Enqueues messages on the caller's connection, in its open transaction.
    // SPEC D4.
    pub(crate) async fn enqueue_in(
        &self,
        connection: &mut SqliteConnection,
        messages: &[NumberedMessage],
    ) -> Result<Vec<EnqueueOutcome>, StoreError> {
        self.files.check()?;
        let now = self.now(connection).await?;
        let messages: Vec<&NumberedMessage> = messages.iter().collect();
        enqueue_at(connection, &messages, now).await
    }

    /// Enqueues one message that is compared by content.
    pub(crate) async fn enqueue_content(
        &self,
        connection: &mut SqliteConnection,
        message: &NumberedMessage,
    ) -> Result<EnqueueOutcome, StoreError> {
        self.files.check()?;
        let now = self.skew.now(self.now(connection).await?);
        enqueue_content(connection, message, now).await
    }

    pub(super) async fn now(&self, connection: &mut SqliteConnection) -> Result<Timestamp, StoreError> {
        let row = without_clock(connection).one(paired!("now"), &[self.skew().into()]).await?;
        Ok(row.timestamp("now")?)
    }
}

async fn enqueue_content(
    connection: &mut SqliteConnection,
    message: &NumberedMessage,
    now: Now,
) -> Result<EnqueueOutcome, StoreError> {
    let mut db_connection = DbConnection::Sqlite(&mut *connection, now.wall);
    if let Some(known) = find_duplicate(&mut db_connection, message, now.retention).await? {
        return Ok(known);
    }
    let enqueued = enqueue_at(connection, &[message], now.wall).await?;
    enqueued.into_iter().next().ok_or(StoreError::Busy)
}

impl WriteTransaction {
    pub(crate) async fn enqueue(&mut self, messages: &[NumberedMessage]) -> Result<(), StoreError> {
        let (now, messages) = (self.now, messages.iter().collect::<Vec<_>>());
        enqueue_at(self.connection(), &messages, now).await.map(drop)
    }
}

/// Enqueues messages, and finds those whose key was used before. No retries: in a write transaction nothing is swept in
/// between.
pub(super) async fn enqueue_at(
    connection: &mut SqliteConnection,
    messages: &[&NumberedMessage],
    now: Timestamp,
) -> Result<Vec<EnqueueOutcome>, StoreError> {
    if insert(connection, messages, now).await? == messages.len() {
        return Ok(messages.iter().map(|(id, _)| Ok(Enqueued::New { id: *id })).collect());
    }
    // This also finds the messages that were just inserted; their ids identify them.
    let found = find_first(&mut without_clock(connection), messages).await?;
    let first = |position| found.get(&position).ok_or(StoreError::Busy);
    messages
        .iter()
        .enumerate()
        .map(|(position, message)| Ok(compare_with_first(message, first(position)?)))
        .collect()
}

/// Inserts the messages whose key is new. Returns how many.
async fn insert(
    connection: &mut SqliteConnection,
    messages: &[&NumberedMessage],
    now: Timestamp,
) -> Result<usize, StoreError> {
    let mut inserted = 0;
    for part in values::parts(messages) {
        let mut query = sqlx::query(values::repeated(include_str!("sql/enqueue.sql"), part.len()));
        for (id, new) in part {
            query = query
                .bind(id)
                .bind(new.queue.as_str())
                .bind(&new.identity)
                .bind(new.key.as_str())
                .bind(new.request.digest().as_bytes().as_slice())
                .bind(new.request.content_type())
                .bind(new.request.bytes())
                .bind(new.trace.as_deref())
                .bind(new.priority)
                .bind(new.max_attempts.get())
                .bind(new.due_from(now).map(Timestamp::as_micros))
                .bind(new.replacement_of)
                .bind(now.as_micros())
                .bind(new.hops.as_deref())
                .bind(new.trace_id.as_deref())
                .bind(new.item.as_deref());
        }
        inserted += query.execute(&mut *connection).await?.rows_affected();
    }
    Ok(usize::try_from(inserted).unwrap_or(usize::MAX))
}
