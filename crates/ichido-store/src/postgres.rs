//! The PostgreSQL driver: READ COMMITTED, prepared statements, batches with `unnest`, one statement if one is enough.
//!
//! Sequential scans are disabled on our connections. A prepared statement keeps the plan from when its tables were empty; with
//! that plan the ledger ran at half its rate once there were rows. Each of our statements has an index.
//!
//! Locks are taken in one order, so two nodes never deadlock: leases by fence, ledger rows by name, start marks by message and
//! fence, each in a statement that sorts before it locks.

mod audit;
pub(crate) mod connections;
pub(crate) mod enqueue;
pub(crate) mod ledger;
mod maintenance;
mod parameters;
mod repeated;
mod scan_cursor;
pub(crate) mod step;
pub(crate) mod wake;
mod work;

use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgConnection};

use self::connections::{ACQUIRE_TIMEOUT, BATCH_TIMEOUT, CALL_TIMEOUT, ConnectionPool, KEEPALIVES, LIMITS};
use crate::claim_tracker::ClaimTracker;
use crate::error::StoreError;
use crate::error_class::{ErrorClass, classify};
use crate::message::QueueName;
use crate::migrations;
use crate::page_reads;
use crate::skew::Skew;
use crate::split_retry::WriteMode;
use crate::statement::{DbConnection, SqlValue};
use wake::WakeUps;

/// How long a statement waits for a row that somebody else has locked. Short, because the whole batch waits; the locked row is
/// retried alone.
const LOCK_TIMEOUT: &str = "200ms";

/// The same for parts of a batch that has already waited. One of its rows is locked, and we only need to find out which.
const PART_LOCK_TIMEOUT: &str = "5ms";

/// How long a node waits for another node's migration.
const MIGRATION_LOCK_TIMEOUT: &str = "60s";

pub(crate) struct Postgres {
    /// For single calls.
    calls: ConnectionPool,
    /// For batches, over the same connections.
    batches: ConnectionPool,
    /// For parts of batches that failed as a whole.
    parts: ConnectionPool,
    /// For the reads of pages, over connections of their own.
    pages: ConnectionPool,
    options: PgConnectOptions,
    skew: Arc<Skew>,
    /// Where the last claim of each queue ended.
    cursors: Mutex<HashMap<QueueName, scan_cursor::ScanCursor>>,
    claim_tracker: ClaimTracker,
    /// Whether most keys of the last claims existed already.
    mostly_known: AtomicBool,
}

impl Postgres {
    /// Connects. Does not migrate.
    pub(crate) async fn connect(
        url: &str,
        max_connections: u32,
        skew: Arc<Skew>,
    ) -> Result<Self, StoreError> {
        let options = options(url)?;
        let refusal = first_connection(&options).await?;
        let calls = ConnectionPool::new(options.clone(), max_connections.max(1), CALL_TIMEOUT);
        calls.execute(sqlx::query("SELECT 1")).await.map_err(|error| match (refusal, error) {
            (Some(error), _) | (None, StoreError::Unknown(error)) => StoreError::Unavailable(error),
            (None, error) => error,
        })?;
        Ok(Self {
            parts: calls.with_answer_timeout(BATCH_TIMEOUT).with_lock_timeout(PART_LOCK_TIMEOUT),
            batches: calls.with_answer_timeout(BATCH_TIMEOUT),
            calls,
            pages: ConnectionPool::new(page_options(&options), page_reads::MAX_CONNECTIONS, CALL_TIMEOUT),
            options,
            skew,
            cursors: Mutex::default(),
            claim_tracker: ClaimTracker::default(),
            mostly_known: AtomicBool::new(false),
        })
    }

    /// Migrates the schema. Many nodes may call it at once.
    pub(crate) async fn migrate(&self) -> Result<(), StoreError> {
        let migrator = migrations::postgres();
        // On a separate connection, because it may wait for another node's migration and has no time limit.
        let settings = [("lock_timeout", MIGRATION_LOCK_TIMEOUT), ("statement_timeout", "0")];
        let options = self.options.clone().options(settings);
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await
            .map_err(StoreError::Unavailable)?;
        let outcome = migrator.run(&pool).await;
        let rebased = match outcome {
            Ok(()) => sqlx::query("SELECT ichido.position_rebase()").execute(&pool).await.map(drop),
            Err(_) => Ok(()),
        };
        pool.close().await;
        outcome.map_err(|error| migrations::failed(&migrator, error))?;
        Ok(rebased?)
    }

    /// Returns the pool, for tests.
    #[cfg(feature = "testing")]
    pub(crate) fn pool(&self) -> &sqlx::PgPool {
        self.calls.pool()
    }

    /// Creates wake-ups that reach other nodes.
    pub(crate) async fn wake_ups(&self) -> WakeUps {
        WakeUps::across_nodes(self.calls.clone(), self.options.clone()).await
    }

