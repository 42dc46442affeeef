//! A store's database as a type, for code that is written once for both.

use sqlx::postgres::{PgPoolOptions, Postgres};
use sqlx::sqlite::{Sqlite, SqlitePoolOptions};
use sqlx::{Database, Pool, Transaction};

use crate::caller_transaction::CallerConnection;
use crate::error::StoreError;

/// The database of a store, as a type: `sqlx::Postgres` or `sqlx::Sqlite`.
pub trait StoreDatabase: sealed::SupportedDatabase + Database<Connection: CallerConnection> {
    /// Opens a pool of the caller's own connections to the database of a store's URL.
    fn connect(
        url: &str,
        max_connections: u32,
    ) -> impl Future<Output = Result<Pool<Self>, StoreError>> + Send;

    /// Begins a transaction that may read and then write, enqueue messages and settle keys.
    ///
    /// On SQLite it takes the write lock at once, and its commit is synced to the disk (see
    /// [`Store::begin_immediate`](crate::Store::begin_immediate)).
    fn begin(
        pool: &Pool<Self>,
    ) -> impl Future<Output = Result<Transaction<'static, Self>, StoreError>> + Send;
}

mod sealed {
    pub trait SupportedDatabase {}

    impl SupportedDatabase for sqlx::Postgres {}
    impl SupportedDatabase for sqlx::Sqlite {}
}

impl StoreDatabase for Postgres {
    async fn connect(url: &str, max_connections: u32) -> Result<Pool<Self>, StoreError> {
        if !matches!(url.split_once(':'), Some(("postgres" | "postgresql", _))) {
            return Err(StoreError::WrongDatabase("the URL does not name a PostgreSQL database"));
        }
        let pool = PgPoolOptions::new().max_connections(max_connections);
        pool.connect(url).await.map_err(StoreError::Unavailable)
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>, StoreError> {
        Ok(pool.begin().await?)
    }
}

impl StoreDatabase for Sqlite {
    async fn connect(url: &str, max_connections: u32) -> Result<Pool<Self>, StoreError> {
        if !url.starts_with("sqlite:") {
            return Err(StoreError::WrongDatabase("the URL does not name an SQLite database"));
        }
        let options = crate::sqlite::options(url)?;
        let pool = SqlitePoolOptions::new().max_connections(max_connections);
        pool.connect_with(options).await.map_err(StoreError::Unavailable)
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>, StoreError> {
        crate::sqlite::begin_immediate(pool).await
    }
}
