//! Enqueuing on PostgreSQL: by the store, or inside the caller's own transaction.
//!
//! A batch is first inserted without `ON CONFLICT DO NOTHING`, which makes each insert speculative and costs about half as much
//! again. If that fails, it is inserted with the clause. COPY was tried for large batches: through sqlx it reached half the
//! rate of the insert. A single message has its own statement, without arrays.

use std::collections::HashSet;

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::Postgres;
use super::repeated::{optional, repeated};
use crate::columns::count;
use crate::db_timestamp::DbTimestamp;
use crate::duplicate::{find_duplicate, find_first};
use crate::error::StoreError;
use crate::message::{EnqueueOutcome, Enqueued, NumberedMessage, compare_with_first};
use crate::micros;
use crate::split_retry::WriteMode;
use crate::statement::{SqlValue, postgres_only};
use crate::transaction_state::TransactionState;

/// How often to look for the first message of a duplicate. It may be swept between insert and read.
const MAX_ROUNDS: usize = 3;

impl Postgres {
    pub(crate) async fn enqueue(
        &self,
        messages: &[NumberedMessage],
        manner: WriteMode,
    ) -> Result<Vec<EnqueueOutcome>, StoreError> {
        self.pool_for(manner)
            .with_connection(async |connection| self.enqueue_over(connection, messages).await)
            .await
    }

    async fn enqueue_over(
        &self,
        connection: &mut PgConnection,
        messages: &[NumberedMessage],
    ) -> Result<Vec<EnqueueOutcome>, StoreError> {
        // Duplicates are rare, so the first try assumes none. Not inside a caller's transaction, which the failure would abort.
        let insertion = match messages {
            [message] if message.1.is_due_at_once() => insertion_of_one(message, self.skew()),
            _ => {
                let all: Vec<usize> = (0..messages.len()).collect();
                insertion(include_str!("sql/enqueue_new.sql"), messages, &all, self.skew())
            }
        };
        match insertion.execute(&mut *connection).await.map_err(StoreError::from) {
            Ok(_) => Ok(messages.iter().map(|(id, _)| Ok(Enqueued::New { id: *id })).collect()),
            Err(StoreError::Refused(_)) => self.enqueue_in(connection, messages, false).await,
            Err(error) => Err(error),
        }
    }

    /// Enqueues a message in its own transaction, unless equal content was enqueued within the window.
    // SPEC A7.
    pub(crate) async fn enqueue_same_content(
        &self,
        message: NumberedMessage,
    ) -> Result<EnqueueOutcome, StoreError> {
        self.calls
            .with_connection(async |connection| self.same_content_over(connection, &message).await)
            .await
    }

    async fn same_content_over(
        &self,
        connection: &mut PgConnection,
        message: &NumberedMessage,
    ) -> Result<EnqueueOutcome, StoreError> {
        let mut transaction = connection.begin().await?;
        let enqueued = self.enqueue_content(&mut transaction, message).await?;
        // A content is reserved only by a new message; otherwise the reservation is rolled back.
        match enqueued {
            Ok(Enqueued::New { .. }) => transaction.commit().await?,
            Ok(Enqueued::Replay { .. } | Enqueued::SameContent { .. }) | Err(_) => {
                transaction.rollback().await?;
            }
        }
        Ok(enqueued)
    }

