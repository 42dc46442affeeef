//! Why a queue did not do what was asked.

use std::io;
use std::path::PathBuf;

use http::HeaderName;
use sqlx::sqlite::SqliteError;

use super::entry::{EntryId, State};
use super::{DESTINATION_BYTES_MAX, ENTRIES_MAX, ENTRY_BYTES_MAX};

/// Why a queue did not do what was asked. Nothing was done then, or none of it.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Somebody else's file.
    #[error("the file is no offline queue of Ichido's, and is left as it is; name another")]
    Foreign,
    /// A newer program made it.
    #[error(
        "the file has version {found}, and this program knows {known}; use a newer ichido, or send what is in it with the one that made it"
    )]
    TooNew {
        /// What the file has.
        found: i64,
        /// What is known here.
        known: i64,
    },
    /// It cannot be read as what it was written as.
    #[error(
        "the file is damaged ({0}); keep a copy of it and of those beside it, and begin a new one: what was in it must be looked after by hand"
    )]
    Damaged(String),
    /// It cannot be opened, or not be written.
    #[error(
        "the file cannot be used: {0}; it and its folder must be this user's to write, and the disk have room"
    )]
    Unusable(String),
    /// It is written to by somebody else all the time.
    #[error("the file was held by somebody else for too long; try again")]
    Busy,
    /// No room for what was to be accepted.
    #[error(
        "the queue is full with {ENTRIES_MAX} entries; nothing of this was accepted: have some sent first, or discard them"
    )]
    Full,
    /// An entry is too large.
    #[error(
        "the entry has {bytes} bytes, and at most {ENTRY_BYTES_MAX} are kept; nothing of this was accepted"
    )]
    TooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// Sent a second time, it could be done twice.
    #[error("the action has no key, and what is sent later may be sent twice; give it one")]
    NoKey,
    /// A secret would stand in the file.
    #[error(
        "the header field {0} is a secret, and none is kept in a file: give it to the client, which has it when the entry is sent"
    )]
    Secret(HeaderName),
    /// A name that is none.
    #[error(
        "a destination has a name of 1 to {DESTINATION_BYTES_MAX} bytes without control characters, such as its base URL"
    )]
    Destination,
    /// Somebody else is at it.
    #[error(
        "another sender is at work on this file and destination; there is one at a time, so that the order is kept"
    )]
    SenderBusy,
    /// The lock beside the file cannot be had.
    #[error("{} cannot be locked: {error}", .file.display())]
    Lock {
        /// Which file.
        file: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// What is to be done cannot be.
    #[error("{0}")]
    Terms(String),
    /// There is none.
    #[error("there is no entry {0}: it was sent and is done, or was discarded")]
    NoSuch(EntryId),
    /// It is in no state for that.
    #[error("entry {id} is {state}; {asked}")]
    NotNow {
        /// Which one.
        id: EntryId,
        /// How it stands.
        state: State,
        /// What that was asked for.
        asked: &'static str,
    },
    /// The database refused it.
    #[error("the file could not be read or written: {0}")]
    Sql(#[source] sqlx::Error),
}

impl QueueError {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}

/// The plain code of an error of SQLite's.
fn code_of(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    let code = sqlx::error::DatabaseError::code(error)?;
    // The low byte of an extended code is the plain one.
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
