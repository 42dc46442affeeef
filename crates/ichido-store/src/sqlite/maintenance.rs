//! Maintenance on SQLite: each call does a bounded amount of work and returns how much.

use std::collections::BTreeMap;

use ichido_core::audit::AuditKey;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::Sqlite;
use crate::audit::trail::note_forgotten;
use crate::columns::Columns;
use crate::error::StoreError;
use crate::message::QueueName;
use crate::row_changes::add_counts;
use crate::rows::queue_name;
use crate::statement::{SqlValue, Statement, paired, sqlite_only};

impl Sqlite {
    /// Returns the time.
    pub(crate) async fn clock(&self) -> Result<Timestamp, StoreError> {
        let values = [self.skew().into()];
        let row = self.read_with(&values, async |mut it| it.one(paired!("now"), &values).await).await?;
        Ok(row.timestamp("now")?)
    }

    /// Makes due messages claimable. Returns how many per queue.
    pub(crate) async fn promote(&self, limit: u32) -> Result<Vec<(QueueName, u64)>, StoreError> {
        let mut tx = self.write().await?;
        let values = [SqlValue::Now, i64::from(limit).into()];
        let rows = tx.db_connection().all(sqlite_only!("promote_find"), &values).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut ids = Vec::with_capacity(rows.len());
        let mut promoted: BTreeMap<QueueName, u64> = BTreeMap::new();
        let mut failed: BTreeMap<&str, i32> = BTreeMap::new();
        for row in &rows {
            ids.push(row.uuid("message_id")?);
            *promoted.entry(queue_name(row.text("queue")?)?).or_default() += 1;
            if row.text("state")? == "failed" {
                *failed.entry(row.text("queue")?).or_default() += 1;
            }
        }
        let ids = SqlValue::Ids(&ids);
        tx.db_connection().execute(sqlite_only!("promote_ready"), &[ids]).await?;
        if !failed.is_empty() {
            let failed_count = failed.values().sum::<i32>();
            let before = tx.draw(usize::try_from(failed_count).unwrap_or(usize::MAX));
            let values = [ids, before.into(), SqlValue::Now];
            tx.db_connection().execute(sqlite_only!("promote_told"), &values).await?;
        }
        tx.db_connection().execute(sqlite_only!("promote_done"), &[ids]).await?;
        let deltas =
            failed.iter().flat_map(|(queue, count)| [(*queue, "failed", -count), (*queue, "queued", *count)]);
        add_counts(&mut tx.db_connection(), deltas).await?;
        tx.commit().await?;
        Ok(promoted.into_iter().collect())
    }

    /// Deletes the messages that a statement finds. If their entries were sealed, notes why they are missing.
    pub(crate) async fn forget(
        &self,
        key: Option<&AuditKey>,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<u64, StoreError> {
        let mut tx = self.write().await?;
        let now = tx.now;
        let mut connection = tx.db_connection();
        let rows = connection.all(statement, values).await?;
        if rows.is_empty() {
            return Ok(0);
        }
        let mut ids = Vec::with_capacity(rows.len());
        let mut counts: BTreeMap<(&str, &str), i32> = BTreeMap::new();
        for row in &rows {
            ids.push(row.uuid("id")?);
            *counts.entry((row.text("queue")?, row.text("to_state")?)).or_default() -= 1;
        }
        let these = [SqlValue::Ids(&ids)];
        let sealed: Vec<(Uuid, i32)> = connection
            .all(sqlite_only!("forgotten_count"), &these)
            .await?
            .iter()
            .map(|row| Ok((row.uuid("message_id")?, row.count("entries")?)))
            .collect::<Result<_, StoreError>>()?;
        note_forgotten(&mut connection, key, now, &sealed).await?;
        connection.execute(paired!("dead_letter_take"), &these).await?;
        connection.execute(sqlite_only!("retention_events"), &these).await?;
        connection.execute(sqlite_only!("retention_unsealed"), &these).await?;
        let gone = connection.execute(sqlite_only!("retention_messages"), &these).await?;
        let counts = counts.into_iter().map(|((queue, state), delta)| (queue, state, delta));
        add_counts(&mut connection, counts).await?;
        tx.commit().await?;
        Ok(gone)
    }
}
