//! How a database is set up, as our own connections meet it.
//!
//! Guarantee: [`look`] only reads. It brings no schema up to date, makes no file, and answers or gives up within seconds. Whose
//! transactions are open is told by process and user, never by what they asked.

mod postgres;
mod sqlite;

use std::time::Duration;

use ichido_core::time::Timestamp;

use crate::driver::UNKNOWN_ADDRESS;
use crate::error::StoreError;
use crate::facts::PublishedQueue;

/// The most open transactions that are told of.
pub const OPEN_TRANSACTIONS_MAX: u32 = 20;

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// The version of the store in it; `None` where there is none yet.
    pub schema_found: Option<i64>,
    /// The version that this program makes of it.
    pub schema_known: i64,
    /// The queues that workers have published; none where the store's version does not have them yet.
    pub queues: Vec<PublishedQueue>,
    /// What is special to the database.
    pub database: Database,
}

/// Which database it is, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// One file.
    Sqlite {
        /// `wal` after the first start.
        journal_mode: String,
        /// `PRAGMA synchronous` on a connection of ours: 2 is FULL.
        synchronous: i64,
    },
    /// A server.
    Postgres(Box<Server>),
}

/// How a PostgreSQL server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `fsync`.
    pub fsync: bool,
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// `synchronous_commit` on a connection of ours.
    pub synchronous_commit: String,
    /// Whether it follows another one, and lets nobody write.
    pub follows: bool,
    /// `max_connections`.
    pub connections_max: u32,
    /// How many of them are kept for others than us.
    pub connections_reserved: u32,
    /// The nodes that were heard of within the last minute.
    pub nodes: u32,
    /// Its clock, and ours before and after it was asked.
    pub clock: ClockReading,
    /// Whether we may see the transactions of other users.
    pub sees_everybody: bool,
    /// The transactions in this database that have been open for longer than was asked, the oldest first; at most
    /// [`OPEN_TRANSACTIONS_MAX`].
    pub open_transactions: Vec<OpenTransaction>,
}

/// Two clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Ours, before the database was asked.
    pub before: Timestamp,
    /// The database's.
    pub database: Timestamp,
    /// Ours, when its answer was here.
    pub after: Timestamp,
}

/// A transaction that has been open for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The server's process, as `pg_terminate_backend` takes it.
    pub process: i32,
    /// Whose.
    pub user: String,
    /// What the client calls itself.
    pub application: String,
    /// Since when.
    pub since: Timestamp,
}

/// Looks at the database at an address; `clock` is ours, and transactions are told of that have been open for longer than
/// `open_for`.
pub async fn look(
    url: &str,
    clock: impl Fn() -> Timestamp,
    open_for: Duration,
) -> Result<Vitals, StoreError> {
    match url.split_once(':') {
        Some(("sqlite", _)) => sqlite::look(url, clock).await,
        Some(("postgres" | "postgresql", _)) => postgres::look(url, clock, open_for).await,
        _ => Err(StoreError::Address(UNKNOWN_ADDRESS)),
    }
}
