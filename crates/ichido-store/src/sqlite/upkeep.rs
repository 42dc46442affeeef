//! Upkeep, on SQLite: each call does a bounded amount and says how much.

use std::collections::BTreeMap;

use ichido_core::audit::AuditKey;
use ichido_core::time::Timestamp;
use sqlx::sqlite::SqliteRow;

use super::audit::note_forgotten;
use super::step::count_add;
use super::{Sqlite, Writing};
use crate::columns::Columns;
use crate::error::StoreError;
use crate::json;
use crate::message::QueueName;
use crate::rows::{last_id, queue_name};

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
