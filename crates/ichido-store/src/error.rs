//! Errors of the store, grouped by what the caller can do.
//!
//! Guarantee: an error says whether a retry makes sense, and never contains a key or a payload: rows and parameters are removed
//! from PostgreSQL's errors.
//!
//! The database's own message is the [`source`](std::error::Error::source), not part of the text. Print the whole chain, or a
//! wrong password and a server that is down look the same.
//!
//! | error | was it done? | what to do |
//! |---|---|---|
//! | [`Busy`](StoreError::Busy) | no | retry after a short wait |
//! | [`Unavailable`](StoreError::Unavailable) | no | retry later; when opening, check the cause first |
//! | [`Full`](StoreError::Full) | no | free some space, then retry |
//! | [`FileLost`](StoreError::FileLost) | nothing is kept | stop; restore the file or a backup; restart |
//! | [`Unknown`](StoreError::Unknown), never of a read | unknown | retry under the same key or fence: nothing is done twice, but a claim may find itself in flight until its lease expires |
//! | [`KeyConflict`](StoreError::KeyConflict) | no | roll back; use another key for another message |
//! | [`TooLarge`](StoreError::TooLarge), [`OutOfRange`](StoreError::OutOfRange), [`Empty`](StoreError::Empty), [`NulInText`](StoreError::NulInText), [`Address`](StoreError::Address), [`WrongDatabase`](StoreError::WrongDatabase) | no | fix the arguments |
//! | [`TooNew`](StoreError::TooNew), [`Migration`](StoreError::Migration) | no | fix the deployment |
//! | [`Refused`](StoreError::Refused), [`Corrupt`](StoreError::Corrupt) | no | alert a person: neither goes away without help |

use std::fmt;
use std::path::PathBuf;

use uuid::Uuid;

/// Why a store operation failed.
#[derive(thiserror::Error)]
pub enum StoreError {
    /// Too many callers, or somebody else has locked a row. Nothing was done; retry.
    #[error("the store is busy; nothing was done; try again")]
    Busy,
    /// The database was not reached in time, or refused the connection. Nothing was done.
    ///
    /// The server is down or full or became a follower, the password is wrong, the folder does not exist, or the file is not a
    /// database. The cause says which. A read whose connection broke twice ends here too.
    #[error("the database could not be reached or refused the connection; nothing was done")]
    Unavailable(#[source] sqlx::Error),
    /// The disk, or the file system's quota, is full.
    #[error("the disk is full; nothing was done; free some space and try again")]
    Full,
    /// An SQLite database is no longer where it was opened.
    ///
    /// The file, or the log beside it, was removed, moved or replaced. Anything written now would be gone at the next start, so
    /// nothing more is accepted until then.
    #[error(
        "{} was removed, moved or replaced while it was in use, so nothing more is accepted; put it back or restore a backup before the next start, which otherwise creates a new, empty store", .file.display()
    )]
    FileLost {
        /// The database, or a file that SQLite keeps beside it.
        file: PathBuf,
    },
    /// The outcome of a write is unknown.
    ///
    /// The connection broke before the answer, or no answer came in time, and the database could not be asked about it. The
    /// write can be repeated under the same key or fence. A read never ends like this.
    #[error(
        "the connection to the database was lost before its response; a write may or may not have been done"
    )]
    Unknown(#[source] sqlx::Error),
    /// The key was used before for a different request. Nothing was enqueued; a transaction of the caller's stays usable.
    // SPEC D1.
    #[error(
        "the idempotency key was used for a different request, message {id}; nothing was enqueued; use another key"
    )]
    KeyConflict {
        /// The id of the first message.
        id: Uuid,
    },
    /// A row breaks an invariant. It is never read as something else.
    #[error("a row of {table} breaks an invariant: {detail}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// The database is newer than this program.
    #[error(
        "the database has schema version {found}, but this program supports versions up to {known}; run a newer version"
    )]
    TooNew {
        /// The version in the database.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The migrations failed.
    ///
    /// On PostgreSQL the first start needs the right to create the schema `ichido`. On both databases, a table of ours that
    /// somebody else made or changed prevents them.
    #[error("the database could not be migrated to this program's schema")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// The URL names no supported database.
    #[error("{0}")]
    Address(&'static str),
    /// A transaction of one database was passed to a store on the other.
    #[error("{0}")]
    WrongDatabase(&'static str),
    /// A value is too large.
    #[error("{what} has {found} bytes; at most {most} are allowed")]
    TooLarge {
        /// The value.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// A number is out of range, or meaningless; the same on both databases.
    #[error("{what} is {found}; it must be between {least} and {most}")]
    OutOfRange {
        /// The number.
        what: &'static str,
        /// Its value.
        found: u32,
        /// The minimum.
        least: u32,
        /// The maximum.
        most: u32,
    },
    /// A name is empty.
    #[error("{what} is empty; it must have at least one character")]
    Empty {
        /// The name.
        what: &'static str,
    },
    /// A text that PostgreSQL cannot hold. SQLite refuses it too, so both accept the same.
    #[error("{what} contains a NUL character, which PostgreSQL cannot store; remove it")]
    NulInText {
        /// The text.
        what: &'static str,
    },
    /// The database refused the statement.
    ///
    /// Inside a PostgreSQL transaction of the caller's, that transaction is aborted: roll it back. A missing table means that
    /// the transaction is on another database than the store.
    #[error("the database refused the statement; nothing was done")]
    Refused(#[source] sqlx::Error),
}

impl StoreError {
    /// Returns the error and its causes on one line, without repetition, for a log.
    pub fn with_causes(&self) -> String {
        ichido_core::text::with_causes(self)
    }
}

/// The text with all its causes: a `main` that returns an error prints this form.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_causes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_appears_once() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let text = StoreError::Unavailable(sqlx::Error::Io(refused)).with_causes();
        assert_eq!(text.matches("connection refused").count(), 1, "{text}");
        assert!(text.starts_with("the database could not be reached"), "{text}");
        assert_eq!(StoreError::Busy.with_causes(), StoreError::Busy.to_string());
        assert_eq!(format!("{:?}", StoreError::Busy), StoreError::Busy.to_string());
    }
}
