//! What an error of a database means for the batch it happened to.

use sqlx::Error;
use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

use crate::error::StoreError;
use crate::told::told;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There was no database to be had: nothing was done.
    NotConnected,
    /// The connection broke while the statement was under way: it may have been done.
    Lost,
    /// There is no room for more: nothing was done.
    Full,
    /// A row is held by somebody else, or two batches met crosswise: nothing was done.
    Contended,
    /// The statement itself was refused: nothing was done.
    Refused,
}

pub(crate) fn fault(error: &Error) -> Fault {
    match error {
        Error::PoolTimedOut | Error::PoolClosed => Fault::NotConnected,
        Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => Fault::NotConnected,
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed => Fault::Lost,
        Error::Database(database) => match database.try_downcast_ref::<SqliteError>() {
            Some(error) => sqlite(error),
            None => postgres(database.as_ref()),
        },
        _ => Fault::Refused,
    }
}

fn postgres(error: &dyn DatabaseError) -> Fault {
    match error.code().as_deref() {
        // Starting up, shutting down for good, too many connections: refused at the door. Or it is a follower since a failover, and
        // lets nobody write.
        Some("57P03" | "53300" | "25006") => Fault::NotConnected,
        // The disk is full.
        Some("53100") => Fault::Full,
        // Shut down in the middle of it, or the connection failed.
        Some("57P01" | "57P02" | "57P05") => Fault::Lost,
        Some(code) if code.starts_with("08") => Fault::Lost,
        // Not within the time that the server gives a lock, a statement, or a transaction in which nothing is said.
        Some("55P03" | "57014" | "25P03" | "40P01" | "40001") => Fault::Contended,
        _ => Fault::Refused,
    }
}

/// A statement of SQLite that fails did nothing; only a COMMIT that the disk failed under is in doubt, and the driver asks
/// about that one itself.
fn sqlite(error: &SqliteError) -> Fault {
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    const READONLY: i32 = 8;
    const IOERR: i32 = 10;
    const CORRUPT: i32 = 11;
    const FULL: i32 = 13;
    const CANTOPEN: i32 = 14;
    const PROTOCOL: i32 = 15;
    const NOTADB: i32 = 26;
    // The low byte of an extended code is the plain one.
    let code = error.code().and_then(|code| code.parse::<i32>().ok()).map(|code| code & 0xff);
    match code {
        Some(BUSY | LOCKED | PROTOCOL) => Fault::Contended,
        Some(FULL) => Fault::Full,
        Some(READONLY | IOERR | CORRUPT | CANTOPEN | NOTADB) => Fault::NotConnected,
        _ => Fault::Refused,
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let fault = fault(&error);
        let error = told(error);
        match fault {
            Fault::NotConnected => Self::Unavailable(error),
            Fault::Lost => Self::Unknown(error),
            Fault::Full => Self::Full,
            Fault::Contended => Self::Busy,
            Fault::Refused => Self::Refused(error),
        }
    }
}
