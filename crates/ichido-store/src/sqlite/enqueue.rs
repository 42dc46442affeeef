//! Putting messages in, on SQLite: by the store, or inside the caller's own transaction.

use std::collections::{HashMap, HashSet};

use ichido_core::time::Timestamp;
use serde_json::json;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::Sqlite;
use super::json::{self, Payloads};
use crate::columns::Columns;
use crate::error::StoreError;
use crate::hex;
use crate::message::{Enqueued, First, Numbered, answer};

impl Sqlite {
    pub(crate) async fn enqueue(&self, messages: &[Numbered]) -> Result<Vec<Enqueued>, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now;
        let enqueued = enqueue_at(writing.connection(), messages, now).await?;
        writing.commit().await?;
        Ok(enqueued)
    }

    /// Puts a message in, unless equal content was put in within the window (SPEC A7), in a transaction of its own.
    pub(crate) async fn enqueue_same_content(&self, message: Numbered) -> Result<Enqueued, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now;
        let enqueued = enqueue_content(writing.connection(), &message, now).await?;
        if matches!(enqueued, Enqueued::New { .. }) {
            writing.commit().await?;
        }
        Ok(enqueued)
    }

    /// Puts messages in on the caller's connection, in whatever transaction it has open (SPEC D4).
    pub(crate) async fn enqueue_in(
        &self,
        connection: &mut SqliteConnection,
        messages: &[Numbered],
    ) -> Result<Vec<Enqueued>, StoreError> {
        let now = self.now(connection).await?;
        enqueue_at(connection, messages, now).await
    }

    /// The same for one message that is compared by content.
    pub(crate) async fn enqueue_content(
        &self,
        connection: &mut SqliteConnection,
        message: &Numbered,
    ) -> Result<Enqueued, StoreError> {
        let now = self.now(connection).await?;
        enqueue_content(connection, message, now).await
    }

    pub(super) async fn now(&self, connection: &mut SqliteConnection) -> Result<Timestamp, StoreError> {
        let row = sqlx::query(include_str!("sql/now.sql")).bind(self.skew()).fetch_one(connection).await?;
        Ok(Timestamp::from_micros(row.try_get("now")?))
    }
}

async fn enqueue_content(
    connection: &mut SqliteConnection,
    message: &Numbered,
    now: Timestamp,
) -> Result<Enqueued, StoreError> {
    let (id, new) = message;
    // Its own key first: a repetition of the same action is that action, not merely equal content.
    if let Some(first) = find(connection, &[message]).await?.remove(&0) {
        return Ok(answer(message, first));
    }
    if let Some(same) = &new.same_content {
        let won = sqlx::query(include_str!("sql/content_claim.sql"))
            .bind(new.queue.as_str())
            .bind(&new.identity)
            .bind(same.content.as_bytes().as_slice())
            .bind(id)
            .bind(now.plus(same.window).as_micros())
            .bind(now.as_micros())
            .fetch_optional(&mut *connection)
            .await?;
        if won.is_none() {
            let first = sqlx::query(include_str!("sql/content_find.sql"))
                .bind(new.queue.as_str())
                .bind(&new.identity)
                .bind(same.content.as_bytes().as_slice())
                .fetch_one(&mut *connection)
                .await?;
            return Ok(Enqueued::SameContent { id: first.uuid("message_id")? });
        }
    }
    let enqueued = enqueue_at(connection, std::slice::from_ref(message), now).await?;
    enqueued.into_iter().next().ok_or(StoreError::Busy)
}

/// Puts messages in: one statement, and one look for those whose key was used before. No rounds: in a write transaction
/// nothing is swept away between the two.
async fn enqueue_at(
    connection: &mut SqliteConnection,
    messages: &[Numbered],
    now: Timestamp,
) -> Result<Vec<Enqueued>, StoreError> {
    let added = insert(connection, messages, now).await?;
    let rest: Vec<&Numbered> = messages.iter().filter(|(id, _)| !added.contains(id)).collect();
    let mut found = if rest.is_empty() { HashMap::new() } else { find(connection, &rest).await? };
    let mut position = 0;
    let mut answers = Vec::with_capacity(messages.len());
    for message in messages {
        if added.contains(&message.0) {
            answers.push(Enqueued::New { id: message.0 });
        } else {
            let first = found.remove(&position).ok_or(StoreError::Busy)?;
            answers.push(answer(message, first));
            position += 1;
        }
    }
    Ok(answers)
}

async fn insert(
    connection: &mut SqliteConnection,
    messages: &[Numbered],
    now: Timestamp,
) -> Result<HashSet<Uuid>, StoreError> {
    let mut payloads = Payloads::new();
    let rows: Vec<_> = messages
        .iter()
        .map(|(id, new)| {
            let (request_at, request_len) = payloads.add(&new.request);
            let due = (!new.delay.is_zero()).then(|| now.plus(new.delay).as_micros());
            json!([
                json::id(*id),
                new.queue.as_str(),
                new.identity,
                new.key.as_str(),
                hex(new.digest.as_bytes()),
                new.content_type,
                request_at,
                request_len,
                new.trace,
                new.priority,
                new.tries_allowed,
                due,
                new.made_from.map(json::id),
            ])
        })
        .collect();
    let added = sqlx::query(include_str!("sql/enqueue.sql"))
        .bind(json::text(rows))
        .bind(payloads.into_bytes())
        .bind(now.as_micros())
        .fetch_all(connection)
        .await?;
    added.iter().map(|row| Ok(row.uuid("id")?)).collect()
}

/// The first messages under these keys, by position.
async fn find(
    connection: &mut SqliteConnection,
    wanted: &[&Numbered],
) -> Result<HashMap<usize, First>, StoreError> {
    let keys = wanted.iter().map(|(_, new)| json!([new.queue.as_str(), new.identity, new.key.as_str()]));
    let rows = sqlx::query(include_str!("sql/enqueue_find.sql"))
        .bind(json::text(keys))
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| {
            let position = usize::try_from(row.number("position")?).unwrap_or(usize::MAX);
            Ok((position, First { id: row.uuid("id")?, digest: row.digest("digest")? }))
        })
        .collect()
}
