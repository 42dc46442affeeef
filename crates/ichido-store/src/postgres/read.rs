//! Looking at messages, on PostgreSQL.

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::Stage;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use super::Postgres;
use super::moment::Moment;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::message::{Count, Letter, LetterState, MessageFilter, MessageRow, QueueName, Transition, limits};
use crate::rows::{self, count, message_row};

impl Postgres {
    pub(crate) async fn message(&self, id: Uuid) -> Result<Option<MessageRow>, StoreError> {
        let row = self.calls.optional(sqlx::query(include_str!("sql/message_get.sql")).bind(id)).await?;
        row.as_ref().map(message_row).transpose()
    }

    pub(crate) async fn messages(
        &self,
        filter: &MessageFilter,
        limit: u32,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let sql = if filter.of_what_is_under_way() {
            include_str!("sql/message_list_live.sql")
        } else {
            include_str!("sql/message_list.sql")
        };
        let rows = self
            .calls
            .all(
                sqlx::query(sql)
            // Planned anew each time: a plan for any filter would take each of them for a narrow one.
            .persistent(false)
            .bind(filter.queue.as_ref().map(QueueName::as_str))
            .bind(filter.status.map(Stage::as_str))
            .bind(filter.identity.as_deref())
            .bind(filter.key.as_ref().map(IdempotencyKey::as_str))
            .bind(filter.code.map(ErrorCode::as_str))
            .bind(filter.created_from.map(Moment))
            .bind(filter.created_before.map(Moment))
            .bind(filter.after)
            .bind(i64::from(limit.min(limits::PAGE_MAX))),
            )
            .await?;
        rows.iter().map(message_row).collect()
    }

    pub(crate) async fn letters(
        &self,
        state: LetterState,
        queue: Option<&QueueName>,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Letter>, StoreError> {
        let rows = self
            .calls
            .all(
                sqlx::query(include_str!("sql/letter_list.sql"))
                    // Planned anew each time, as above: a plan for any page would read all letters there are.
                    .persistent(false)
                    .bind(state.as_str())
                    .bind(queue.map(QueueName::as_str))
                    .bind(after.map(|(since, _)| Moment(since)))
                    .bind(after.map(|(_, id)| id))
                    .bind(i64::from(limit.min(limits::PAGE_MAX))),
            )
            .await?;
        rows.iter()
            .map(|row| Ok(Letter { since: row.moment("since")?, message: message_row(row)? }))
            .collect()
    }

    pub(crate) async fn transitions(&self, id: Uuid) -> Result<Vec<Transition>, StoreError> {
        // The claim first: should it end between the two looks, the events have it.
        let lease = self.calls.optional(sqlx::query(include_str!("sql/step_lease.sql")).bind(id)).await?;
        let rows = self.calls.all(sqlx::query(include_str!("sql/event_list.sql")).bind(id)).await?;
        rows::transitions(&rows, lease.as_ref())
    }

    pub(crate) async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        let rows = self.calls.all(sqlx::query(include_str!("sql/count_read.sql"))).await?;
        rows.iter().map(count).collect()
    }
}