    /// Enqueues messages on the caller's connection, in its open transaction; only in the one that was begun if that has a mark.
    // SPEC D4.
    pub(crate) async fn enqueue_in(
        &self,
        connection: &mut PgConnection,
        messages: &[NumberedMessage],
        is_marked: bool,
    ) -> Result<Vec<EnqueueOutcome>, StoreError> {
        let mut answers: Vec<Option<EnqueueOutcome>> = vec![None; messages.len()];
        for _ in 0..MAX_ROUNDS {
            let open: Vec<usize> = (0..messages.len()).filter(|index| answers[*index].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let added: HashSet<Option<Uuid>> =
                insertion(include_str!("sql/enqueue.sql"), messages, &open, self.skew())
                    .bind(is_marked)
                    .fetch_all(&mut *connection)
                    .await?
                    .iter()
                    .map(|row| row.try_get("id"))
                    .collect::<Result<_, _>>()?;
            if added.contains(&None) {
                TransactionState::Ended.check()?;
            }
            for index in &open {
                let id = messages[*index].0;
                if added.contains(&Some(id)) {
                    answers[*index] = Some(Ok(Enqueued::New { id }));
                }
            }
            let rest: Vec<usize> = open.into_iter().filter(|index| answers[*index].is_none()).collect();
            if rest.is_empty() {
                break;
            }
            let wanted: Vec<&NumberedMessage> = rest.iter().map(|index| &messages[*index]).collect();
            let found = find_first(&mut self.connection(connection), &wanted).await?;
            for (position, index) in rest.into_iter().enumerate() {
                answers[index] =
                    found.get(&position).map(|found| compare_with_first(&messages[index], found));
            }
        }
        answers.into_iter().map(|answer| answer.ok_or(StoreError::Busy)).collect()
    }

    /// Enqueues one message that may be compared by content.
    pub(crate) async fn enqueue_content(
        &self,
        connection: &mut PgConnection,
        message: &NumberedMessage,
    ) -> Result<EnqueueOutcome, StoreError> {
        let (id, new) = message;
        let Some(same) = &new.same_content else {
            return one(self.enqueue_in(connection, std::slice::from_ref(message), false).await?);
        };
        let retention = self.skew.retention();
        if let Some(known) = find_duplicate(&mut self.connection(connection), message, retention).await? {
            return Ok(known);
        }
        let enqueued = one(self.enqueue_in(connection, std::slice::from_ref(message), false).await?)?;
        if !matches!(enqueued, Ok(Enqueued::New { .. })) {
            // Somebody enqueued the same key just now. A content must be reserved by a message that exists, so release it.
            let content = SqlValue::from(&same.content.as_bytes()[..]);
            let values = [new.queue.as_str().into(), (&*new.identity).into(), content, (*id).into()];
            self.connection(connection).execute(postgres_only!("content_release"), &values).await?;
        }
        Ok(enqueued)
    }
}

fn one(answers: Vec<EnqueueOutcome>) -> Result<EnqueueOutcome, StoreError> {
    answers.into_iter().next().ok_or(StoreError::Busy)
}

/// Builds the insert, ordered by key, so two batches with the same keys do not deadlock.
fn insertion<'q>(
    sql: &'static str,
    messages: &'q [NumberedMessage],
    open: &[usize],
    skew: i64,
) -> Query<'q, sqlx::Postgres, PgArguments> {
    let mut rows: Vec<&NumberedMessage> = open.iter().map(|index| &messages[*index]).collect();
    rows.sort_by(|(_, a), (_, b)| (&a.queue, &a.identity, &a.key).cmp(&(&b.queue, &b.identity, &b.key)));
    let new = || rows.iter().map(|(_, new)| new);
    sqlx::query(sql)
        .bind(rows.iter().map(|(id, _)| *id).collect::<Vec<_>>())
        .bind(repeated(new().map(|new| new.queue.as_str())))
        .bind(repeated(new().map(|new| new.identity.as_str())))
        .bind(new().map(|new| new.key.as_str()).collect::<Vec<_>>())
        .bind(new().map(|new| new.request.digest().as_bytes().as_slice()).collect::<Vec<_>>())
        .bind(repeated(new().map(|new| new.request.content_type())))
        .bind(new().map(|new| new.request.bytes()).collect::<Vec<_>>())
        .bind(optional(new().map(|new| new.trace.as_deref())))
        .bind(repeated(new().map(|new| i16::from(new.priority))))
        .bind(repeated(new().map(|new| count(new.max_attempts.get()))))
        .bind(optional(new().map(|new| Some(micros(new.delay)).filter(|delay| 0 < *delay))))
        .bind(optional(new().map(|new| new.replacement_of)))
        .bind(skew)
        .bind(optional(new().map(|new| new.hops.as_deref())))
        .bind(optional(new().map(|new| new.trace_id.as_deref())))
        .bind(optional(new().map(|new| new.item.as_deref())))
        .bind(optional(new().map(|new| new.run_at.map(DbTimestamp))))
}

/// Builds the insert of a single message that is due at once.
fn insertion_of_one((id, new): &NumberedMessage, skew: i64) -> Query<'_, sqlx::Postgres, PgArguments> {
    sqlx::query(include_str!("sql/enqueue_one.sql"))
        .bind(*id)
        .bind(new.queue.as_str())
        .bind(&*new.identity)
        .bind(new.key.as_str())
        .bind(new.request.digest().as_bytes().as_slice())
        .bind(new.request.content_type())
        .bind(new.request.bytes())
        .bind(new.trace.as_deref())
        .bind(i16::from(new.priority))
        .bind(count(new.max_attempts.get()))
        .bind(new.replacement_of)
        .bind(skew)
        .bind(new.hops.as_deref())
        .bind(new.trace_id.as_deref())
        .bind(new.item.as_deref())
}
