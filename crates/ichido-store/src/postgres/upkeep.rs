//! Upkeep, on PostgreSQL: each call does a bounded amount and says how much.

use ichido_core::audit::AuditKey;
use ichido_core::time::Timestamp;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Connection as _, Row as _};
use uuid::Uuid;

use super::Postgres;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::message::QueueName;
use crate::moment::Moment;
use crate::rows::last_id;

impl Postgres {
    /// What time it is.
    pub(crate) async fn clock(&self) -> Result<Timestamp, StoreError> {
        let row = self.calls.one(sqlx::query(include_str!("sql/now.sql")).bind(self.skew())).await?;
        Ok(row.moment("now")?)
    }

    /// Makes what has come due claimable; answers which queues got something.
    pub(crate) async fn promote(&self, limit: u32) -> Result<Vec<(QueueName, u64)>, StoreError> {
        let rows = self
            .calls
            .all(sqlx::query(include_str!("sql/promote.sql")).bind(i64::from(limit)).bind(self.skew()))
            .await?;
        let mut promoted = Vec::new();
        for row in &rows {
            if let Some(queue) = QueueName::parse(row.try_get("queue")?) {
                self.came_back(&queue);
                promoted.push((queue, row.try_get::<i64, _>("count")?.unsigned_abs()));
            }
        }
        Ok(promoted)
    }

    pub(crate) async fn fold_counts(&self, limit: u32) -> Result<u64, StoreError> {
        let row =
            self.calls.one(sqlx::query(include_str!("sql/count_fold.sql")).bind(i64::from(limit))).await?;
        Ok(row.try_get::<i64, _>(0)?.unsigned_abs())
    }

    /// Forgets messages that were finished before a moment; where their entries were sealed, it notes why they are missing.
    pub(crate) async fn forget(
        &self,
        key: Option<&AuditKey>,
        finished_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let query = sqlx::query(include_str!("sql/retention.sql"))
            .bind(last_id(finished_before))
            .bind(Moment(finished_before))
            .bind(i64::from(limit))
            .bind(self.skew());
        self.forget_by(key, query).await
    }

    /// Forgets what is over of an identity in a queue, in the same way.
    pub(crate) async fn forget_of(
        &self,
        key: Option<&AuditKey>,
        (queue, identity): (&QueueName, &str),
        limit: u32,
    ) -> Result<u64, StoreError> {
        let query = sqlx::query(include_str!("sql/forget_of.sql"))
            .bind(queue.as_str())
            .bind(identity)
            .bind(i64::from(limit))
            .bind(self.skew());
        self.forget_by(key, query).await
    }

    async fn forget_by(
        &self,
        key: Option<&AuditKey>,
        query: Query<'_, sqlx::Postgres, PgArguments>,
    ) -> Result<u64, StoreError> {
        self.calls
            .talk(async |connection| {
                let mut transaction = connection.begin().await?;
                // Or an entry could be sealed that this has not seen sealed, and be missed for ever.
                sqlx::query(include_str!("sql/seal_lock.sql")).execute(&mut *transaction).await?;
                let row = query.fetch_one(&mut *transaction).await?;
                let (ids, entries): (Vec<Uuid>, Vec<i32>) =
                    (row.try_get("message_ids")?, row.try_get("entries")?);
                if !ids.is_empty() {
                    let sealed: Vec<(Uuid, i32)> = ids.into_iter().zip(entries).collect();
                    Self::note_forgotten(&mut transaction, key, row.moment("now")?, &sealed).await?;
                }
                transaction.commit().await?;
                Ok(row.try_get::<i64, _>("gone")?.unsigned_abs())
            })
            .await
    }
}
