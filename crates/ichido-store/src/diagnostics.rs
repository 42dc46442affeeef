//! Database diagnostics, as seen over our own connections.
//!
//! Guarantee: [`inspect`] only reads. It does not migrate, creates no file, and returns within seconds. Open transactions are
//! reported by process and user, never by their statements.

mod backlog;
mod postgres;
mod sqlite;

use std::time::Duration;

use ichido_core::time::Timestamp;

use crate::driver::UNKNOWN_ADDRESS;
use crate::error::StoreError;
use crate::facts::PublishedQueue;

pub use backlog::Backlog;

/// The maximum number of open transactions reported.
pub const MAX_OPEN_TRANSACTIONS: u32 = 20;

/// The diagnostics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The schema version in the database; `None` if there is no store yet.
    pub schema_found: Option<i64>,
    /// The schema version that this program creates.
    pub schema_known: i64,
    /// The queues that workers have published; none if the store's version does not have them yet.
    pub queues: Vec<PublishedQueue>,
    /// What waits for a person; `None` if the store has another version.
    pub backlog: Option<Backlog>,
    /// What is specific to the database.
    pub database: DatabaseDiagnostics,
}

/// Which database it is, and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseDiagnostics {
    /// One file.
    Sqlite {
        /// `wal` after the first start.
        journal_mode: String,
        /// `PRAGMA synchronous` on our connection: 2 is FULL.
        synchronous: i64,
    },
    /// A server.
    Postgres(Box<PostgresDiagnostics>),
}

/// The settings and state of a PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresDiagnostics {
    /// `fsync`.
    pub fsync: bool,
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// `synchronous_commit` on our connection.
    pub synchronous_commit: String,
    /// Whether it is a follower and accepts no writes.
    pub follows: bool,
    /// `max_connections`.
    pub max_connections: u32,
    /// How many of them are reserved for others.
    pub connections_reserved: u32,
    /// The number of nodes seen within the last minute.
    pub nodes: u32,
    /// Its clock, and ours before and after the query.
    pub clock: ClockReading,
    /// Whether we may see the transactions of other users.
    pub sees_everybody: bool,
    /// The transactions open for longer than `open_for`, the oldest first; at most [`MAX_OPEN_TRANSACTIONS`].
    pub open_transactions: Vec<OpenTransaction>,
}

/// Two clocks read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Our clock before the query.
    pub before: Timestamp,
    /// The database's clock.
    pub database: Timestamp,
    /// Our clock after the answer.
    pub after: Timestamp,
}

/// A transaction that has been open for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The server's process, for `pg_terminate_backend`.
    pub process: i32,
    /// Its user.
    pub user: String,
    /// The client's application name.
    pub application: String,
    /// When it began.
    pub since: Timestamp,
}

/// Inspects the database of a URL.
///
/// `clock` is ours. Transactions that have been open for longer than `open_for` are reported.
pub async fn inspect(
    url: &str,
    clock: impl Fn() -> Timestamp,
    open_for: Duration,
) -> Result<Diagnostics, StoreError> {
    match url.split_once(':') {
        Some(("sqlite", _)) => sqlite::look(url, clock).await,
        Some(("postgres" | "postgresql", _)) => postgres::look(url, clock, open_for).await,
        _ => Err(StoreError::Address(UNKNOWN_ADDRESS)),
    }
}
