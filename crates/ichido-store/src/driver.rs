//! The two databases behind the store, chosen by the address.

use std::sync::Arc;

use crate::error::StoreError;
use crate::message::QueueName;
use crate::postgres::Postgres;
use crate::skew::Skew;
use crate::sqlite::Sqlite;
use crate::wake::Wakes;

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
}

/// Reads. A connection that breaks under it is no loss: nothing was written, so it is asked once more over another.
pub(crate) async fn read<T, L>(look: impl Fn() -> L) -> Result<T, StoreError>
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
