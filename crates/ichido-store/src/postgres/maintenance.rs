//! Maintenance on PostgreSQL: each call does a bounded amount of work and returns how much.

use ichido_core::audit::AuditKey;
use ichido_core::time::Timestamp;
use sqlx::{Connection as _, Row as _};
use uuid::Uuid;

use super::Postgres;
use crate::audit::trail::note_forgotten;
use crate::columns::{Columns as _, Row};
use crate::error::StoreError;
use crate::message::QueueName;
use crate::statement::{SqlValue, Statement, paired, postgres_only};

impl Postgres {
    /// Returns the time.
    pub(crate) async fn clock(&self) -> Result<Timestamp, StoreError> {
        let values = [self.skew().into()];
        let row = self.read_with(&values, async |mut it| it.one(paired!("now"), &values).await).await?;
        Ok(row.timestamp("now")?)
    }

    /// Makes due messages claimable. Returns how many per queue.
    pub(crate) async fn promote(&self, limit: u32) -> Result<Vec<(QueueName, u64)>, StoreError> {
        let rows = self
            .calls
            .all(sqlx::query(include_str!("sql/promote.sql")).bind(i64::from(limit)).bind(self.skew()))
            .await?;
        let mut promoted = Vec::new();
        for row in &rows {
            if let Some(queue) = QueueName::parse(row.try_get("queue")?) {
                self.note_requeued(&queue);
                promoted.push((queue, row.try_get::<i64, _>("count")?.unsigned_abs()));
            }
        }
        Ok(promoted)
    }

    /// Deletes the messages that a statement finds. If their entries were sealed, notes why they are missing.
    pub(crate) async fn forget(
        &self,
        key: Option<&AuditKey>,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<u64, StoreError> {
        self.calls
            .with_connection(async |connection| {
                let mut transaction = connection.begin().await?;
                let mut connection = self.connection(&mut transaction);
                // Otherwise an entry could be sealed unnoticed, and would be reported as missing forever.
                connection.execute(postgres_only!("seal_lock"), &[]).await?;
                let row = connection.one(statement, values).await?;
                let (ids, entries) = match &row {
                    Row::Postgres(row) => (row.try_get("message_ids")?, row.try_get("entries")?),
                    Row::Sqlite(_) => (Vec::<Uuid>::new(), Vec::<i32>::new()),
                };
                let sealed: Vec<(Uuid, i32)> = ids.into_iter().zip(entries).collect();
                note_forgotten(&mut connection, key, row.timestamp("now")?, &sealed).await?;
                transaction.commit().await?;
                Ok(row.number("gone")?.unsigned_abs())
            })
            .await
    }
}
