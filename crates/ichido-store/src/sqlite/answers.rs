//! What models answered, on SQLite.

use std::time::Duration;

use uuid::Uuid;

use super::{Sqlite, json};
use crate::answer::{Question, QuestionId, question};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::node::DUTY_LEASE_MAX;
use crate::{hex, micros};

impl Sqlite {
    pub(crate) async fn answer_find(&self, ids: &[QuestionId]) -> Result<Vec<Question>, StoreError> {
        let ids = json::text(ids.iter().map(|id| hex(id.as_bytes())));
        let rows = sqlx::query(include_str!("sql/answer_find.sql")).bind(ids).fetch_all(self.pool()).await?;
        rows.iter().map(question).collect()
    }

    /// How many calls were lost before; `None` is that somebody else asks, or that it is answered.
    pub(crate) async fn answer_ask(
        &self,
        id: QuestionId,
        topic: &str,
        holder: Uuid,
        lease: Duration,
    ) -> Result<Option<u32>, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now.as_micros();
        let row = sqlx::query(include_str!("sql/answer_ask.sql"))
            .bind(&id.as_bytes()[..])
            .bind(topic)
            .bind(holder)
            .bind(now.saturating_add(micros(lease)))
            .bind(now)
            .bind(now.saturating_add(micros(DUTY_LEASE_MAX)))
            .fetch_optional(writing.connection())
            .await?;
        let Some(row) = row else {
            writing.rollback().await?;
            return Ok(None);
        };
        let lost = row.positive("lost")?;
        writing.commit().await?;
        Ok(Some(lost))
    }

    pub(crate) async fn answer_keep(&self, id: QuestionId, answer: &[u8]) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let query = sqlx::query(include_str!("sql/answer_keep.sql"));
        let query = query.bind(&id.as_bytes()[..]).bind(answer).bind(writing.now.as_micros());
        query.execute(writing.connection()).await?;
        writing.commit().await
    }

    pub(crate) async fn answer_fail(
        &self,
        id: QuestionId,
        holder: Uuid,
        lost: bool,
    ) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let query = sqlx::query(include_str!("sql/answer_fail.sql"));
        let query = query.bind(&id.as_bytes()[..]).bind(holder).bind(i32::from(lost));
        query.execute(writing.connection()).await?;
        writing.commit().await
    }

    pub(crate) async fn answer_renew(&self, holder: Uuid, lease: Duration) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let until = writing.now.as_micros().saturating_add(micros(lease));
        let query = sqlx::query(include_str!("sql/answer_renew.sql")).bind(holder).bind(until);
        query.execute(writing.connection()).await?;
        writing.commit().await
    }

    pub(crate) async fn answer_forget(&self, topic: &str, limit: u32) -> Result<u64, StoreError> {
        let mut writing = self.write().await?;
        let query = sqlx::query(include_str!("sql/answer_forget.sql"));
        let query = query.bind(topic).bind(i64::from(limit)).bind(writing.now.as_micros());
        let gone = query.execute(writing.connection()).await?.rows_affected();
        writing.commit().await?;
        Ok(gone)
    }
}
