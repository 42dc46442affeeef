//! A store's database as a type, for code that is written once for both.

use sqlx::postgres::{PgConnection, PgPoolOptions, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnection, SqlitePoolOptions};
use sqlx::{Database, Pool, Transaction};

use crate::caller_transaction::CallerConnection;
use crate::error::StoreError;
use crate::error_detail::redact;
use crate::future::{BoxFuture, StoreFuture};
use crate::transaction_state::TransactionState;

/// Begins a transaction on PostgreSQL and marks it, in one round trip. The mark ends with it, so a statement can tell that it runs
/// in this transaction. Set without a query: the caller may still choose an isolation level.
const BEGIN_MARKED: &str = "BEGIN; SET LOCAL ichido.transaction = 'open'";

/// PostgreSQL looks for a table without a schema in the one with the role's name first.
const IN_OUR_SCHEMA: &str = "the role's search path begins with the schema `ichido`, so a table of yours such as `messages` would be \
                             mistaken for Ichido's; connect as a role with another name, or add `?options=-csearch_path=public` to the URL";

/// The database of a store, as a type: `sqlx::Postgres` or `sqlx::Sqlite`.
pub trait StoreDatabase: sealed::SupportedDatabase + Database<Connection: CallerConnection> {
    /// Opens a pool of the caller's own connections to the database of a store's URL.
    ///
    /// Refused if the caller's tables would be looked for among Ichido's.
    fn connect(url: &str, max_connections: u32) -> StoreFuture<'_, Pool<Self>>;

    /// Fails if the tables of a pool's user would be looked for among Ichido's.
    fn check_schema(pool: &Pool<Self>) -> StoreFuture<'_, ()>;

    /// Begins a transaction that may read and then write, enqueue messages and settle keys.
    ///
    /// On SQLite it takes the write lock at once, and its commit is synced to the disk (see
    /// [`Store::begin_immediate`](crate::Store::begin_immediate)).
    fn begin(pool: &Pool<Self>) -> StoreFuture<'_, Transaction<'static, Self>>;

    /// Whether an error of the database can end a transaction, so that the next statement runs without one.
    const ROLLS_BACK_BY_ITSELF: bool;

    /// Returns the state of a transaction that [`StoreDatabase::begin`] began on a connection.
    ///
    /// One that has ended on SQLite is begun again, so that its owner can roll it back and the connection stays usable.
    fn state_of(transaction: &mut Self::Connection) -> BoxFuture<'_, TransactionState>;

    /// Returns the same when nothing but its settlement and its end will follow. One that was begun in its place has ended it too.
    ///
    /// On SQLite this releases the savepoints that are open.
    fn last_state_of(transaction: &mut Self::Connection) -> BoxFuture<'_, TransactionState>;
}

mod sealed {
    pub trait SupportedDatabase {}

    impl SupportedDatabase for sqlx::Postgres {}
    impl SupportedDatabase for sqlx::Sqlite {}
}

impl StoreDatabase for Postgres {
    fn connect(url: &str, max_connections: u32) -> StoreFuture<'_, Pool<Self>> {
        Box::pin(async move {
            if !matches!(url.split_once(':'), Some(("postgres" | "postgresql", _))) {
                return Err(StoreError::WrongDatabase("the URL does not name a PostgreSQL database"));
            }
            let options = crate::postgres::caller_options(url)?;
            let unavailable = |error| StoreError::Unavailable(redact(error));
            let pool = PgPoolOptions::new().max_connections(max_connections);
            let pool = pool.connect_with(options).await.map_err(unavailable)?;
            Self::check_schema(&pool).await?;
            Ok(pool)
        })
    }

    fn check_schema(pool: &Pool<Self>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let is_ours = sqlx::query_scalar(include_str!("postgres/sql/caller_schema.sql"));
            let is_ours = is_ours.fetch_one(pool).await;
            if is_ours.map_err(|error| StoreError::Unavailable(redact(error)))? {
                return Err(StoreError::Address(IN_OUR_SCHEMA));
            }
            Ok(())
        })
    }

    /// Cancelled in the middle, sqlx would return a connection to the pool without knowing that a transaction is open on it, and
    /// the next caller's writes would join it. So a task of its own begins it.
    fn begin(pool: &Pool<Self>) -> StoreFuture<'_, Transaction<'static, Self>> {
        Box::pin(async move {
            let pool = pool.clone();
            match tokio::spawn(async move { pool.begin_with(BEGIN_MARKED).await }).await {
                Ok(begun) => Ok(begun?),
                Err(_) => Err(StoreError::Busy), // The runtime stops.
            }
        })
    }

    const ROLLS_BACK_BY_ITSELF: bool = false;

    fn state_of(transaction: &mut PgConnection) -> BoxFuture<'_, TransactionState> {
        Box::pin(async move { TransactionState::on_postgres(transaction).await })
    }

    fn last_state_of(transaction: &mut PgConnection) -> BoxFuture<'_, TransactionState> {
        Self::state_of(transaction)
    }
}

impl StoreDatabase for Sqlite {
    fn connect(url: &str, max_connections: u32) -> StoreFuture<'_, Pool<Self>> {
        Box::pin(async move {
            if !url.starts_with("sqlite:") {
                return Err(StoreError::WrongDatabase("the URL does not name an SQLite database"));
            }
            let options = crate::sqlite::options(url)?;
            let pool = crate::sqlite::replaced_after_rollback(
                SqlitePoolOptions::new().max_connections(max_connections),
            );
            pool.connect_with(options).await.map_err(StoreError::Unavailable)
        })
    }

    /// SQLite has no schemas: the names of Ichido's tables have a prefix.
    fn check_schema(_: &Pool<Self>) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn begin(pool: &Pool<Self>) -> StoreFuture<'_, Transaction<'static, Self>> {
        Box::pin(async move { crate::sqlite::begin_marked(pool).await })
    }

    const ROLLS_BACK_BY_ITSELF: bool = true;

    fn state_of(transaction: &mut SqliteConnection) -> BoxFuture<'_, TransactionState> {
        Box::pin(async move {
            let probe = include_str!("sqlite/sql/transaction_probe.sql");
            match sqlx::query(probe).execute(transaction).await {
                Ok(_) => TransactionState::Ended,
                Err(_) => TransactionState::Open,
            }
        })
    }

    fn last_state_of(transaction: &mut SqliteConnection) -> BoxFuture<'_, TransactionState> {
        Box::pin(async move {
            let release = include_str!("sqlite/sql/transaction_release.sql");
            match sqlx::query(release).execute(&mut *transaction).await {
                Err(sqlx::Error::Database(error)) if error.message().starts_with("no such savepoint") => {
                    // Begun again if there is none. In one that its user began there is nothing to do.
                    Self::state_of(transaction).await;
                    TransactionState::Ended
                }
                // Any other error is of a connection that broke, and what is not committed is rolled back with it.
                _ => TransactionState::Open,
            }
        })
    }
}
