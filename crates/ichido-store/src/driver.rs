//! The two databases behind the store, chosen by the URL.

use std::sync::Arc;

use crate::batch::{BatchLimits, Batcher};
use crate::columns::Row;
use crate::error::StoreError;
use crate::ledger::KeyLookup;
use crate::message::QueueName;
use crate::postgres::Postgres;
use crate::postgres::wake::WakeUps;
use crate::record::LookupJob;
use crate::skew::Skew;
use crate::sqlite::Sqlite;
use crate::statement::{SqlValue, Statement};

/// Calls a method that both drivers have.
macro_rules! on {
    ($driver:expr, $name:ident => $call:expr) => {
        match $driver {
            $crate::driver::Driver::Postgres($name) => $call,
            $crate::driver::Driver::Sqlite($name) => $call,
        }
    };
}
pub(crate) use on;

/// The error for a URL of neither database.
pub(crate) const UNKNOWN_ADDRESS: &str =
    "the URL does not name a supported database: write sqlite:path or postgres://user@host/database";

pub(crate) enum Driver {
    Postgres(Arc<Postgres>),
    Sqlite(Arc<Sqlite>),
}

impl Driver {
    /// Opens the database of a URL and migrates its schema.
    pub(crate) async fn open(url: &str, max_connections: u32, skew: Arc<Skew>) -> Result<Self, StoreError> {
        let driver = match url.split_once(':') {
            Some(("sqlite", _)) => Self::Sqlite(Arc::new(Sqlite::connect(url, max_connections, skew).await?)),
            Some(("postgres" | "postgresql", _)) => {
                Self::Postgres(Arc::new(Postgres::connect(url, max_connections, skew).await?))
            }
            _ => {
                return Err(StoreError::Address(UNKNOWN_ADDRESS));
            }
        };
        on!(&driver, driver => driver.migrate().await)?;
        Ok(driver)
    }

    /// Starts the stream of look-ups of keys: requests that arrive together share a read.
    pub(crate) fn lookups(&self) -> Batcher<LookupJob, KeyLookup> {
        on!(self, driver => Batcher::start(BatchLimits::DEFAULT, Arc::clone(driver)))
    }

    /// Creates the store's wake-ups. Other nodes are notified if the database carries notifications.
    pub(crate) async fn wake_ups(&self) -> WakeUps {
        match self {
            Self::Postgres(postgres) => postgres.wake_ups().await,
            Self::Sqlite(_) => WakeUps::local(),
        }
    }

    /// Notes that a queue is said to have work. SQLite always scans from the start.
    pub(crate) fn note_wake(&self, queue: &QueueName) {
        if let Self::Postgres(postgres) = self {
            postgres.note_wake(queue);
        }
    }

    /// Notes that a message before the last claim's position can be claimed again.
    pub(crate) fn note_requeued(&self, queue: &QueueName) {
        if let Self::Postgres(postgres) = self {
            postgres.note_requeued(queue);
        }
    }

    /// Reads the rows of a statement.
    pub(crate) async fn all(
        &self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        retry_read(|| async {
            on!(self, driver => driver.read_with(values, async |mut it| it.all(statement, values).await).await)
        })
        .await
    }

    /// Reads the row of a statement, if any.
    pub(crate) async fn optional(
        &self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Option<Row>, StoreError> {
        retry_read(|| async {
            on!(self, driver => driver.read_with(values, async |mut it| it.optional(statement, values).await).await)
        })
        .await
    }

    /// Reads the one row that a statement always returns.
    pub(crate) async fn one(&self, statement: Statement, values: &[SqlValue<'_>]) -> Result<Row, StoreError> {
        Ok(self.optional(statement, values).await?.ok_or(sqlx::Error::RowNotFound)?)
    }

    /// Writes with one statement. Returns how many rows it changed.
    pub(crate) async fn execute(
        &self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<u64, StoreError> {
        on!(self, driver => driver.write_with(async |mut it| it.execute(statement, values).await).await)
    }

    /// Writes with one statement. Returns the rows that it changed.
    pub(crate) async fn write_returning_all(
        &self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        on!(self, driver => driver.write_with(async |mut it| it.all(statement, values).await).await)
    }

    /// Writes with one statement. Returns the row that it changed, if any.
    pub(crate) async fn write_returning(
        &self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Option<Row>, StoreError> {
        on!(self, driver => driver.write_with(async |mut it| it.optional(statement, values).await).await)
    }
}

/// Reads, and retries once if the connection breaks. Nothing was written, so a second connection can repeat the read.
pub(crate) async fn retry_read<T, L>(look: impl Fn() -> L) -> Result<T, StoreError>
where
    L: Future<Output = Result<T, StoreError>>,
{
    match look().await {
        Err(StoreError::Unknown(_)) => match look().await {
            Err(StoreError::Unknown(error)) => Err(StoreError::Unavailable(error)),
            outcome => outcome,
        },
        outcome => outcome,
    }
}
