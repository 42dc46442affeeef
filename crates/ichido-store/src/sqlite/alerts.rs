//! Alerts, on SQLite: an incident is one transaction with the messages that tell of it.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::alert::About;
use ichido_core::time::Timestamp;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use uuid::Uuid;

use super::enqueue::enqueue_at;
use super::{Sqlite, json, values};
use crate::alert::{Alert, NewAlert, alerts, limits};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::message::{Numbered, QueueName};
use crate::micros;
use crate::node::SharedPace;
use crate::tally::{Counted, SUMS_MAX, TallyRow, sums};

const MINUTE_MICROS: i64 = 60_000_000;

impl Sqlite {
    pub(crate) async fn tally_add(&self, rows: &[TallyRow<'_>]) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now.as_micros();
        let minute = now - now.rem_euclid(MINUTE_MICROS);
        for part in values::parts(rows) {
            let mut query = sqlx::query(values::repeated(include_str!("sql/tally_add.sql"), part.len()));
            for row in part {
                query = query
                    .bind(minute)
                    .bind(row.about)
                    .bind(row.kind)
                    .bind(row.slot)
                    .bind(row.count)
                    .bind(row.micros);
            }
            query.execute(writing.connection()).await?;
        }
        writing.commit().await
    }

    pub(crate) async fn tally_sums(&self, window: Duration) -> Result<BTreeMap<About, Counted>, StoreError> {
        let since = self.clock().await?.as_micros().saturating_sub(micros(window));
        let query = sqlx::query(include_str!("sql/tally_sums.sql")).bind(since).bind(SUMS_MAX);
        sums(&query.fetch_all(self.pool()).await?)
    }

    pub(crate) async fn tally_sweep(&self, kept: Duration) -> Result<u64, StoreError> {
        let mut writing = self.write().await?;
        let before = writing.now.as_micros().saturating_sub(micros(kept));
        let query = sqlx::query(include_str!("sql/tally_sweep.sql")).bind(before);
        let gone = query.execute(writing.connection()).await?.rows_affected();
        if 0 < gone {
            writing.commit().await?;
        }
        Ok(gone)
    }

    pub(crate) async fn letter_counts(
        &self,
        queues: &[QueueName],
        since: Timestamp,
        until: Timestamp,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        let query = sqlx::query(include_str!("sql/letter_counts.sql"))
            .bind(json::text(queues.iter().map(QueueName::as_str)))
            .bind(since.as_micros())
            .bind(until.as_micros())
            .bind(i64::from(limits::LETTERS_COUNTED_MAX));
        let rows = query.fetch_all(self.pool()).await?;
        rows.iter()
            .map(|row| Ok((row.text("queue")?.to_owned(), row.number("count")?.unsigned_abs())))
            .collect()
    }

    pub(crate) async fn pace_list(&self) -> Result<Vec<(String, SharedPace)>, StoreError> {
        let query = sqlx::query(include_str!("sql/pace_list.sql")).bind(i64::from(limits::PACES_MAX));
        let pace = |row: &SqliteRow| {
            let pace = SharedPace { version: row.number("version")?, bytes: row.bytes("pace")?.to_owned() };
            Ok((row.text("name")?.to_owned(), pace))
        };
        query.fetch_all(self.pool()).await?.iter().map(pace).collect()
    }

    pub(crate) async fn alert_open(
        &self,
        alert: &NewAlert,
        messages: &[Numbered],
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(include_str!("sql/alert_open.sql"))
            .bind(alert.id)
            .bind(alert.rule.as_str())
            .bind(alert.about.to_string())
            .bind(alert.at.as_micros())
            .bind(alert.reading.value)
            .bind(i64::try_from(alert.reading.samples).unwrap_or(i64::MAX))
            .bind(alert.terms.above)
            .bind(alert.terms.window.map(micros));
        self.with_messages(query, messages).await
    }

    pub(crate) async fn alert_clear(&self, id: Uuid, since: Option<Timestamp>) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/alert_clear.sql"));
        let query = query.bind(id).bind(since.map(Timestamp::as_micros));
        self.with_messages(query, &[]).await.map(drop)
    }

    pub(crate) async fn alert_resolve(
        &self,
        id: Uuid,
        clear_since: Timestamp,
        at: Timestamp,
        messages: &[Numbered],
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(include_str!("sql/alert_resolve.sql"));
        self.with_messages(query.bind(id).bind(clear_since.as_micros()).bind(at.as_micros()), messages).await
    }

    /// Changes one incident and puts messages in, in one transaction; neither, where there was nothing to change.
    async fn with_messages(
        &self,
        change: Query<'_, sqlx::Sqlite, SqliteArguments>,
        messages: &[Numbered],
    ) -> Result<bool, StoreError> {
        let mut writing = self.write().await?;
        if change.execute(writing.connection()).await?.rows_affected() == 0 {
            writing.rollback().await?;
            return Ok(false);
        }
        let (now, messages) = (writing.now, messages.iter().collect::<Vec<_>>());
        if !messages.is_empty() {
            enqueue_at(writing.connection(), &messages, now).await?;
        }
        writing.commit().await?;
        Ok(true)
    }

    pub(crate) async fn alert_firing(&self) -> Result<Vec<Alert>, StoreError> {
        let query = sqlx::query(include_str!("sql/alert_firing.sql")).bind(i64::from(limits::FIRING_MAX));
        alerts(&query.fetch_all(self.pool()).await?)
    }

    pub(crate) async fn alert_list(
        &self,
        (opened_at, id): (Timestamp, Uuid),
        limit: i64,
    ) -> Result<Vec<Alert>, StoreError> {
        let query = sqlx::query(include_str!("sql/alert_list.sql"));
        let query = query.bind(opened_at.as_micros()).bind(id).bind(limit);
        alerts(&query.fetch_all(self.pool()).await?)
    }

    pub(crate) async fn alert_forget(
        &self,
        resolved_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let mut writing = self.write().await?;
        let query = sqlx::query(include_str!("sql/alert_forget.sql"));
        let query = query.bind(resolved_before.as_micros()).bind(i64::from(limit));
        let gone = query.execute(writing.connection()).await?.rows_affected();
        if 0 < gone {
            writing.commit().await?;
        }
        Ok(gone)
    }
}
