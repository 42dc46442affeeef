//! The interface over both databases.

mod actions;
mod alerts;
mod answers;
mod audit;
mod audit_page;
mod claims;
mod dead_letters;
mod facts;
mod failure_groups;
mod keys;
mod messages;
mod nodes;
mod paces;
mod queues;
mod readiness;
mod replays;
mod retention;
mod series;
mod sessions;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use ichido_core::time::Timestamp;
use sqlx::Transaction;
use sqlx::sqlite::{Sqlite, SqlitePool};

use crate::batch::Batcher;
use crate::caller_transaction::CallerConnection;
use crate::counters::Counters;
use crate::disk_space::DiskSpace;
use crate::driver::{Driver, on, retry_read};
use crate::error::StoreError;
use crate::future::BoxFuture;
use crate::future::StoreFuture;
use crate::ledger::KeyLookup;
use crate::postgres::wake::WakeUps;
use crate::record::LookupJob;
use crate::skew::Skew;
use crate::write_queues::WriteQueues;
pub use replays::Replayed;

/// The ledger and the outbox of one database.
///
/// Cheap to clone. All clones are the same store, which closes with the last one.
///
/// Examples that use its methods together: a request at [`crate::ledger`], a worker at [`crate::message`], a worker that dies
/// at [`crate::rescue`], maintenance at [`crate::node`]. [`crate::error`] lists what to do about each error.
#[derive(Clone)]
pub struct Store {
    driver: Arc<Driver>,
    skew: Arc<Skew>,
    write_queues: Arc<WriteQueues>,
    lookups: Arc<Batcher<LookupJob, KeyLookup>>,
    wake_ups: Arc<WakeUps>,
    counters: Arc<Counters>,
    disk_space: Arc<DiskSpace>,
}