    /// Reads over one connection. The values are for SQLite, which must read the clock first if they need it.
    pub(crate) async fn read_with<T>(
        &self,
        _values: &[SqlValue<'_>],
        ask: impl AsyncFnOnce(DbConnection<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let pool = if page_reads::is_inside() { &self.pages } else { &self.calls };
        pool.with_connection(async |connection: &mut PgConnection| ask(self.connection(connection)).await)
            .await
    }

    /// Runs a statement that is its own transaction.
    pub(crate) async fn write_with<T>(
        &self,
        ask: impl AsyncFnOnce(DbConnection<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with_connection(async |connection: &mut PgConnection| ask(self.connection(connection)).await)
            .await
    }

    /// Runs a closure with one connection.
    pub(crate) async fn with_connection<T>(
        &self,
        run: impl AsyncFnOnce(&mut PgConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.calls.with_connection(run).await
    }

    /// Wraps a connection for statements of both databases.
    pub(crate) fn connection<'c>(&self, connection: &'c mut PgConnection) -> DbConnection<'c> {
        DbConnection::Postgres(connection, self.skew())
    }

    /// Returns the pool for a batch.
    fn pool_for(&self, manner: WriteMode) -> &ConnectionPool {
        if manner.is_part { &self.parts } else { &self.batches }
    }

    pub(crate) fn skew(&self) -> i64 {
        self.skew.wall()
    }
}

/// Returns the options of every connection of ours.
pub(crate) fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let options = caller_options(url)?.options([
        ("lock_timeout", LOCK_TIMEOUT),
        ("application_name", "ichido"),
        // A cached plan may be from when the table was empty and a full scan was cheapest; with a million rows it is
        // not. Each of our statements has an index.
        ("enable_seqscan", "off"),
        // Compiling a statement takes longer than running any of ours.
        ("jit", "off"),
    ]);
    Ok(options.options(LIMITS))
}

/// Returns the options of connections for pages. The last value of a setting counts.
fn page_options(options: &PgConnectOptions) -> PgConnectOptions {
    let timeout = format!("{}ms", page_reads::STATEMENT_TIMEOUT.as_millis());
    options.clone().options([("statement_timeout", timeout)])
}

/// Returns the options of the caller's own connections: its statements have no limits of ours.
pub(crate) fn caller_options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let options = PgConnectOptions::from_str(&parameters::supported(url)).map_err(|_| {
        StoreError::Address(
            "the URL is not a valid PostgreSQL URL: write postgres://user:password@host:port/database, and / ? # @ : % in the password as %2F %3F %23 %40 %3A %25",
        )
    })?;
    // Explicit, because a role or a database may be configured differently. An acknowledgement must mean durable, and the check
    // of a claim at the end of a transaction needs the claim's last renewal, which a snapshot does not have.
    let options =
        options.options([("synchronous_commit", "on"), ("default_transaction_isolation", "read committed")]);
    Ok(options.options(KEEPALIVES))
}

/// Connects once, to get the server's own error. A pool retries until its timeout and then reports only that.
///
/// Returns an error that may be worth waiting for, to report if the pool times out.
pub(crate) async fn first_connection(options: &PgConnectOptions) -> Result<Option<sqlx::Error>, StoreError> {
    let silent = || {
        let detail = format!("the server did not respond within {ACQUIRE_TIMEOUT:?}");
        sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, detail))
    };
    match tokio::time::timeout(ACQUIRE_TIMEOUT, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => {
            // The connection worked, so an error on close does not matter.
            drop(connection.close().await);
            Ok(None)
        }
        // The server is starting, or full.
        Ok(Err(error @ sqlx::Error::Database(_))) if classify(&error) == ErrorClass::NotConnected => {
            Ok(Some(error))
        }
        Ok(Err(error)) => Err(StoreError::Unavailable(error)),
        Err(_) => Err(StoreError::Unavailable(silent())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::postgres::fresh_database;

    /// Reads a setting of the connection.
    async fn setting(pool: &ConnectionPool, name: &str) -> String {
        let query = sqlx::query("SELECT current_setting($1)").bind(name);
        sqlx::Row::try_get(&pool.one(query).await.unwrap(), 0).unwrap()
    }

    #[tokio::test]
    async fn a_page_cannot_keep_the_database_busy() {
        let database = fresh_database().await;
        let postgres = Postgres::connect(&database.url, 1, Arc::default()).await.unwrap();
        for (pool, timeout) in [(&postgres.pages, "3s"), (&postgres.calls, "20s")] {
            assert_eq!(setting(pool, "statement_timeout").await, timeout);
        }
        // While one call has the only connection, a page reads over one of its own.
        let busy = postgres.calls.with_connection(async |_| {
            let page = page_reads::for_page(async {
                postgres.clock().await.unwrap();
                page_reads::cost().unwrap()
            });
            Ok(page.await)
        });
        let cost = busy.await.unwrap();
        assert_eq!((cost.statements, cost.rows, cost.listed[0].name), (1, 1, "now"));
    }

    #[tokio::test]
    async fn only_parts_of_batches_are_in_a_hurry() {
        let database = fresh_database().await;
        let postgres = Postgres::connect(&database.url, 1, Arc::default()).await.unwrap();
        let whole = WriteMode::default();
        for _ in 0..2 {
            assert_eq!(setting(postgres.pool_for(whole), "lock_timeout").await, LOCK_TIMEOUT);
            let part = WriteMode { is_part: true, ..whole };
            assert_eq!(setting(postgres.pool_for(part), "lock_timeout").await, PART_LOCK_TIMEOUT);
        }
    }
}
