//! The one interface over the databases.

mod actions;
mod alerts;
mod answers;
mod audit;
mod claims;
mod dead_letters;
mod facts;
mod keys;
mod messages;
mod nodes;
mod paces;
mod queues;
mod readiness;
mod retention;
mod tallies;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use ichido_core::time::Timestamp;
use sqlx::Transaction;
use sqlx::sqlite::{Sqlite, SqlitePool};

use crate::disk_space::DiskSpace;
use crate::driver::{Driver, on, retry_read};
use crate::error::StoreError;
use crate::postgres::Postgres;
use crate::postgres::wake::Wakes;
use crate::skew::Skew;
use crate::tally::Counters;
use crate::write_queues::WriteQueues;

/// The ledger and the outbox of one database. Cheap to clone; all clones are the same store, and it closes with the last.
///
/// Programs that show its methods together: a request at [`crate::ledger`], a worker at [`crate::message`], a worker that dies at
/// [`crate::rescue`], the upkeep at [`crate::node`]. What to do about an error: [`crate::error`].
#[derive(Clone)]
pub struct Store {
    driver: Arc<Driver>,
    skew: Arc<Skew>,
    write_queues: Arc<WriteQueues>,
    wakes: Arc<Wakes>,
    tally: Arc<Counters>,
    disk_space: Arc<DiskSpace>,
}

/// Declares each handle and the method of [`Store`] that gives it.
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
    /// What operators did.
    actions: Actions,
    /// Alerts: their incidents.
    alerts: Alerts,
    /// What models answered.
    answers: Answers,
    /// The audit trail.
    audit: AuditTrail,
    /// The worker's side of messages: claims.
    claims: Claims,
    /// Dead letters.
    dead_letters: DeadLetters,
    /// What workers publish of their queues.
    facts: Facts,
    /// Idempotency keys.
    keys: Keys,
    /// Messages.
    messages: Messages,
    /// Nodes and their duties.
    nodes: Nodes,
    /// The paces of destinations.
    paces: Paces,
    /// Queues.
    queues: Queues,
    /// Counts per minute.
    tallies: Tallies,
    /// Tokens for the HTTP API.
    tokens: Tokens,
}

impl Store {
    /// Opens a database by its address, `sqlite:path` or `postgres://…`, and brings its schema up to date. A file that is not there
    /// is made; a database in memory is refused, because it forgets what it acknowledged.
    ///
    /// Must be called within a tokio runtime, which the store's own tasks then run on.
    ///
    /// - **SQLite**: the path is taken as it is written, without parameters and without `%` escapes, and its folder must be there.
    ///   `connections_max` bounds the readers, of which there is at least one; there is one writer.
    /// - **PostgreSQL**: 14 or later. The first start must be allowed to create the schema `ichido`. `connections_max` is taken
    ///   as at least 1; one more connection listens for other nodes. It speaks TLS where the server does; over a network that is not
    ///   yours add `?sslmode=verify-full`, with `&sslrootcert=file` unless the system knows who signed the server's certificate: without
    ///   it a server that offers no TLS is spoken to in the clear. A server that does not let us in is given up on after 5 seconds,
    ///   one that does not answer a statement after 25.
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
    pub async fn open(url: &str, connections_max: u32) -> Result<Self, StoreError> {
        let skew = Arc::<Skew>::default();
        let driver = Arc::new(Driver::open(url, connections_max, Arc::clone(&skew)).await?);
        let wakes = Arc::new(driver.wakes().await);
        let store = Self {
            write_queues: Arc::new(WriteQueues::start(&driver)),
            driver,
            skew,
            wakes,
            tally: Arc::default(),
            disk_space: Arc::default(),
        };
        store.begin_retention().await?;
        Ok(store)
    }

    /// Ends the use of the database: what is under way is waited for, at most so long, and what comes after is refused. An SQLite file
    /// then holds everything by itself, unless another process has it open; without this part of it stays in the log beside it, where
    /// the next one to open it finds it.
    pub async fn close(&self, at_most: Duration) {
        match &*self.driver {
            Driver::Sqlite(sqlite) => drop(tokio::time::timeout(at_most, sqlite.close()).await),
            Driver::Postgres(_) => {}
        }
    }

    /// What the store's clock says: the database's, and what [`Store::skew_by`] added. Moments that go into the store, such as when a
    /// failed message is due or before when messages are forgotten, are counted from it.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        retry_read(|| async { on!(&*self.driver, driver => driver.clock().await) }).await
    }

    /// The counts of this process, to count more.
    pub fn tally(&self) -> &Counters {
        &self.tally
    }

    /// Begins a transaction on the caller's own pool that may read and then write. SQLite's plain `BEGIN` takes its lock with the
    /// first write, and fails at once, however long it may wait, when somebody else wrote since its first read.
    pub async fn begin_immediate(pool: &SqlitePool) -> Result<Transaction<'static, Sqlite>, StoreError> {
        crate::sqlite::begin_immediate(pool).await
    }

    /// Moves the store's clock ahead of the database's. For tests: leases, backoffs and expiries pass without sleeping.
    pub fn skew_by(&self, ahead: Duration) {
        self.skew.pass(ahead);
    }

    /// How far the store's clock was moved. Whoever measures a lease by a clock of its own adds it.
    pub fn skewed_by(&self) -> Duration {
        self.skew.passed()
    }

    /// Sets the store's wall clock by so many microseconds, as an operator sets a machine's: no time passes.
    #[cfg(feature = "testing")]
    pub fn step_clock(&self, micros: i64) {
        self.skew.step(micros);
    }

    /// Whether the database is an SQLite file; else it is PostgreSQL.
    pub fn is_sqlite(&self) -> bool {
        matches!(&*self.driver, Driver::Sqlite(_))
    }

    /// The pool of SQLite's one writer, to ask how it is set up.
    #[cfg(feature = "testing")]
    pub fn sqlite_writer(&self) -> Option<&SqlitePool> {
        self.sqlite().ok().map(crate::sqlite::Sqlite::writer)
    }

    /// PostgreSQL's connections, to ask how they are set up.
    #[cfg(feature = "testing")]
    pub fn postgres_pool(&self) -> Option<&sqlx::PgPool> {
        self.postgres().ok().map(Postgres::pool)
    }

    fn postgres(&self) -> Result<&Postgres, StoreError> {
        match &*self.driver {
            Driver::Postgres(postgres) => Ok(postgres),
            Driver::Sqlite(_) => {
                Err(StoreError::WrongDatabase("this store is on SQLite: give it an SQLite transaction"))
            }
        }
    }

    fn sqlite(&self) -> Result<&crate::sqlite::Sqlite, StoreError> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => Ok(sqlite),
            Driver::Postgres(_) => Err(StoreError::WrongDatabase(
                "this store is on PostgreSQL: give it a PostgreSQL transaction",
            )),
        }
    }
}

#[cfg(test)]
mod tests;