/// Declares each handle and the method of [`Store`] that returns it.
macro_rules! handles {
    ($($(#[doc = $doc:literal])* $method:ident: $handle:ident,)*) => {
        impl Store {
            $(
                $(#[doc = $doc])*
                pub fn $method(&self) -> $handle<'_> {
                    $handle(self)
                }
            )*
        }

        $(
            $(#[doc = $doc])*
            ///
            #[doc = concat!("[`Store::", stringify!($method), "`] gives it.")]
            #[derive(Clone, Copy)]
            pub struct $handle<'a>(&'a Store);
        )*
    };
}

handles! {
    /// Operators' actions.
    actions: Actions,
    /// Alerts and their incidents.
    alerts: Alerts,
    /// Stored answers of models.
    answers: Answers,
    /// The audit trail.
    audit: AuditTrail,
    /// Claims of messages, for workers.
    claims: Claims,
    /// Dead letters.
    dead_letters: DeadLetters,
    /// Facts that workers publish about their queues.
    facts: Facts,
    /// Failure groups.
    failure_groups: FailureGroups,
    /// Idempotency keys.
    keys: Keys,
    /// Messages.
    messages: Messages,
    /// Nodes and their tasks.
    nodes: Nodes,
    /// The paces of destinations.
    paces: Paces,
    /// Queues.
    queues: Queues,
    /// Counts per minute.
    series: Series,
    /// Tokens for the HTTP API.
    tokens: Tokens,
}

impl Store {
    /// Opens a database and migrates its schema.
    ///
    /// The URL is `sqlite:path` or `postgres://…`. A missing file is created. An in-memory database is refused, because it
    /// would lose what it acknowledged.
    ///
    /// Must be called within a tokio runtime, on which the store's own tasks then run.
    ///
    /// - **SQLite**: the path is used as written, without parameters and without `%` escapes, and its folder must exist.
    ///   `max_connections` limits the readers, of which there is at least one; there is one writer.
    /// - **PostgreSQL**: 14 or later. The first start must be allowed to create the schema `ichido`. `max_connections` is at
    ///   least 1; one more connection listens for other nodes. It uses TLS if the server offers it. Over an untrusted network
    ///   add `?sslmode=verify-full`, with `&sslrootcert=file` unless the system trusts the issuer of the server's certificate:
    ///   without it, a server without TLS gets plain text. Connecting times out after 5 seconds, a statement after 25.
    ///
    /// ```
    /// use ichido_store::Store;
    /// use ichido_store::error::StoreError;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let file = ichido_store::testing::sqlite::fresh_file();
    /// # let path = file.path();
    /// let store = Store::open(&format!("sqlite:{}", path.display()), 4).await?;
    /// # drop(store);
    /// let refused = Store::open("mysql://root@localhost/shop", 4).await;
    /// assert!(matches!(refused, Err(StoreError::Address(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(url: &str, max_connections: u32) -> StoreFuture<'_, Self> {
        Box::pin(async move {
            let skew = Arc::<Skew>::default();
            let driver = Arc::new(Driver::open(url, max_connections, Arc::clone(&skew)).await?);
            let wake_ups = Arc::new(driver.wake_ups().await);
            let store = Self {
                write_queues: Arc::new(WriteQueues::start(&driver)),
                lookups: Arc::new(driver.lookups()),
                driver,
                skew,
                wake_ups,
                counters: Arc::default(),
                disk_space: Arc::default(),
            };
            store.begin_retention().await?;
            Ok(store)
        })
    }

    /// Closes the database. Waits up to `at_most` for operations in flight, and refuses later ones.
    ///
    /// An SQLite file is then complete without its log, unless another process has it open. Without this call, part of it stays
    /// in the log beside it, where the next process to open it finds it.
    pub fn close(&self, at_most: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match &*self.driver {
                Driver::Sqlite(sqlite) => drop(tokio::time::timeout(at_most, sqlite.close()).await),
                Driver::Postgres(_) => {}
            }
        })
    }

    /// Returns the time on the store's clock: the database's, plus what tests added.
    ///
    /// Use it for timestamps that go into the store, such as when a failed message is due, or before which messages are
    /// deleted.
    pub fn now(&self) -> StoreFuture<'_, Timestamp> {
        Box::pin(
            async move { retry_read(|| async { on!(&*self.driver, driver => driver.clock().await) }).await },
        )
    }

    /// Returns whether a caller's connection leads to this store's database, not only to one of the same kind.
    pub async fn is_database_of(&self, connection: &mut impl CallerConnection) -> Result<bool, StoreError> {
        self.in_transaction(connection)?.shares_database().await
    }

    /// Returns the counters of this process, to count more.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Begins a transaction on the caller's own pool that may read and then write.
    ///
    /// SQLite's plain `BEGIN` takes its lock with the first write, and fails at once, whatever the busy timeout, if somebody
    /// else wrote since its first read.
    pub fn begin_immediate(pool: &SqlitePool) -> StoreFuture<'_, Transaction<'static, Sqlite>> {
        Box::pin(async move { crate::sqlite::begin_immediate(pool).await })
    }

    /// Moves the store's clock ahead of the database's. For tests: leases, backoffs and expiries pass without sleeping.
    #[cfg(feature = "testing")]
    pub fn advance_clock(&self, ahead: Duration) {
        self.skew.pass(ahead);
    }

    /// Returns how far the store's clock was moved. Add it when measuring a lease with another clock.
    pub fn clock_advance(&self) -> Duration {
        self.skew.passed()
    }

    /// Moves the store's wall clock by this many microseconds. No time passes, as when an operator sets a machine's clock.
    #[cfg(feature = "testing")]
    pub fn step_clock(&self, micros: i64) {
        self.skew.step(micros);
    }

    /// Returns whether the database is SQLite; otherwise it is PostgreSQL.
    pub fn is_sqlite(&self) -> bool {
        matches!(&*self.driver, Driver::Sqlite(_))
    }

    /// Returns the pool of SQLite's writer, to check its settings.
    #[cfg(feature = "testing")]
    pub fn sqlite_writer(&self) -> Option<&SqlitePool> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => Some(sqlite.writer()),
            Driver::Postgres(_) => None,
        }
    }

    /// Returns PostgreSQL's pool, to check its settings.
    #[cfg(feature = "testing")]
    pub fn postgres_pool(&self) -> Option<&sqlx::PgPool> {
        match &*self.driver {
            Driver::Postgres(postgres) => Some(postgres.pool()),
            Driver::Sqlite(_) => None,
        }
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }
}

#[cfg(test)]
mod tests;
