//! What can go wrong with a database, as the choices a caller has.
//!
//! Guarantee: an error says whether it is worth trying again, and never holds a key or a payload.

/// Why a store could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Too many are asking, or a row is held by somebody else: nothing was done, try again.
    #[error("the store is busy; nothing was done, try again")]
    Busy,
    /// The database cannot be reached, or went away before anything was done.
    #[error("the store is unreachable; nothing was done")]
    Unavailable(#[source] sqlx::Error),
    /// The database went away during a write, and could not be asked what became of it.
    #[error("the store went away during a write, and it is not known whether it was done")]
    Unknown(#[source] sqlx::Error),
    /// A row that breaks an invariant: it is never read as something else.
    #[error("a row of {table} breaks an invariant: {detail}")]
    Corrupt {
        /// Which table.
        table: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The database is newer than this program.
    #[error(
        "the database has schema version {found}, and this program knows versions up to {known}; start a newer program"
    )]
    TooNew {
        /// The version found.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// The migrations could not be run.
    #[error("the database could not be brought to this program's schema")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// The address names no database that we know.
    #[error("{0}")]
    Address(&'static str),
    /// The request itself is out of bounds.
    #[error("{what} has {found} bytes; at most {most} are allowed")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The bound.
        most: usize,
    },
    /// A text that no database could hold.
    #[error("{what} has a NUL character, which PostgreSQL's text cannot hold; leave it out")]
    NulInText {
        /// Which text.
        what: &'static str,
    },
    /// The database refused the statement.
    #[error("the database refused the statement")]
    Refused(#[source] sqlx::Error),
}
