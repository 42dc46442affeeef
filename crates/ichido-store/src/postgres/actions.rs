//! Operators' actions, on PostgreSQL: each in one transaction with what it changes.

use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::Postgres;
use crate::action::{Action, ActionRow, action_row};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::ledger::{KeySettle, KeySettled};
use crate::message::QueueName;
use crate::placement::excerpt;

impl Postgres {
    pub(crate) async fn pause(
        &self,
        queue: &QueueName,
        paused: bool,
        by: Option<&str>,
    ) -> Result<(), StoreError> {
        self.calls
            .talk(async |connection| {
                let mut transaction = connection.begin().await?;
                let before = sqlx::query(include_str!("sql/queue_paused.sql"))
                    .bind(queue.as_str())
                    .fetch_optional(&mut *transaction)
                    .await?;
                let was = before.map(|row| row.truth("paused")).transpose()?.unwrap_or(false);
                sqlx::query(include_str!("sql/queue_pause.sql"))
                    .bind(queue.as_str())
                    .bind(paused)
                    .bind(by)
                    .bind(self.skew())
                    .execute(&mut *transaction)
                    .await?;
                self.record(&mut transaction, &Action::pause(queue, was, paused, by)).await?;
                Ok(transaction.commit().await?)
            })
            .await
    }

    /// Settles a key and records who did; neither, where somebody else settled it.
    pub(crate) async fn settle_recorded(
        &self,
        settle: &KeySettle,
        action: &Action,
    ) -> Result<KeySettled, StoreError> {
        self.calls
            .talk(async |connection| {
                let mut transaction = connection.begin().await?;
                let settled = self.settle_in(&mut transaction, settle).await?;
                if settled == KeySettled::Stands {
                    self.record(&mut transaction, action).await?;
                    transaction.commit().await?;
                } else {
                    transaction.rollback().await?;
                }
                Ok(settled)
            })
            .await
    }

    pub(crate) async fn action_add(&self, action: &Action) -> Result<(), StoreError> {
        self.calls.talk(async |connection| self.record(connection, action).await).await
    }

    pub(super) async fn record(
        &self,
        connection: &mut PgConnection,
        action: &Action,
    ) -> Result<(), StoreError> {
        sqlx::query(include_str!("sql/action_add.sql"))
            .bind(action.subject)
            .bind(self.skew())
            .bind(&action.from)
            .bind(&action.to)
            .bind(&action.kind)
            .bind("none")
            .bind(action.detail.as_deref().map(excerpt))
            .bind(action.actor.as_deref())
            .bind(&action.about)
            .execute(connection)
            .await?;
        Ok(())
    }

    pub(crate) async fn actions(&self, before: i64, limit: i64) -> Result<Vec<ActionRow>, StoreError> {
        let query = sqlx::query(include_str!("sql/action_list.sql")).bind(before).bind(limit);
        self.calls.all(query).await?.iter().map(action_row).collect()
    }

    pub(crate) async fn actions_of(&self, subject: Uuid) -> Result<Vec<ActionRow>, StoreError> {
        let query = sqlx::query(include_str!("sql/action_of.sql")).bind(subject);
        self.calls.all(query).await?.iter().map(action_row).collect()
    }
}
