//! What a database error means for the batch in which it happened.

use sqlx::Error;
use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

use crate::error::StoreError;
use crate::error_detail::redact;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// No database was available: nothing was done.
    NotConnected,
    /// The connection broke while the statement ran: it may have been done.
    Lost,
    /// The disk is full: nothing was done.
    Full,
    /// Somebody else has locked a row, or two batches deadlocked: nothing was done.
    Contended,
    /// The statement was refused: nothing was done.
    Refused,
}

pub(crate) fn classify(error: &Error) -> ErrorClass {
    match error {
        Error::PoolTimedOut | Error::PoolClosed => ErrorClass::NotConnected,
        Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => ErrorClass::NotConnected,
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed => ErrorClass::Lost,
        Error::Database(database) => match database.try_downcast_ref::<SqliteError>() {
            Some(error) => sqlite(error),
            None => postgres(database.as_ref()),
        },
        _ => ErrorClass::Refused,
    }
}

fn postgres(error: &dyn DatabaseError) -> ErrorClass {
    match error.code().as_deref() {
        // Starting up, shutting down, or too many connections: the connection is refused. Or the server became a follower in a
        // failover and accepts no writes.
        Some("57P03" | "53300" | "25006") => ErrorClass::NotConnected,
        // The disk is full.
        Some("53100") => ErrorClass::Full,
        // Shut down in the middle of it, or the connection failed.
        Some("57P01" | "57P02" | "57P05") => ErrorClass::Lost,
        Some(code) if code.starts_with("08") => ErrorClass::Lost,
        // A lock, a statement or an idle transaction exceeded its time limit.
        Some("55P03" | "57014" | "25P03" | "40P01" | "40001") => ErrorClass::Contended,
        _ => ErrorClass::Refused,
    }
}

/// A failed SQLite statement did nothing. Only a COMMIT during a disk failure is uncertain, and the driver handles that one.
fn sqlite(error: &SqliteError) -> ErrorClass {
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    const READONLY: i32 = 8;
    const INTERRUPT: i32 = 9;
    const IOERR: i32 = 10;
    const CORRUPT: i32 = 11;
    const FULL: i32 = 13;
    const CANTOPEN: i32 = 14;
    const PROTOCOL: i32 = 15;
    const NOTADB: i32 = 26;
    // The low byte of an extended code is the primary code.
    let code = error.code().and_then(|code| code.parse::<i32>().ok()).map(|code| code & 0xff);
    match code {
        // Interrupted: a statement of a page exceeded its time limit.
        Some(BUSY | LOCKED | PROTOCOL | INTERRUPT) => ErrorClass::Contended,
        Some(FULL) => ErrorClass::Full,
        Some(READONLY | IOERR | CORRUPT | CANTOPEN | NOTADB) => ErrorClass::NotConnected,
        _ => ErrorClass::Refused,
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let class = classify(&error);
        let error = redact(error);
        match class {
            ErrorClass::NotConnected => Self::Unavailable(error),
            ErrorClass::Lost => Self::Unknown(error),
            ErrorClass::Full => Self::Full,
            ErrorClass::Contended => Self::Busy,
            ErrorClass::Refused => Self::Refused(error),
        }
    }
}
