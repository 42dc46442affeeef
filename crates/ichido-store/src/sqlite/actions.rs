//! Operators' actions, on SQLite: each in one transaction with what it changes.

use uuid::Uuid;

use super::{Sqlite, Writing};
use crate::action::{Action, ActionRow, action_row};
use crate::columns::{Columns as _, number};
use crate::error::StoreError;
use crate::ledger::{KeySettle, KeySettled};
use crate::message::QueueName;
use crate::placement::excerpt;

impl Sqlite {
    pub(crate) async fn pause(
        &self,
        queue: &QueueName,
        paused: bool,
        by: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now.as_micros();
        let before = sqlx::query(include_str!("sql/queue_paused.sql"))
            .bind(queue.as_str())
            .fetch_optional(writing.connection())
            .await?;
        let was = before.map(|row| row.truth("paused")).transpose()?.unwrap_or(false);
        sqlx::query(include_str!("sql/queue_pause.sql"))
            .bind(queue.as_str())
            .bind(paused)
            .bind(by)
            .bind(now)
            .execute(writing.connection())
            .await?;
        record(&mut writing, &Action::pause(queue, was, paused, by)).await?;
        writing.commit().await
    }

    /// Settles a key and records who did; neither, where somebody else settled it.
    pub(crate) async fn settle_recorded(
        &self,
        settle: &KeySettle,
        action: &Action,
    ) -> Result<KeySettled, StoreError> {
        let mut writing = self.write().await?;
        let settled = self.settle_in(writing.connection(), settle).await?;
        if settled == KeySettled::Stands {
            record(&mut writing, action).await?;
            writing.commit().await?;
        } else {
            writing.rollback().await?;
        }
        Ok(settled)
    }

    pub(crate) async fn action_add(&self, action: &Action) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        record(&mut writing, action).await?;
        writing.commit().await
    }

    pub(crate) async fn actions(&self, before: i64, limit: i64) -> Result<Vec<ActionRow>, StoreError> {
        let query = sqlx::query(include_str!("sql/action_list.sql")).bind(before).bind(limit);
        query.fetch_all(self.pool()).await?.iter().map(action_row).collect()
    }

    pub(crate) async fn actions_of(&self, subject: Uuid) -> Result<Vec<ActionRow>, StoreError> {
        let query = sqlx::query(include_str!("sql/action_of.sql")).bind(subject);
        query.fetch_all(self.pool()).await?.iter().map(action_row).collect()
    }
}

pub(super) async fn record(writing: &mut Writing, action: &Action) -> Result<(), StoreError> {
    let fence = number(writing.draw_one()?);
    let now = writing.now.as_micros();
    sqlx::query(include_str!("sql/action_add.sql"))
        .bind(action.subject)
        .bind(fence)
        .bind(now)
        .bind(&action.from)
        .bind(&action.to)
        .bind(&action.kind)
        .bind("none")
        .bind(action.detail.as_deref().map(excerpt))
        .bind(action.actor.as_deref())
        .bind(&action.about)
        .execute(writing.connection())
        .await?;
    Ok(())
}
