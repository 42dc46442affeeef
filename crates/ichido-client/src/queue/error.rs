//! The errors of a queue.

use std::io;
use std::path::PathBuf;

use http::HeaderName;
use sqlx::sqlite::SqliteError;

use super::entry::{EntryId, State};
use super::{MAX_DESTINATION_BYTES, MAX_ENTRIES, MAX_ENTRY_BYTES};

/// Why a queue operation failed. It then changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The file belongs to another program.
    #[error("the file is not an Ichido offline queue and was not changed; use another file")]
    NotAQueue,
    /// A newer version of Ichido created the file.
    #[error(
        "the file has version {found}, and this program supports {known}; use a newer ichido, or send the entries \
         with the version that created it"
    )]
    TooNew {
        /// The version of the file.
        found: i64,
        /// The version that this program supports.
        known: i64,
    },
    /// The file is damaged.
    #[error(
        "the file is damaged ({0}); copy it and the files beside it, start a new one, and settle the old entries by hand"
    )]
    Damaged(String),
    /// The file cannot be opened or written.
    #[error(
        "cannot use the file: {0}; check that this user can write to it and its folder, and that the disk has space"
    )]
    Unusable(String),
    /// Other processes keep the file locked.
    #[error("another process locked the file for too long; try again")]
    Busy,
    /// The queue is full.
    #[error("the queue is full with {MAX_ENTRIES} entries; nothing was accepted: send or discard some first")]
    Full,
    /// The entry is too large.
    #[error("the entry has {bytes} bytes, and the limit is {MAX_ENTRY_BYTES}; nothing was accepted")]
    TooLarge {
        /// The size of the entry.
        bytes: usize,
    },
    /// The action has no key, so a second attempt could take effect twice.
    #[error("the action has no key, and a queued action may be sent twice; give it a key")]
    NoKey,
    /// A header field contains a secret, which must not be stored.
    #[error(
        "the header {0} is a secret, and the file stores no secrets; pass it to the client, which adds it when it \
         sends the entry"
    )]
    Secret(HeaderName),
    /// The destination's name is invalid.
    #[error(
        "a destination's name must have 1 to {MAX_DESTINATION_BYTES} bytes and no control characters; use for example \
         its base URL"
    )]
    Destination,
    /// Another sender is active.
    #[error(
        "another sender is running for this file and destination; only one may run at a time, to keep the order"
    )]
    SenderBusy,
    /// The lock file cannot be locked.
    #[error("cannot lock {}: {error}", .file.display())]
    Lock {
        /// The lock file.
        file: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The send settings are invalid.
    #[error("{0}")]
    Settings(String),
    /// There is no such entry.
    #[error("entry {0} does not exist: it was sent and is done, or was discarded")]
    UnknownEntry(EntryId),
    /// The entry's state does not allow this.
    #[error("entry {id} is {state}; {asked}")]
    WrongState {
        /// The entry.
        id: EntryId,
        /// Its state.
        state: State,
        /// The requirement of the operation.
        asked: &'static str,
    },
    /// The database failed.
    #[error("cannot read or write the file: {0}")]
    Sql(#[source] sqlx::Error),
}

impl QueueError {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}

/// Returns the primary code of a SQLite error.
fn code_of(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    let code = sqlx::error::DatabaseError::code(error)?;
    // The low byte of an extended code is the primary one.
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

impl From<sqlx::Error> for QueueError {
    fn from(error: sqlx::Error) -> Self {
        match (code_of(&error), &error) {
            // SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL.
            (Some(5 | 6 | 15), _) | (None, sqlx::Error::PoolTimedOut) => Self::Busy,
            // SQLITE_PERM, SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN.
            (Some(3 | 8 | 10 | 13 | 14), _) => Self::Unusable(error.to_string()),
            // SQLITE_CORRUPT, SQLITE_CONSTRAINT, SQLITE_NOTADB.
            (Some(11 | 19 | 26), _) => Self::Damaged(error.to_string()),
            (None, sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_)) => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Sql(error),
        }
    }
}
