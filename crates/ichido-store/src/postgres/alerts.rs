//! Alerts, on PostgreSQL: an incident is one transaction with the messages that tell of it.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::alert::About;
use ichido_core::time::Timestamp;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Connection as _, Row as _};
use uuid::Uuid;

use super::Postgres;
use super::moment::Moment;
use crate::alert::{Alert, NewAlert, alerts, limits};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::message::{Numbered, QueueName};
use crate::micros;
use crate::node::SharedPace;
use crate::tally::{Counted, SUMS_MAX, TallyRow, sums};

impl Postgres {
    pub(crate) async fn tally_add(&self, rows: &[TallyRow<'_>]) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/tally_add.sql"))
            .bind(rows.iter().map(|row| row.about).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.kind).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.slot).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.count).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.micros).collect::<Vec<_>>())
            .bind(self.skew());
        self.calls.execute(query).await?;
        Ok(())
    }

    pub(crate) async fn tally_sums(&self, window: Duration) -> Result<BTreeMap<About, Counted>, StoreError> {
        let query = sqlx::query(include_str!("sql/tally_sums.sql"));
        sums(&self.calls.all(query.bind(micros(window)).bind(self.skew()).bind(SUMS_MAX)).await?)
    }

    pub(crate) async fn tally_sweep(&self, kept: Duration) -> Result<u64, StoreError> {
        let query = sqlx::query(include_str!("sql/tally_sweep.sql")).bind(micros(kept)).bind(self.skew());
        Ok(self.calls.execute(query).await?.rows_affected())
    }

    pub(crate) async fn letter_counts(
        &self,
        queues: &[QueueName],
        since: Timestamp,
        until: Timestamp,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        let query = sqlx::query(include_str!("sql/letter_counts.sql"))
            .bind(queues.iter().map(QueueName::as_str).collect::<Vec<_>>())
            .bind(Moment(since))
            .bind(Moment(until))
            .bind(i64::from(limits::LETTERS_COUNTED_MAX));
        let rows = self.calls.all(query).await?;
        rows.iter()
            .map(|row| Ok((row.text("queue")?.to_owned(), row.number("count")?.unsigned_abs())))
            .collect()
    }

    pub(crate) async fn pace_list(&self) -> Result<Vec<(String, SharedPace)>, StoreError> {
        let query = sqlx::query(include_str!("sql/pace_list.sql")).bind(i64::from(limits::PACES_MAX));
        let rows = self.calls.all(query).await?;
        let pace = |row: &sqlx::postgres::PgRow| {
            let pace = SharedPace { version: row.try_get("version")?, bytes: row.try_get("pace")? };
            Ok((row.text("name")?.to_owned(), pace))
        };
        rows.iter().map(pace).collect()
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
            .bind(Moment(alert.at))
            .bind(alert.reading.value)
            .bind(i64::try_from(alert.reading.samples).unwrap_or(i64::MAX))
            .bind(alert.terms.above)
            .bind(alert.terms.window.map(micros));
        self.with_messages(query, messages).await
    }

    pub(crate) async fn alert_clear(&self, id: Uuid, since: Option<Timestamp>) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/alert_clear.sql")).bind(id).bind(since.map(Moment));
        self.calls.execute(query).await?;
        Ok(())
    }

    pub(crate) async fn alert_resolve(
        &self,
        id: Uuid,
        clear_since: Timestamp,
        at: Timestamp,
        messages: &[Numbered],
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(include_str!("sql/alert_resolve.sql"));
        self.with_messages(query.bind(id).bind(Moment(clear_since)).bind(Moment(at)), messages).await
    }

    /// Changes one incident and puts messages in, in one transaction; neither, where there was nothing to change.
    async fn with_messages(
        &self,
        change: Query<'_, sqlx::Postgres, PgArguments>,
        messages: &[Numbered],
    ) -> Result<bool, StoreError> {
        self.calls
            .talk(async |connection| {
                let mut transaction = connection.begin().await?;
                if change.execute(&mut *transaction).await?.rows_affected() == 0 {
                    transaction.rollback().await?;
                    return Ok(false);
                }
                if !messages.is_empty() {
                    self.enqueue_in(&mut transaction, messages).await?;
                }
                transaction.commit().await?;
                Ok(true)
            })
            .await
    }

    pub(crate) async fn alert_firing(&self) -> Result<Vec<Alert>, StoreError> {
        let query = sqlx::query(include_str!("sql/alert_firing.sql")).bind(i64::from(limits::FIRING_MAX));
        alerts(&self.calls.all(query).await?)
    }

    pub(crate) async fn alert_list(
        &self,
        (opened_at, id): (Timestamp, Uuid),
        limit: i64,
    ) -> Result<Vec<Alert>, StoreError> {
        let query = sqlx::query(include_str!("sql/alert_list.sql"));
        alerts(&self.calls.all(query.bind(Moment(opened_at)).bind(id).bind(limit)).await?)
    }

    pub(crate) async fn alert_forget(
        &self,
        resolved_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let query = sqlx::query(include_str!("sql/alert_forget.sql"));
        let query = query.bind(Moment(resolved_before)).bind(i64::from(limit));
        Ok(self.calls.execute(query).await?.rows_affected())
    }
}
