//! The app's own connections, to the database of the engine's store.
//!
//! The statements are the same for both databases: a view hides the differences (`schema/*.sql`).

use std::ops::DerefMut;

use axum::extract::FromRequestParts;
use http::request::Parts;
use ichido::digest::Digest;
use ichido::once::{MissingLayer, TxError, TxGuard};
use ichido::prelude::*;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, SqliteConnection};

use crate::store_url::StoreUrl;

/// One value on PostgreSQL, another on SQLite.
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

/// The database, with the engine's tables and the app's own.
pub(crate) type AppDatabase = Either<Ichido<Postgres>, Ichido<Sqlite>>;
/// A connection, whether it belongs to the pool, our own transaction, or the layer's transaction.
pub(crate) type DbConnection<'a> = Either<&'a mut PgConnection, &'a mut SqliteConnection>;
/// A connection from the pool for reads, without a transaction.
pub(crate) type PooledConnection = Either<PoolConnection<Postgres>, PoolConnection<Sqlite>>;
/// A transaction of our own. It rolls back when dropped.
pub(crate) type OwnTransaction = Either<Transaction<Postgres>, Transaction<Sqlite>>;
/// The transaction that the layer opens for a request, and ends.
pub(crate) type LayerTransaction = Either<Tx<Postgres>, Tx<Sqlite>>;
type LayerTransactionGuard = Either<TxGuard<Postgres>, TxGuard<Sqlite>>;

impl AppDatabase {
    /// Opens the database and creates the app's tables.
    pub(crate) async fn open(url: &str) -> Result<Self, StoreError> {
        let database = match StoreUrl::new(url).file() {
            Some(_) => Self::Sqlite(Ichido::connect(url).await?),
            None => Self::Postgres(Ichido::connect(url).await?),
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
            Self::Postgres(ichido) => Either::Postgres(ichido.pool().acquire().await?),
            Self::Sqlite(ichido) => Either::Sqlite(ichido.pool().acquire().await?),
        })
    }

    /// Begins a transaction that may read and then write.
    pub(crate) async fn begin(&self) -> Result<OwnTransaction, StoreError> {
        Ok(match self {
            Self::Postgres(ichido) => Either::Postgres(ichido.begin().await?),
            Self::Sqlite(ichido) => Either::Sqlite(ichido.begin().await?),
        })
    }

    pub(crate) async fn close(&self) {
        on!(self, ichido => ichido.pool().close().await);
    }
}

impl OwnTransaction {
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
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
