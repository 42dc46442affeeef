//! Transactions that are written once for both databases.

use ichido_core::fence::Fence;
use ichido_core::time::Timestamp;
use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use crate::action::{self, AuditAction};
use crate::claim_end::delete_leases;
use crate::columns::{Columns as _, Row, number};
use crate::dead_letter::DeadLetterRow;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::guarantee_columns;
use crate::ledger::{KeySettle, KeySettled};
use crate::message::{EnqueueOutcome, NumberedMessage, QueueName};
use crate::placement::RowChanges;
use crate::postgres::Postgres;
use crate::rescue::LapsedLease;
use crate::row_changes;
use crate::rows::{lapsed_message, letter_row, queue_name};
use crate::sqlite::{Sqlite, WriteTransaction};
use crate::statement::{DbConnection, SqlValue, paired, postgres_only};

/// How often to look for a letter that is being changed.
const MAX_SAMPLES: usize = 8;

/// A transaction that writes.
pub(crate) enum Transaction<'t> {
    Postgres(&'t mut PgConnection, &'t Postgres),
    Sqlite(&'t mut WriteTransaction, &'t Sqlite),
}

impl Driver {
    /// Runs `work` in one transaction. If `work` returns `None`, it is rolled back.
    pub(crate) async fn transact<T>(
        &self,
        work: impl AsyncFnOnce(&mut Transaction<'_>) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match self {
            Self::Postgres(postgres) => {
                let work = async |connection: &mut PgConnection| {
                    let mut transaction = connection.begin().await?;
                    let done = work(&mut Transaction::Postgres(&mut transaction, postgres)).await?;
                    match done {
                        Some(_) => transaction.commit().await?,
                        None => transaction.rollback().await?,
                    }
                    Ok(done)
                };
                postgres.with_connection(work).await
            }
            Self::Sqlite(sqlite) => {
                let mut tx = sqlite.write().await?;
                let done = work(&mut Transaction::Sqlite(&mut tx, sqlite)).await?;
                match done {
                    Some(_) => tx.commit().await?,
                    None => tx.rollback().await?,
                }
                Ok(done)
            }
        }
    }
}

