//! Putting large batches of new messages in by COPY, on PostgreSQL.
//!
//! An INSERT writes each row to the log by itself; COPY writes a page of rows at a time. It takes a transaction of several
//! statements, so small batches are quicker without it.

use std::collections::BTreeMap;

use ichido_core::time::Timestamp;
use sqlx::{PgConnection, Row as _};

use super::Postgres;
use super::enqueue::Numbered;
use super::moment::{Moment, postgres_micros};
use crate::error::StoreError;

/// From how many messages on COPY is the quicker way.
pub(super) const COPY_FROM: usize = 200;

const MESSAGES: &str = "COPY ichido.messages (id, queue, identity, key, digest, content_type, request, trace, priority, \
                        tries_allowed, due, made_from, created_at) FROM STDIN (FORMAT binary)";
const READY: &str = "COPY ichido.ready (queue, priority, message_id) FROM STDIN (FORMAT binary)";

impl Postgres {
    /// Puts messages in of which none was put in before and none is delayed; a duplicate makes it fail whole.
    pub(super) async fn copy_new(&self, messages: &[Numbered]) -> Result<(), StoreError> {
        // In the order of the unique index, so that two batches never wait for each other crosswise.
        let mut rows: Vec<&Numbered> = messages.iter().collect();
        rows.sort_unstable_by(|(_, a), (_, b)| {
            (&a.queue, &a.identity, &a.key).cmp(&(&b.queue, &b.identity, &b.key))
        });
        let mut counts: BTreeMap<&str, i32> = BTreeMap::new();
        for (_, new) in &rows {
            *counts.entry(new.queue.as_str()).or_default() += 1;
        }
        let mut transaction = self.pool().begin().await?;
        let now =
            sqlx::query(include_str!("sql/now.sql")).bind(self.skew()).fetch_one(&mut *transaction).await?;
        let now = now.try_get::<Moment, _>("now")?.0;
        copy(&mut transaction, MESSAGES, &message_rows(&rows, now)).await?;
        copy(&mut transaction, READY, &ready_rows(&rows)).await?;
        sqlx::query(include_str!("sql/count_add.sql"))
            .bind(counts.keys().copied().collect::<Vec<_>>())
            .bind(vec!["queued"; counts.len()])
            .bind(counts.values().copied().collect::<Vec<_>>())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }
}

async fn copy(connection: &mut PgConnection, statement: &str, data: &[u8]) -> Result<(), StoreError> {
    let mut stream = connection.copy_in_raw(statement).await?;
    stream.send(data).await?;
    stream.finish().await?;
    Ok(())
}

fn message_rows(rows: &[&Numbered], now: Timestamp) -> Vec<u8> {
    let bytes = rows.iter().map(|(_, new)| new.request.len() + 300).sum();
    let mut data = Data::new(bytes);
    for (id, new) in rows {
        data.row(13);
        data.field(id.as_bytes());
        data.field(new.queue.as_str().as_bytes());
        data.field(new.identity.as_bytes());
        data.field(new.key.as_str().as_bytes());
        data.field(new.digest.as_bytes());
        data.field(new.content_type.as_bytes());
        data.field(&new.request);
        data.maybe(new.trace.as_ref().map(String::as_bytes));
        data.field(&i16::from(new.priority).to_be_bytes());
        data.field(&i32::try_from(new.tries_allowed.get()).unwrap_or(i32::MAX).to_be_bytes());
        data.maybe(None);
        data.maybe(new.made_from.as_ref().map(|id| id.as_bytes().as_slice()));
        data.field(&postgres_micros(now).to_be_bytes());
    }
    data.end()
}

fn ready_rows(rows: &[&Numbered]) -> Vec<u8> {
    let mut data = Data::new(rows.len() * 60);
    for (id, new) in rows {
        data.row(3);
        data.field(new.queue.as_str().as_bytes());
        data.field(&i16::from(new.priority).to_be_bytes());
        data.field(id.as_bytes());
    }
    data.end()
}

/// Rows in COPY's binary form.
struct Data(Vec<u8>);

impl Data {
    fn new(bytes: usize) -> Self {
        let mut data = Vec::with_capacity(bytes + 32);
        // The signature, no flags, no extension.
        data.extend_from_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        Self(data)
    }

    fn row(&mut self, fields: i16) {
        self.0.extend_from_slice(&fields.to_be_bytes());
    }

    fn field(&mut self, bytes: &[u8]) {
        // Every text and request is bounded far below this.
        let len = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        self.0.extend_from_slice(&len.to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn maybe(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.field(bytes),
            None => self.0.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&(-1_i16).to_be_bytes());
        self.0
    }
}
