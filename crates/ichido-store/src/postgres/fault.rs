//! What an error of the database means for the batch it happened to.

use sqlx::Error;

use crate::error::StoreError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// There was no connection to be had: nothing was done.
    NotConnected,
    /// The connection broke while the statement was under way: it may have been done.
    Lost,
    /// A row is held by somebody else, or two batches met crosswise: nothing was done.
    Contended,
    /// The statement itself was refused: nothing was done.
    Refused,
}

pub(super) fn fault(error: &Error) -> Fault {
    match error {
        Error::PoolTimedOut | Error::PoolClosed => Fault::NotConnected,
        Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => Fault::NotConnected,
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed => Fault::Lost,
        Error::Database(database) => match database.code().as_deref() {
            // Starting up, shutting down for good, too many connections: refused at the door.
            Some("57P03" | "53300") => Fault::NotConnected,
            // Shut down in the middle of it, or the connection failed.
            Some("57P01" | "57P02" | "57P05") => Fault::Lost,
            Some(code) if code.starts_with("08") => Fault::Lost,
            Some("55P03" | "40P01" | "40001") => Fault::Contended,
            _ => Fault::Refused,
        },
        _ => Fault::Refused,
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match fault(&error) {
            Fault::NotConnected => Self::Unavailable(error),
            Fault::Lost => Self::Unknown(error),
            Fault::Contended => Self::Busy,
            Fault::Refused => Self::Refused(error),
        }
    }
}