impl Transaction<'_> {
    pub(crate) fn connection(&mut self) -> DbConnection<'_> {
        match self {
            Self::Postgres(connection, postgres) => postgres.connection(connection),
            Self::Sqlite(tx, _) => tx.db_connection(),
        }
    }

    /// Prevents others from sealing, pruning or deleting entries until the transaction ends. SQLite has one writer anyway.
    pub(crate) async fn lock_seals(&mut self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(..) => self.connection().execute(postgres_only!("seal_lock"), &[]).await.map(drop),
            Self::Sqlite(..) => Ok(()),
        }
    }

    /// Adds an operator's action to the audit trail.
    pub(crate) async fn record(&mut self, action: &AuditAction) -> Result<(), StoreError> {
        let actions = std::slice::from_ref(action);
        match self {
            Self::Postgres(..) => action::record(&mut self.connection(), actions, 0).await,
            Self::Sqlite(tx, _) => tx.record(actions).await,
        }
    }

    pub(crate) async fn enqueue(&mut self, messages: &[NumberedMessage]) -> Result<(), StoreError> {
        match self {
            _ if messages.is_empty() => Ok(()),
            Self::Postgres(connection, postgres) => {
                postgres.enqueue_in(connection, messages, false).await.map(drop)
            }
            Self::Sqlite(tx, _) => tx.enqueue(messages).await,
        }
    }

    /// Enqueues one message that may be compared by content.
    pub(crate) async fn enqueue_content(
        &mut self,
        message: &NumberedMessage,
    ) -> Result<EnqueueOutcome, StoreError> {
        match self {
            Self::Postgres(connection, postgres) => postgres.enqueue_content(connection, message).await,
            Self::Sqlite(tx, sqlite) => sqlite.enqueue_content(tx.connection(), message).await,
        }
    }

    pub(crate) async fn settle(&mut self, settle: &KeySettle) -> Result<KeySettled, StoreError> {
        match self {
            Self::Postgres(connection, postgres) => postgres.settle_in(connection, settle, false).await,
            Self::Sqlite(tx, sqlite) => sqlite.settle_in(tx.connection(), settle).await,
        }
    }

    /// Locks the dead letters among these messages until the transaction ends. Also returns the time.
    pub(crate) async fn letters(
        &mut self,
        ids: &[Uuid],
    ) -> Result<(Vec<DeadLetterRow>, Timestamp), StoreError> {
        let values = [ids.into(), SqlValue::Now];
        let rows = self.connection().all(paired!("dead_letter_lock", "dead_letter_find"), &values).await?;
        let now = self.now(rows.first())?;
        Ok((rows.iter().map(letter_row).collect::<Result<_, _>>()?, now))
    }

    /// Locks the dead letter of one message. On PostgreSQL a change deletes its row and inserts another, and a statement that
    /// waited for the first sees neither: a new statement, with a newer snapshot, finds the second.
    pub(crate) async fn letter(&mut self, id: Uuid) -> Result<(Vec<DeadLetterRow>, Timestamp), StoreError> {
        let max_looks = match self {
            Self::Postgres(..) => MAX_SAMPLES,
            Self::Sqlite(..) => 1,
        };
        let mut looked = self.letters(&[id]).await?;
        for _ in 1..max_looks {
            if !looked.0.is_empty() {
                break;
            }
            looked = self.letters(&[id]).await?;
        }
        Ok(looked)
    }

    /// Returns the time: SQLite's transaction has one, and PostgreSQL's statements return it in their rows.
    fn now(&self, row: Option<&Row>) -> Result<Timestamp, StoreError> {
        Ok(match (self, row) {
            (Self::Sqlite(tx, _), _) => tx.now(),
            (Self::Postgres(..), Some(row)) => row.timestamp("now")?,
            (Self::Postgres(..), None) => Timestamp::EPOCH,
        })
    }

    /// Deletes letters and writes the rows that replace them.
    pub(crate) async fn move_letters(&mut self, changes: &mut RowChanges) -> Result<(), StoreError> {
        if changes.taken.is_empty() {
            return Ok(());
        }
        self.connection().execute(paired!("dead_letter_take"), &[SqlValue::Ids(&changes.taken)]).await?;
        self.apply(changes).await
    }

    /// Writes the rows of a set of steps.
    pub(crate) async fn apply(&mut self, changes: &mut RowChanges) -> Result<(), StoreError> {
        match self {
            Self::Postgres(..) => row_changes::apply(&mut self.connection(), changes).await,
            Self::Sqlite(tx, _) => tx.apply(changes).await,
        }
    }

    /// Finds one lapsed lease, of these queues if any are given, with the messages it still holds.
    pub(crate) async fn lapsed(
        &mut self,
        queues: Option<&[QueueName]>,
    ) -> Result<Option<LapsedLease>, StoreError> {
        let queues = queues.map(|queues| queues.iter().map(QueueName::as_str).collect::<Vec<_>>());
        let lease = match self {
            Self::Postgres(connection, postgres) => postgres.lapsed(connection, queues.as_deref()).await?,
            Self::Sqlite(tx, sqlite) => sqlite.lapsed(tx, queues.as_deref()).await?,
        };
        let Some(lease) = lease else { return Ok(None) };
        let (fence, marks) = (lease.fence()?, lease.truth("start_marks")?);
        let of_lease = [number(fence).into(), lease.truth("suspect")?.into()];
        let mut connection = self.connection();
        let (rows, alone) = match &lease {
            Row::Postgres(row) => {
                let ids: Vec<Uuid> = row.try_get("message_ids")?;
                let values = [&[SqlValue::Ids(&ids)], &of_lease[..]].concat();
                (connection.all(paired!("rescue_left"), &values).await?, ids.len() == 1)
            }
            Row::Sqlite(row) => {
                (connection.all(paired!("rescue_left"), &of_lease).await?, row.number("held")? == 1)
            }
        };
        Ok(Some(LapsedLease {
            fence,
            queue: queue_name(lease.text("queue")?)?,
            node: lease.uuid("node")?,
            claimed_at: lease.timestamp("claimed_at")?,
            now: self.now(Some(&lease))?,
            alone,
            guarantee: guarantee_columns::guarantee(&lease, "leases")?,
            max_time_in_flight: guarantee_columns::max_time_in_flight(&lease)?,
            left: rows.iter().map(|row| lapsed_message(row, marks)).collect::<Result<_, _>>()?,
        }))
    }

    /// Deletes a lease and the start marks made under it.
    pub(crate) async fn delete_lease(&mut self, fence: Fence) -> Result<(), StoreError> {
        delete_leases(&mut self.connection(), &[number(fence)]).await
    }
}
