//! A database that can be stopped, and comes back with its data.
//!
//! Guarantee: while it is stopped, nothing can be written, by any process; afterwards everything is there that was acknowledged.

use std::sync::{Arc, Mutex};

use ichido_core::sync::lock;
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};

use super::postgres::{Cluster, StopMode};
use super::sqlite::{SqliteTestFile, fresh_file};

/// A database of its own.
pub struct StoppableDatabase {
    /// The URL to open.
    pub url: String,
    kind: Kind,
}

enum Kind {
    Postgres {
        cluster: Arc<Cluster>,
    },
    /// The connection holds the file's lock while the database counts as stopped.
    Sqlite {
        holder: Mutex<Option<SqliteConnection>>,
        _file: SqliteTestFile,
    },
}

impl StoppableDatabase {
    /// Starts a server with one empty database.
    ///
    /// # Panics
    ///
    /// If there is no PostgreSQL.
    pub async fn postgres() -> Self {
        let cluster = Arc::new(Cluster::start(&[]).expect("a PostgreSQL server"));
        let url = cluster.database().await.expect("a database").url.clone();
        Self { url, kind: Kind::Postgres { cluster } }
    }

    /// Returns a file at which no database exists yet.
    pub fn sqlite() -> Self {
        let file = fresh_file();
        Self { url: file.url.clone(), kind: Kind::Sqlite { holder: Mutex::default(), _file: file } }
    }

    /// Stops the server, or locks the file as another process would that never lets go.
    ///
    /// # Panics
    ///
    /// If the server cannot be stopped, or the file cannot be locked.
    pub async fn stop(&self) {
        match &self.kind {
            Kind::Postgres { cluster } => {
                let cluster = Arc::clone(cluster);
                let stopped = tokio::task::spawn_blocking(move || cluster.stop(StopMode::Fast)).await;
                stopped.expect("it does not panic").expect("the server stops");
            }
            Kind::Sqlite { holder, .. } => {
                let mut connection = SqliteConnection::connect(&self.url).await.expect("a connection");
                connection.execute("BEGIN IMMEDIATE").await.expect("the lock");
                *lock(holder) = Some(connection);
            }
        }
    }

    /// Ends what [`StoppableDatabase::stop`] began.
    ///
    /// # Panics
    ///
    /// If the server does not start, or the file stays locked.
    pub async fn start_again(&self) {
        match &self.kind {
            Kind::Postgres { cluster } => {
                let cluster = Arc::clone(cluster);
                let started = tokio::task::spawn_blocking(move || cluster.start_again()).await;
                started.expect("it does not panic").expect("the server starts");
            }
            Kind::Sqlite { holder, .. } => {
                let held = lock(holder).take().expect("it was stopped");
                held.close().await.expect("the lock is released");
            }
        }
    }

    /// Makes every stored outcome expire, as time does: long ago, because retention may be behind the clock.
    ///
    /// # Panics
    ///
    /// If the database does not respond.
    pub async fn expire_keys(&self) {
        const POSTGRES: &str = "UPDATE ichido.ledger SET expires_at = 'epoch' WHERE expires_at IS NOT NULL";
        const SQLITE: &str = "UPDATE ichido_ledger SET expires_at = 0 WHERE expires_at IS NOT NULL";
        match &self.kind {
            Kind::Postgres { .. } => {
                let mut connection = PgConnection::connect(&self.url).await.expect("a connection");
                connection.execute(POSTGRES).await.expect("they expire");
            }
            Kind::Sqlite { .. } => {
                let mut connection = SqliteConnection::connect(&self.url).await.expect("a connection");
                connection.execute(SQLITE).await.expect("they expire");
            }
        }
    }
}
