//! The two databases behind the store, chosen by the address.

use std::sync::Arc;

use crate::columns::Row;
use crate::error::StoreError;
use crate::message::QueueName;
use crate::postgres::Postgres;
use crate::postgres::wake::Wakes;
use crate::skew::Skew;
use crate::sqlite::Sqlite;
use crate::statement::{SqlValue, Statement};

/// Asks whichever database it is: both answer the same methods.
macro_rules! on {
    ($driver:expr, $name:ident => $call:expr) => {
        match $driver {
            $crate::driver::Driver::Postgres($name) => $call,
            $crate::driver::Driver::Sqlite($name) => $call,
        }
    };
}
pub(crate) use on;

/// What is said of an address that names neither.
pub(crate) const UNKNOWN_ADDRESS: &str =
    "the address names no database that we know: write sqlite:path or postgres://user@host/database";

pub(crate) enum Driver {
    Postgres(Arc<Postgres>),
    Sqlite(Arc<Sqlite>),
}

impl Driver {
    /// Opens the database that an address names and brings its schema up to date.
    pub(crate) async fn open(url: &str, connections_max: u32, skew: Arc<Skew>) -> Result<Self, StoreError> {
        let driver = match url.split_once(':') {
            Some(("sqlite", _)) => Self::Sqlite(Arc::new(Sqlite::connect(url, connections_max, skew).await?)),
            Some(("postgres" | "postgresql", _)) => {
                Self::Postgres(Arc::new(Postgres::connect(url, connections_max, skew).await?))
            }
            _ => {
                return Err(StoreError::Address(UNKNOWN_ADDRESS));
            }
        };
        on!(&driver, driver => driver.migrate().await)?;
        Ok(driver)
    }

    /// The wake-ups of its store: other nodes are told where the database carries messages between them.
    pub(crate) async fn wakes(&self) -> Wakes {
        match self {
            Self::Postgres(postgres) => postgres.wakes().await,
            Self::Sqlite(_) => Wakes::here(),
        }
    }

    /// Somebody says that a queue has work. SQLite always looks from the beginning.
    pub(crate) fn woken(&self, queue: &QueueName) {
        if let Self::Postgres(postgres) = self {
            postgres.woken(queue);
        }
    }

    /// A message of a queue can be claimed again: it is older than where the last claim ended.
    pub(crate) fn note_requeued(&self, queue: &QueueName) {
        if let Self::Postgres(postgres) = self {
            postgres.note_requeued(queue);
        }
    }

    /// Reads the rows that a statement finds.
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

    /// Reads the row that a statement finds, if any.
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

    /// Reads the one row that a statement always finds.
    pub(crate) async fn one(&self, statement: Statement, values: &[SqlValue<'_>]) -> Result<Row, StoreError> {
        Ok(self.optional(statement, values).await?.ok_or(sqlx::Error::RowNotFound)?)
    }

    /// Writes by one statement; returns how many rows it changed.
    pub(crate) async fn execute(
        &self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<u64, StoreError> {
        on!(self, driver => driver.write_with(async |mut it| it.execute(statement, values).await).await)
    }

    /// Writes by one statement; returns the rows that it changed.
    pub(crate) async fn all_changed(
        &self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        on!(self, driver => driver.write_with(async |mut it| it.all(statement, values).await).await)
    }

    /// Writes by one statement; returns the row that it changed, if any.
    pub(crate) async fn changed(
        &self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Option<Row>, StoreError> {
        on!(self, driver => driver.write_with(async |mut it| it.optional(statement, values).await).await)
    }
}

/// Reads. A connection that breaks under it is no loss: nothing was written, so it is asked once more over another.
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
