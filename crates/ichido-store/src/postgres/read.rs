//! Looking at messages, on PostgreSQL.

use ichido_core::digest::Digest;
use ichido_core::key::IdempotencyKey;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::Postgres;
use super::moment::Moment;
use crate::error::StoreError;
use crate::message::{Count, Letter, LetterState, MessageFilter, MessageRow, QueueName, Transition, limits};
use crate::placement::effect_from;

impl Postgres {
    pub(crate) async fn message(&self, id: Uuid) -> Result<Option<MessageRow>, StoreError> {
        let row =
            sqlx::query(include_str!("sql/message_get.sql")).bind(id).fetch_optional(self.pool()).await?;
        row.as_ref().map(message_row).transpose()
    }

    pub(crate) async fn messages(
        &self,
        filter: &MessageFilter,
        limit: u32,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let rows = sqlx::query(include_str!("sql/message_list.sql"))
            // Planned anew each time: a plan for any filter would take each of them for a narrow one.
            .persistent(false)
            .bind(filter.queue.as_ref().map(QueueName::as_str))
            .bind(filter.status.as_deref())
            .bind(filter.identity.as_deref())
            .bind(filter.key.as_ref().map(IdempotencyKey::as_str))
            .bind(filter.code.map(ErrorCode::as_str))
            .bind(filter.created_from.map(Moment))
            .bind(filter.created_before.map(Moment))
            .bind(filter.after)
            .bind(i64::from(limit.min(limits::PAGE_MAX)))
            .fetch_all(self.pool())
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
        let rows = sqlx::query(include_str!("sql/letter_list.sql"))
            .bind(state.as_str())
            .bind(queue.map(QueueName::as_str))
            .bind(after.map(|(since, _)| Moment(since)))
            .bind(after.map(|(_, id)| id))
            .bind(i64::from(limit.min(limits::PAGE_MAX)))
            .fetch_all(self.pool())
            .await?;
        rows.iter()
            .map(|row| Ok(Letter { since: row.try_get::<Moment, _>("since")?.0, message: message_row(row)? }))
            .collect()
    }

    pub(crate) async fn transitions(&self, id: Uuid) -> Result<Vec<Transition>, StoreError> {
        // The claim first: should it end between the two looks, the events have it.
        let lease =
            sqlx::query(include_str!("sql/step_lease.sql")).bind(id).fetch_optional(self.pool()).await?;
        let rows = sqlx::query(include_str!("sql/event_list.sql")).bind(id).fetch_all(self.pool()).await?;
        let mut transitions: Vec<Transition> = Vec::with_capacity(rows.len() * 2 + 1);
        for row in &rows {
            let event = transition(row)?;
            // A try is one row: its first transition, the claim, is told by `claimed_at`.
            let claimed_at: Option<Moment> = row.try_get("claimed_at")?;
            if let (Some(at), 0) = (claimed_at, row.try_get::<i16, _>("step")?) {
                transitions.push(claim(at.0, event.fence, event.node, transitions.last()));
            }
            transitions.push(event);
        }
        if let Some(row) = lease {
            let fence = u64::try_from(row.try_get::<i64, _>("fence")?).ok();
            if transitions.iter().all(|transition| transition.fence != fence) {
                let at = row.try_get::<Moment, _>("claimed_at")?.0;
                transitions.push(claim(at, fence, row.try_get("node")?, transitions.last()));
            }
        }
        Ok(transitions)
    }

    pub(crate) async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        let rows = sqlx::query(include_str!("sql/count_read.sql")).fetch_all(self.pool()).await?;
        rows.iter()
            .map(|row| {
                Ok(Count {
                    queue: row.try_get("queue")?,
                    state: row.try_get("state")?,
                    count: row.try_get("count")?,
                })
            })
            .collect()
    }
}

/// The claim that a try begins with, after what was before it.
fn claim(at: Timestamp, fence: Option<u64>, node: Option<Uuid>, before: Option<&Transition>) -> Transition {
    Transition {
        at,
        from: "queued".to_owned(),
        to: "sending".to_owned(),
        kind: "claimed".to_owned(),
        fence,
        tries: before.map_or(0, |before| before.tries).saturating_add(1),
        effect: before.map_or(Effect::NotDone, |before| before.effect),
        code: None,
        status: None,
        result_digest: None,
        receipt: None,
        excerpt: None,
        node,
        actor: None,
    }
}

fn transition(row: &PgRow) -> Result<Transition, StoreError> {
    Ok(Transition {
        at: row.try_get::<Moment, _>("at")?.0,
        from: row.try_get("from_state")?,
        to: row.try_get("to_state")?,
        kind: row.try_get("kind")?,
        fence: u64::try_from(row.try_get::<i64, _>("fence")?).ok(),
        tries: unsigned(row, "tries")?,
        effect: effect(row)?,
        code: row.try_get("code")?,
        status: row.try_get::<Option<i16>, _>("status")?.and_then(|status| u16::try_from(status).ok()),
        result_digest: digest(row, "result_digest")?,
        receipt: row.try_get("receipt")?,
        excerpt: row.try_get("excerpt")?,
        node: row.try_get("node")?,
        actor: row.try_get("actor")?,
    })
}

fn message_row(row: &PgRow) -> Result<MessageRow, StoreError> {
    Ok(MessageRow {
        id: row.try_get("id")?,
        queue: row.try_get("queue")?,
        identity: row.try_get("identity")?,
        key: IdempotencyKey::parse(row.try_get("idempotency_key")?)
            .map_err(|error| corrupt(&error.to_string()))?,
        content_type: row.try_get("content_type")?,
        request: row.try_get("request")?,
        request_digest: digest(row, "request_digest")?.ok_or_else(|| corrupt("a digest is missing"))?,
        status: row.try_get("status")?,
        tries: unsigned(row, "tries")?,
        tries_allowed: unsigned(row, "tries_allowed")?,
        next_attempt: row.try_get::<Option<Moment>, _>("next_attempt")?.map(|moment| moment.0),
        last_error: row.try_get("last_error")?,
        last_error_text: row.try_get("last_error_text")?,
        effect: effect(row)?,
        priority: u8::try_from(row.try_get::<i16, _>("priority")?).unwrap_or(u8::MAX),
        trace: row.try_get("trace")?,
        made_from: row.try_get("made_from")?,
        created_at: row.try_get::<Moment, _>("created_at")?.0,
        updated_at: row.try_get::<Moment, _>("updated_at")?.0,
    })
}

fn unsigned(row: &PgRow, column: &str) -> Result<u32, StoreError> {
    u32::try_from(row.try_get::<i32, _>(column)?).map_err(|_| corrupt("a count is negative"))
}

fn effect(row: &PgRow) -> Result<Effect, StoreError> {
    effect_from(row.try_get("effect")?).ok_or_else(|| corrupt("an unknown effect"))
}

fn digest(row: &PgRow, column: &str) -> Result<Option<Digest>, StoreError> {
    match row.try_get::<Option<&[u8]>, _>(column)? {
        Some(bytes) => {
            let bytes = bytes.try_into().map_err(|_| corrupt("a digest is not 32 bytes long"))?;
            Ok(Some(Digest::from_bytes(bytes)))
        }
        None => Ok(None),
    }
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt { table: "messages", detail: detail.to_owned() }
}
