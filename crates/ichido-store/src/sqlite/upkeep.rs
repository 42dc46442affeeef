//! Upkeep, on SQLite: each call does a bounded amount and says how much.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::audit::AuditKey;
use ichido_core::time::Timestamp;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::audit::note_forgotten;
use super::json;
use super::step::count_add;
use super::{Sqlite, Writing};
use crate::columns::Columns;
use crate::error::StoreError;
use crate::message::limits::LEASE_MAX;
use crate::message::{LetterState, QueueName};
use crate::micros;
use crate::node::{DUTY_LEASE_MAX, LettersKept, Node, QueuePause, SharedPace};
use crate::rescue::{UNSERVED_MAX, Unserved};
use crate::rows::{last_id, letters_kept, node, pause, queue_name, unserved};

impl Sqlite {
    /// What time it is.
    pub(crate) async fn clock(&self) -> Result<Timestamp, StoreError> {
        let mut reader = self.pool().acquire().await?;
        self.now(&mut reader).await
    }

    /// Makes what has come due claimable; answers which queues got something.
    pub(crate) async fn promote(&self, limit: u32) -> Result<Vec<(QueueName, u64)>, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now.as_micros();
        let rows = sqlx::query(include_str!("sql/promote_find.sql"))
            .bind(now)
            .bind(i64::from(limit))
            .fetch_all(writing.connection())
            .await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut ids = Vec::with_capacity(rows.len());
        let mut promoted: BTreeMap<QueueName, u64> = BTreeMap::new();
        let mut failed: BTreeMap<&str, i64> = BTreeMap::new();
        for row in &rows {
            ids.push(json::id(row.uuid("message_id")?));
            *promoted.entry(queue_name(row.text("queue")?)?).or_default() += 1;
            if row.text("state")? == "failed" {
                *failed.entry(row.text("queue")?).or_default() += 1;
            }
        }
        let ids = json::text(ids);
        writing.run(include_str!("sql/promote_ready.sql"), ids.clone()).await?;
        if !failed.is_empty() {
            let told = failed.values().sum::<i64>();
            let before = writing.draw(usize::try_from(told).unwrap_or(usize::MAX));
            sqlx::query(include_str!("sql/promote_told.sql"))
                .bind(&ids)
                .bind(before)
                .bind(now)
                .execute(writing.connection())
                .await?;
        }
        writing.run(include_str!("sql/promote_done.sql"), ids).await?;
        let deltas =
            failed.iter().flat_map(|(queue, count)| [(*queue, "failed", -count), (*queue, "queued", *count)]);
        count_add(&mut writing, deltas).await?;
        writing.commit().await?;
        Ok(promoted.into_iter().collect())
    }

    /// Counts are kept as they change, so there is nothing to fold.
    #[expect(clippy::unused_async, reason = "as on PostgreSQL, where there is")]
    pub(crate) async fn fold_counts(&self, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Forgets messages that were finished before a moment; where their entries were sealed, it notes why they are missing.
    pub(crate) async fn forget(
        &self,
        key: Option<&AuditKey>,
        finished_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let mut writing = self.write().await?;
        let rows = sqlx::query(include_str!("sql/retention_find.sql"))
            .bind(last_id(finished_before))
            .bind(finished_before.as_micros())
            .bind(i64::from(limit))
            .fetch_all(writing.connection())
            .await?;
        forget_these(writing, key, &rows).await
    }

    /// Forgets what is over of an identity in a queue, in the same way.
    pub(crate) async fn forget_of(
        &self,
        key: Option<&AuditKey>,
        (queue, identity): (&QueueName, &str),
        limit: u32,
    ) -> Result<u64, StoreError> {
        let mut writing = self.write().await?;
        let rows = sqlx::query(include_str!("sql/forget_find.sql"))
            .bind(queue.as_str())
            .bind(identity)
            .bind(i64::from(limit))
            .fetch_all(writing.connection())
            .await?;
        forget_these(writing, key, &rows).await
    }

    /// How far retention has come, of all processes.
    pub(crate) async fn retention_reached(&self) -> Result<Option<Timestamp>, StoreError> {
        let query = sqlx::query(include_str!("sql/retention_reached.sql"));
        let row = query.fetch_optional(self.pool()).await?;
        Ok(row.map(|row| row.moment("reached")).transpose()?)
    }

    /// Writes down how far retention has come.
    pub(crate) async fn retention_reach(&self, reached: Timestamp) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let query = sqlx::query(include_str!("sql/retention_reach.sql")).bind(reached.as_micros());
        query.execute(writing.connection()).await?;
        writing.commit().await
    }

    /// Forgets contents whose window was over at a moment.
    pub(crate) async fn sweep_contents(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut writing = self.write().await?;
        let swept = sqlx::query(include_str!("sql/content_sweep.sql"))
            .bind(now.as_micros())
            .bind(i64::from(limit))
            .execute(writing.connection())
            .await?;
        writing.commit().await?;
        Ok(swept.rows_affected())
    }

    /// When the oldest message that could be claimed now was put in.
    pub(crate) async fn oldest(&self, queue: &QueueName) -> Result<Option<Timestamp>, StoreError> {
        let row = sqlx::query(include_str!("sql/queue_oldest.sql"))
            .bind(queue.as_str())
            .fetch_one(self.pool())
            .await?;
        Ok(row.moment_or_none("oldest")?)
    }

    /// Since when the open letter of a queue that waits longest is one.
    pub(crate) async fn oldest_letter(
        &self,
        state: LetterState,
        queue: &QueueName,
    ) -> Result<Option<Timestamp>, StoreError> {
        let query = sqlx::query(include_str!("sql/letter_oldest.sql"));
        let row = query.bind(state.as_str()).bind(queue.as_str()).fetch_one(self.pool()).await?;
        Ok(row.moment_or_none("oldest")?)
    }

    /// Claims of other queues than these that lapsed so long ago, and that nobody has rescued.
    pub(crate) async fn lapsed_elsewhere(
        &self,
        queues: &[QueueName],
        ago: Duration,
    ) -> Result<Vec<Unserved>, StoreError> {
        let mut reader = self.pool().acquire().await?;
        let now = self.now(&mut reader).await?;
        let before = now.as_micros().saturating_sub(micros(ago));
        let query = sqlx::query(include_str!("sql/lapsed_elsewhere.sql"))
            .bind(json::text(queues.iter().map(QueueName::as_str)))
            .bind(before)
            .bind(UNSERVED_MAX)
            .bind(now.plus(LEASE_MAX).as_micros());
        query.fetch_all(&mut *reader).await?.iter().map(unserved).collect()
    }

    pub(crate) async fn pace_read(&self, destination: &str) -> Result<Option<SharedPace>, StoreError> {
        let row = sqlx::query(include_str!("sql/pace_read.sql"))
            .bind(destination)
            .fetch_optional(self.pool())
            .await?;
        row.map(|row| Ok(SharedPace { version: row.number("version")?, bytes: row.bytes("pace")?.to_vec() }))
            .transpose()
    }

    /// Writes a pace over the version that was read (0 for none); `false` when somebody else was quicker.
    pub(crate) async fn pace_write(
        &self,
        destination: &str,
        version: i64,
        pace: &[u8],
    ) -> Result<bool, StoreError> {
        let mut writing = self.write().await?;
        let row = sqlx::query(include_str!("sql/pace_write.sql"))
            .bind(destination)
            .bind(version)
            .bind(pace)
            .fetch_optional(writing.connection())
            .await?;
        writing.commit().await?;
        Ok(row.is_some())
    }

    pub(crate) async fn beat(&self, node: Uuid, name: &str) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now.as_micros();
        sqlx::query(include_str!("sql/node_beat.sql"))
            .bind(node)
            .bind(name)
            .bind(now)
            .execute(writing.connection())
            .await?;
        writing.commit().await
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        let rows = sqlx::query(include_str!("sql/node_list.sql")).fetch_all(self.pool()).await?;
        rows.iter().map(node).collect()
    }

    pub(crate) async fn pauses(&self) -> Result<Vec<QueuePause>, StoreError> {
        let rows = sqlx::query(include_str!("sql/queue_list.sql")).fetch_all(self.pool()).await?;
        rows.iter().map(pause).collect()
    }

    /// The kind of key that a queue's calls go out by.
    pub(crate) async fn queue_keys(&self, queue: &QueueName, kind: &str) -> Result<String, StoreError> {
        let mut writing = self.write().await?;
        let row = sqlx::query(include_str!("sql/queue_keys.sql"))
            .bind(queue.as_str())
            .bind(kind)
            .fetch_one(writing.connection())
            .await?;
        writing.commit().await?;
        Ok(row.text("kind")?.to_owned())
    }

    /// Leaves the duties of a node to the next one.
    pub(crate) async fn leave_care(&self, node: Uuid) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        sqlx::query(include_str!("sql/caretaker_release.sql"))
            .bind(node)
            .execute(writing.connection())
            .await?;
        writing.commit().await
    }

    /// Which bulks move letters.
    pub(crate) async fn letters_kept(&self) -> Result<Vec<LettersKept>, StoreError> {
        let now = self.clock().await?;
        let query = sqlx::query(include_str!("sql/letters_kept.sql"))
            .bind(now.as_micros())
            .bind(now.plus(DUTY_LEASE_MAX).as_micros());
        query.fetch_all(self.pool()).await?.iter().map(letters_kept).collect()
    }

    /// Whether this node has the duty until its lease lapses.
    pub(crate) async fn take_care(
        &self,
        duty: &str,
        node: Uuid,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now;
        let row = sqlx::query(include_str!("sql/caretaker_claim.sql"))
            .bind(duty)
            .bind(node)
            .bind(now.plus(lease).as_micros())
            .bind(now.as_micros())
            .bind(now.plus(DUTY_LEASE_MAX).as_micros())
            .fetch_optional(writing.connection())
            .await?;
        writing.commit().await?;
        Ok(row.is_some())
    }
}

/// Forgets messages with their entries and letters, in the transaction that found them.
async fn forget_these(
    mut writing: Writing,
    key: Option<&AuditKey>,
    rows: &[SqliteRow],
) -> Result<u64, StoreError> {
    if rows.is_empty() {
        return Ok(0);
    }
    let mut ids = Vec::with_capacity(rows.len());
    let mut counts: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for row in rows {
        ids.push(json::id(row.uuid("id")?));
        *counts.entry((row.text("queue")?, row.text("to_state")?)).or_default() -= 1;
    }
    let ids = json::text(ids);
    note_forgotten(&mut writing, key, &ids).await?;
    writing.run(include_str!("sql/letter_take.sql"), ids.clone()).await?;
    writing.run(include_str!("sql/retention_events.sql"), ids.clone()).await?;
    writing.run(include_str!("sql/retention_unsealed.sql"), ids.clone()).await?;
    let gone = writing.run(include_str!("sql/retention_messages.sql"), ids).await?;
    count_add(&mut writing, counts.into_iter().map(|((queue, state), delta)| (queue, state, delta))).await?;
    writing.commit().await?;
    Ok(gone)
}
