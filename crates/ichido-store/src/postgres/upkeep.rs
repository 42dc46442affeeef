//! Upkeep, on PostgreSQL: each call does a bounded amount and says how much.

use std::time::Duration;

use ichido_core::audit::AuditKey;
use ichido_core::time::Timestamp;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Connection as _, Row as _};
use uuid::Uuid;

use super::Postgres;
use super::moment::Moment;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::held::lock;
use crate::message::limits::LEASE_MAX;
use crate::message::{LetterState, QueueName};
use crate::micros;
use crate::node::{DUTY_LEASE_MAX, LettersKept, Node, QueuePause, SharedPace};
use crate::rescue::{UNSERVED_MAX, Unserved};
use crate::rows::{last_id, letters_kept, node, pause, unserved};

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
                // What comes back is older than the mark.
                lock(&self.marks).remove(&queue);
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

    /// How far retention has come, of all nodes.
    pub(crate) async fn retention_reached(&self) -> Result<Option<Timestamp>, StoreError> {
        let row = self.calls.optional(sqlx::query(include_str!("sql/retention_reached.sql"))).await?;
        Ok(row.map(|row| row.moment("reached")).transpose()?)
    }

    /// Writes down how far retention has come.
    pub(crate) async fn retention_reach(&self, reached: Timestamp) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/retention_reach.sql")).bind(Moment(reached));
        self.calls.execute(query).await?;
        Ok(())
    }

    /// Forgets contents whose window was over at a moment.
    pub(crate) async fn sweep_contents(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let query =
            sqlx::query(include_str!("sql/content_sweep.sql")).bind(i64::from(limit)).bind(Moment(now));
        let row = self.calls.one(query).await?;
        Ok(row.try_get::<i64, _>(0)?.unsigned_abs())
    }

    /// When the oldest message that could be claimed now was put in.
    pub(crate) async fn oldest(&self, queue: &QueueName) -> Result<Option<Timestamp>, StoreError> {
        let row =
            self.calls.one(sqlx::query(include_str!("sql/queue_oldest.sql")).bind(queue.as_str())).await?;
        Ok(row.moment_or_none("oldest")?)
    }

    /// Since when the open letter of a queue that waits longest is one.
    pub(crate) async fn oldest_letter(
        &self,
        state: LetterState,
        queue: &QueueName,
    ) -> Result<Option<Timestamp>, StoreError> {
        let query = sqlx::query(include_str!("sql/letter_oldest.sql"));
        let row = self.calls.one(query.bind(state.as_str()).bind(queue.as_str())).await?;
        Ok(row.moment_or_none("oldest")?)
    }

    /// Claims of other queues than these that lapsed so long ago, and that nobody has rescued.
    pub(crate) async fn lapsed_elsewhere(
        &self,
        queues: &[QueueName],
        ago: Duration,
    ) -> Result<Vec<Unserved>, StoreError> {
        let query = sqlx::query(include_str!("sql/lapsed_elsewhere.sql"))
            .bind(queues.iter().map(QueueName::as_str).collect::<Vec<_>>())
            .bind(micros(ago))
            .bind(self.skew())
            .bind(UNSERVED_MAX)
            .bind(micros(LEASE_MAX));
        self.calls.all(query).await?.iter().map(unserved).collect()
    }

    pub(crate) async fn pace_read(&self, destination: &str) -> Result<Option<SharedPace>, StoreError> {
        let row =
            self.calls.optional(sqlx::query(include_str!("sql/pace_read.sql")).bind(destination)).await?;
        row.map(|row| Ok(SharedPace { version: row.try_get("version")?, bytes: row.try_get("pace")? }))
            .transpose()
    }

    /// Writes a pace over the version that was read (0 for none); `false` when somebody else was quicker.
    pub(crate) async fn pace_write(
        &self,
        destination: &str,
        version: i64,
        pace: &[u8],
    ) -> Result<bool, StoreError> {
        let row = self
            .calls
            .optional(
                sqlx::query(include_str!("sql/pace_write.sql")).bind(destination).bind(version).bind(pace),
            )
            .await?;
        Ok(row.is_some())
    }

    pub(crate) async fn beat(&self, node: Uuid, name: &str) -> Result<(), StoreError> {
        self.calls
            .execute(sqlx::query(include_str!("sql/node_beat.sql")).bind(node).bind(name).bind(self.skew()))
            .await?;
        Ok(())
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        let rows = self.calls.all(sqlx::query(include_str!("sql/node_list.sql"))).await?;
        rows.iter().map(node).collect()
    }

    pub(crate) async fn pauses(&self) -> Result<Vec<QueuePause>, StoreError> {
        let rows = self.calls.all(sqlx::query(include_str!("sql/queue_list.sql"))).await?;
        rows.iter().map(pause).collect()
    }

    /// The kind of key that a queue's calls go out by.
    pub(crate) async fn queue_keys(&self, queue: &QueueName, kind: &str) -> Result<String, StoreError> {
        let query = sqlx::query(include_str!("sql/queue_keys.sql")).bind(queue.as_str()).bind(kind);
        Ok(self.calls.one(query).await?.try_get("kind")?)
    }

    /// Leaves the duties of a node to the next one.
    pub(crate) async fn leave_care(&self, node: Uuid) -> Result<(), StoreError> {
        self.calls.execute(sqlx::query(include_str!("sql/caretaker_release.sql")).bind(node)).await?;
        Ok(())
    }

    /// Which bulks move letters.
    pub(crate) async fn letters_kept(&self) -> Result<Vec<LettersKept>, StoreError> {
        let query =
            sqlx::query(include_str!("sql/letters_kept.sql")).bind(self.skew()).bind(micros(DUTY_LEASE_MAX));
        self.calls.all(query).await?.iter().map(letters_kept).collect()
    }

    /// Whether this node has the duty until its lease lapses.
    pub(crate) async fn take_care(
        &self,
        duty: &str,
        node: Uuid,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        let row = self
            .calls
            .optional(
                sqlx::query(include_str!("sql/caretaker_claim.sql"))
                    .bind(duty)
                    .bind(node)
                    .bind(micros(lease))
                    .bind(self.skew())
                    .bind(micros(DUTY_LEASE_MAX)),
            )
            .await?;
        Ok(row.is_some())
    }
}
