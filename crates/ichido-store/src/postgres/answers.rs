//! What models answered, on PostgreSQL.

use std::time::Duration;

use uuid::Uuid;

use super::Postgres;
use crate::answer::{Question, QuestionId, question};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::micros;
use crate::node::DUTY_LEASE_MAX;

impl Postgres {
    pub(crate) async fn answer_find(&self, ids: &[QuestionId]) -> Result<Vec<Question>, StoreError> {
        let ids: Vec<&[u8]> = ids.iter().map(|id| &id.as_bytes()[..]).collect();
        let rows = self.calls.all(sqlx::query(include_str!("sql/answer_find.sql")).bind(ids)).await?;
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
        let query = sqlx::query(include_str!("sql/answer_ask.sql"))
            .bind(&id.as_bytes()[..])
            .bind(topic)
            .bind(holder)
            .bind(micros(lease))
            .bind(self.skew())
            .bind(micros(DUTY_LEASE_MAX));
        let row = self.calls.optional(query).await?;
        row.map(|row| row.positive("lost")).transpose()
    }

    pub(crate) async fn answer_keep(&self, id: QuestionId, answer: &[u8]) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/answer_keep.sql"));
        let query = query.bind(&id.as_bytes()[..]).bind(answer).bind(self.skew());
        self.calls.execute(query).await?;
        Ok(())
    }

    pub(crate) async fn answer_fail(
        &self,
        id: QuestionId,
        holder: Uuid,
        lost: bool,
    ) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/answer_fail.sql"));
        self.calls.execute(query.bind(&id.as_bytes()[..]).bind(holder).bind(i32::from(lost))).await?;
        Ok(())
    }

    pub(crate) async fn answer_renew(&self, holder: Uuid, lease: Duration) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/answer_renew.sql"));
        self.calls.execute(query.bind(holder).bind(micros(lease)).bind(self.skew())).await?;
        Ok(())
    }

    pub(crate) async fn answer_forget(&self, topic: &str, limit: u32) -> Result<u64, StoreError> {
        let query = sqlx::query(include_str!("sql/answer_forget.sql"));
        let query = query.bind(topic).bind(i64::from(limit)).bind(self.skew());
        Ok(self.calls.execute(query).await?.rows_affected())
    }
}
