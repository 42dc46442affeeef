//! The app's own connections, to the database of the engine's store.
//!
//! The statements are the same for both databases: a view hides the differences (`schema/*.sql`).

use std::ops::DerefMut;
use std::time::Duration;

use axum::extract::FromRequestParts;
use http::request::Parts;
use ichido::once::{MissingLayer, Pool, Tx, TxError, TxGuard};
use ichido_core::digest::Digest;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{Enqueued, NewMessage};
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{PgConnection, PgPool, Postgres, Sqlite, SqliteConnection, SqlitePool, Transaction};

use crate::settings::limits;
use crate::store_url::StoreUrl;

/// How long a write waits for another one on SQLite.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// One value on PostgreSQL, another on SQLite.
#[derive(Clone, Debug)]
pub(crate) enum Either<P, S> {
    Postgres(P),
    Sqlite(S),
}

/// Runs the same statement on either database.
macro_rules! on {
    ($connection:expr, $name:ident => $call:expr) => {
        match $connection {
            $crate::database::Either::Postgres($name) => $call,
            $crate::database::Either::Sqlite($name) => $call,
        }
    };
}
pub(crate) use on;

/// A connection pool.
pub(crate) type AppDatabase = Either<PgPool, SqlitePool>;
/// A connection, whether it belongs to the pool, our own transaction, or the layer's transaction.
pub(crate) type DbConnection<'a> = Either<&'a mut PgConnection, &'a mut SqliteConnection>;
/// A connection from the pool for reads, without a transaction.
pub(crate) type PooledConnection = Either<PoolConnection<Postgres>, PoolConnection<Sqlite>>;
/// A transaction of our own. It rolls back when dropped.
pub(crate) type OwnTransaction = Either<Transaction<'static, Postgres>, Transaction<'static, Sqlite>>;
/// The transaction that the layer opens for a request, and ends.
pub(crate) type LayerTransaction = Either<Tx<Postgres>, Tx<Sqlite>>;
type LayerTransactionGuard = Either<TxGuard<Postgres>, TxGuard<Sqlite>>;

impl AppDatabase {
    /// Opens a database that the store has opened before, and creates the app's tables.
    pub(crate) async fn open(url: &str) -> Result<Self, StoreError> {
        let database = if let Some(file) = StoreUrl::new(url).file() {
            let options =
                SqliteConnectOptions::new().filename(file).busy_timeout(BUSY_WAIT).foreign_keys(true);
            let pool = SqlitePoolOptions::new().max_connections(limits::MAX_CONNECTIONS);
            Self::Sqlite(pool.connect_with(options).await?)
        } else {
            let pool = PgPoolOptions::new().max_connections(limits::MAX_CONNECTIONS);
            Self::Postgres(pool.connect(url).await?)
        };
        let mut open = database.begin().await?;
        match &mut open {
            Either::Postgres(transaction) => {
                // Two processes that start at once would both create the tables.
                sqlx::query("SELECT pg_advisory_xact_lock(hashtext('bookmarks'))")
                    .execute(&mut **transaction)
                    .await?;
                sqlx::raw_sql(include_str!("../schema/postgres.sql")).execute(&mut **transaction).await?;
            }
            Either::Sqlite(transaction) => {
                sqlx::raw_sql(include_str!("../schema/sqlite.sql")).execute(&mut **transaction).await?;
            }
        }
        open.commit().await?;
        Ok(database)
    }

    pub(crate) async fn connect(&self) -> Result<PooledConnection, sqlx::Error> {
        Ok(match self {
            Self::Postgres(pool) => Either::Postgres(pool.acquire().await?),
            Self::Sqlite(pool) => Either::Sqlite(pool.acquire().await?),
        })
    }

    /// Begins a transaction that may read and then write.
    pub(crate) async fn begin(&self) -> Result<OwnTransaction, StoreError> {
        Ok(match self {
            Self::Postgres(pool) => Either::Postgres(pool.begin().await?),
            Self::Sqlite(pool) => Either::Sqlite(Store::begin_immediate(pool).await?),
        })
    }

    /// Returns the same pool, for the layer.
    pub(crate) fn pool(&self) -> Pool {
        match self {
            Self::Postgres(pool) => pool.clone().into(),
            Self::Sqlite(pool) => pool.clone().into(),
        }
    }

    pub(crate) async fn close(&self) {
        on!(self, pool => pool.close().await);
    }
}

impl OwnTransaction {
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        on!(self, transaction => transaction.commit().await)
    }
}

impl<P, S> Either<P, S>
where
    P: DerefMut<Target = PgConnection>,
    S: DerefMut<Target = SqliteConnection>,
{
    /// Returns the connection that statements run on.
    pub(crate) fn connection(&mut self) -> DbConnection<'_> {
        match self {
            Self::Postgres(owner) => Either::Postgres(&mut **owner),
            Self::Sqlite(owner) => Either::Sqlite(&mut **owner),
        }
    }
}

impl DbConnection<'_> {
    /// Enqueues a message in the transaction that is open on this connection.
    // SPEC D4.
    pub(crate) async fn enqueue(
        &mut self,
        store: &Store,
        message: NewMessage,
    ) -> Result<Enqueued, StoreError> {
        match self {
            Self::Postgres(connection) => store.messages().enqueue_in(&mut **connection, message).await,
            Self::Sqlite(connection) => store.messages().enqueue_in(&mut **connection, message).await,
        }
    }
}

impl LayerTransaction {
    pub(crate) async fn lock(&self) -> Result<LayerTransactionGuard, TxError> {
        Ok(match self {
            Self::Postgres(tx) => Either::Postgres(tx.lock().await?),
            Self::Sqlite(tx) => Either::Sqlite(tx.lock().await?),
        })
    }
}

/// Extracts the transaction in a handler behind the layer.
impl<S: Send + Sync> FromRequestParts<S> for LayerTransaction {
    type Rejection = MissingLayer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingLayer> {
        layer_transaction(parts).ok_or(MissingLayer::NoTransaction)
    }
}

/// Returns the layer's transaction, if the request has a key.
pub(crate) fn layer_transaction(parts: &Parts) -> Option<LayerTransaction> {
    let postgres = parts.extensions.get::<Tx<Postgres>>().cloned().map(Either::Postgres);
    postgres.or_else(|| parts.extensions.get::<Tx<Sqlite>>().cloned().map(Either::Sqlite))
}

/// Hashes a secret for storage.
pub(crate) fn hash(secret: &[u8]) -> [u8; 32] {
    *Digest::of_bytes(secret).as_bytes()
}
