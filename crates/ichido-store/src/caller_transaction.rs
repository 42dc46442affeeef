//! The caller's own transaction on the store's database, the same for both databases.

use sqlx::sqlite::SqliteConnection;
use sqlx::{Database, PgConnection, Transaction};

use crate::Store;
use crate::claim_tracker::ClaimReport;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::ledger::{KeyRecorded, KeyRecording, KeySettle, KeySettled};
use crate::message::{EnqueueOutcome, NumberedMessage, StepResult};
use crate::postgres::Postgres;
use crate::sqlite::Sqlite;
use crate::transaction_state::TransactionState;

/// A connection of the caller's own to the store's database, PostgreSQL or SQLite, or an sqlx transaction on it.
///
/// On SQLite, begin the transaction with [`Store::begin_immediate`](crate::Store::begin_immediate).
pub trait CallerConnection: sealed::SupportedConnection + Send {}

impl CallerConnection for PgConnection {}
impl CallerConnection for SqliteConnection {}
impl<DB: Database<Connection: CallerConnection>> CallerConnection for Transaction<'_, DB> {}
impl<C: CallerConnection> CallerConnection for Begun<'_, C> {}

/// A connection on which [`StoreDatabase::begin`](crate::StoreDatabase::begin) began a transaction.
///
/// On PostgreSQL, neither a settlement nor a message is written on it if that transaction has ended: it would commit on its own.
#[derive(Debug)]
pub struct Begun<'c, C>(pub &'c mut C);

pub(crate) mod sealed {
    pub trait SupportedConnection {
        /// Returns which of the two connections it is.
        fn database(&mut self) -> super::DatabaseConnection<'_>;

        /// Whether its transaction has a mark, without which a statement must write nothing.
        fn is_marked(&self) -> bool {
            false
        }
    }
}

/// The connections that are supported.
#[derive(Debug)]
pub enum DatabaseConnection<'c> {
    Postgres(&'c mut PgConnection),
    Sqlite(&'c mut SqliteConnection),
}

impl sealed::SupportedConnection for PgConnection {
    fn database(&mut self) -> DatabaseConnection<'_> {
        DatabaseConnection::Postgres(self)
    }
}

impl sealed::SupportedConnection for SqliteConnection {
    fn database(&mut self) -> DatabaseConnection<'_> {
        DatabaseConnection::Sqlite(self)
    }
}

impl<DB: Database<Connection: sealed::SupportedConnection>> sealed::SupportedConnection
    for Transaction<'_, DB>
{
    fn database(&mut self) -> DatabaseConnection<'_> {
        (**self).database()
    }
}

impl<C: sealed::SupportedConnection> sealed::SupportedConnection for Begun<'_, C> {
    fn database(&mut self) -> DatabaseConnection<'_> {
        self.0.database()
    }

    fn is_marked(&self) -> bool {
        true
    }
}

/// A transaction that the caller began, and the driver of the same database.
pub(crate) enum CallerTransaction<'t> {
    /// Also whether it is marked.
    Postgres(&'t mut PgConnection, &'t Postgres, bool),
    Sqlite(&'t mut SqliteConnection, &'t Sqlite),
}

impl Store {
    /// Returns the caller's transaction with this store's driver, unless they are on different databases.
    pub(crate) fn in_transaction<'t>(
        &'t self,
        connection: &'t mut impl CallerConnection,
    ) -> Result<CallerTransaction<'t>, StoreError> {
        let is_marked = connection.is_marked();
        match (connection.database(), self.driver()) {
            (DatabaseConnection::Postgres(connection), Driver::Postgres(postgres)) => {
                Ok(CallerTransaction::Postgres(connection, postgres, is_marked))
            }
            (DatabaseConnection::Sqlite(connection), Driver::Sqlite(sqlite)) => {
                Ok(CallerTransaction::Sqlite(connection, sqlite))
            }
            (DatabaseConnection::Postgres(_), Driver::Sqlite(_)) => {
                Err(StoreError::WrongDatabase("this store is on SQLite; pass an SQLite transaction"))
            }
            (DatabaseConnection::Sqlite(_), Driver::Postgres(_)) => {
                Err(StoreError::WrongDatabase("this store is on PostgreSQL; pass a PostgreSQL transaction"))
            }
        }
    }
}

impl<'t> CallerTransaction<'t> {
    /// Enqueues messages. If any is compared by content, they are enqueued one after another.
    pub(crate) fn enqueue(mut self, messages: &'t [NumberedMessage]) -> StoreFuture<'t, Vec<EnqueueOutcome>> {
        Box::pin(async move {
            if messages.iter().any(|(_, new)| new.same_content.is_some()) {
                // Before any content is reserved.
                if let Self::Postgres(connection, _, true) = &mut self {
                    TransactionState::on_postgres(connection).await.check()?;
                }
                let mut outcomes = Vec::with_capacity(messages.len());
                for message in messages {
                    outcomes.push(self.enqueue_content(message).await?);
                }
                return Ok(outcomes);
            }
            match self {
                Self::Postgres(connection, postgres, is_marked) => {
                    postgres.enqueue_in(connection, messages, is_marked).await
                }
                Self::Sqlite(connection, sqlite) => sqlite.enqueue_in(connection, messages).await,
            }
        })
    }

    async fn enqueue_content(&mut self, message: &NumberedMessage) -> Result<EnqueueOutcome, StoreError> {
        match self {
            Self::Postgres(connection, postgres, _) => postgres.enqueue_content(connection, message).await,
            Self::Sqlite(connection, sqlite) => sqlite.enqueue_content(connection, message).await,
        }
    }

    /// Settles a key.
    pub(crate) fn settle(self, settle: &'t KeySettle) -> StoreFuture<'t, KeySettled> {
        Box::pin(async move {
            match self {
                Self::Postgres(connection, postgres, is_marked) => {
                    postgres.settle_in(connection, settle, is_marked).await
                }
                Self::Sqlite(connection, sqlite) => sqlite.settle_in(connection, settle).await,
            }
        })
    }

    /// Records the outcome of a key that nobody claimed.
    pub(crate) fn record(self, recording: &'t KeyRecording) -> StoreFuture<'t, KeyRecorded> {
        Box::pin(async move {
            match self {
                Self::Postgres(connection, postgres, is_marked) => {
                    postgres.record_in(connection, recording, is_marked).await
                }
                Self::Sqlite(connection, sqlite) => sqlite.record_in(connection, recording).await,
            }
        })
    }

    /// Returns whether it is on the store's database, not only on one of the same kind.
    pub(crate) fn shares_database(self) -> StoreFuture<'t, bool> {
        Box::pin(async move {
            match self {
                Self::Postgres(connection, postgres, _) => postgres.is_database_of(connection).await,
                Self::Sqlite(connection, sqlite) => sqlite.is_database_of(connection).await,
            }
        })
    }

    /// Settles a message as sent.
    pub(crate) fn settle_success(self, report: &'t ClaimReport<'_>) -> StoreFuture<'t, StepResult> {
        Box::pin(async move {
            match self {
                Self::Postgres(connection, postgres, is_marked) => {
                    postgres.settle_success_in(connection, report, is_marked).await
                }
                Self::Sqlite(connection, sqlite) => sqlite.settle_success_in(connection, report).await,
            }
        })
    }
}
