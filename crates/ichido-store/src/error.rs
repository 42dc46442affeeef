//! What can go wrong with a database, as the choices a caller has.
//!
//! Guarantee: an error says whether it is worth trying again, and never holds a key or a payload: of what PostgreSQL says, the rows
//! and parameters are left out.
//!
//! What the database itself said is the [`source`](std::error::Error::source), not part of the text: print the whole chain, or a
//! wrong password and a server that is down read alike.
//!
//! | error | was it done? | what to do |
//! |---|---|---|
//! | [`Busy`](StoreError::Busy) | no | the same again, after a short wait |
//! | [`Unavailable`](StoreError::Unavailable) | no | the same again later; when opening, look at the cause first |
//! | [`Full`](StoreError::Full) | no | free some space; the same again |
//! | [`FileLost`](StoreError::FileLost) | nothing is kept | stop; put the file back, or restore a backup; start again |
//! | [`Unknown`](StoreError::Unknown), never of a read | not known | the same again, under the same key or fence: nothing is done twice, but a claim may meet itself and be in flight until its lease is over |
//! | [`TooLarge`](StoreError::TooLarge), [`OutOfRange`](StoreError::OutOfRange), [`Empty`](StoreError::Empty), [`NulInText`](StoreError::NulInText), [`Address`](StoreError::Address), [`WrongDatabase`](StoreError::WrongDatabase) | no | mend what was passed in |
//! | [`TooNew`](StoreError::TooNew), [`Migration`](StoreError::Migration) | no | mend the deployment |
//! | [`Refused`](StoreError::Refused), [`Corrupt`](StoreError::Corrupt) | no | tell a person: neither goes away by itself |

use std::error::Error as _;
use std::path::PathBuf;

/// Why a store could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Too many are asking, or a row is held by somebody else: nothing was done, try again.
    #[error("the store is busy; nothing was done, try again")]
    Busy,
    /// The database was not reached in time, or would not let us in: a server that is down or full or became a follower, a wrong
    /// password, a folder that is not there, a file that is no database. The cause says which. A read whose connection broke twice
    /// ends here too.
    #[error(
        "the database could not be reached, or would not let us in; nothing was done (the cause says more)"
    )]
    Unavailable(#[source] sqlx::Error),
    /// The disk, or the file system's quota, has no room for more.
    #[error("the disk is full; nothing was done: free some space, and try again")]
    Full,
    /// An SQLite database is no longer where it was opened: the file, or the log beside it, was removed, moved or replaced. What is
    /// written now is gone at the next start, so nothing more is accepted until then.
    #[error(
        "{} was removed, moved or replaced while it was in use, so nothing more is accepted; put it back or restore a backup before you start again: without it a new, empty store is made", .file.display()
    )]
    FileLost {
        /// The database, or a file that SQLite keeps beside it.
        file: PathBuf,
    },
    /// The connection broke before the answer to a write came, or no answer came in time, and the database could not be asked what
    /// became of it. The write can be made again, under the same key or fence. A read never ends like this.
    #[error(
        "the connection to the database broke before its answer came; a write may or may not have been done"
    )]
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
    /// The migrations could not be run. On PostgreSQL the first start needs the right to create the schema `ichido`; on both, a
    /// table of ours that somebody else made or changed stands in the way.
    #[error("the database could not be brought to this program's schema (the cause says why)")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// The address names no database that we know.
    #[error("{0}")]
    Address(&'static str),
    /// A transaction of the one database was brought to a store on the other.
    #[error("{0}")]
    WrongDatabase(&'static str),
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
    /// A number that has no place in the database, or no meaning; the same on both.
    #[error("{what} is {found}; it must be from {least} to {most}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// What it is.
        found: u32,
        /// The least that is allowed.
        least: u32,
        /// The most that is allowed.
        most: u32,
    },
    /// A name that names nothing.
    #[error("{what} is empty; give it at least one character")]
    Empty {
        /// Which text.
        what: &'static str,
    },
    /// A text that PostgreSQL could not hold; refused on SQLite too, so that both take the same.
    #[error("{what} has a NUL character, which PostgreSQL's text cannot hold; leave it out")]
    NulInText {
        /// Which text.
        what: &'static str,
    },
    /// The database refused the statement. Inside a PostgreSQL transaction of the caller's, that transaction is over: roll it
    /// back. A table that is not there means that the transaction is on another database than the store.
    #[error("the database refused the statement; nothing was done (the cause says why)")]
    Refused(#[source] sqlx::Error),
}

impl StoreError {
    /// The error and its causes on one line, each said once, for a log.
    pub fn in_full(&self) -> String {
        let causes = std::iter::successors(self.source(), |cause| (*cause).source());
        causes.fold(self.to_string(), |told, cause| {
            let cause = cause.to_string();
            // An error of sqlx ends with the words of its own cause.
            if told.ends_with(&cause) { told } else { format!("{told}: {cause}") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_said_once() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let told = StoreError::Unavailable(sqlx::Error::Io(refused)).in_full();
        assert_eq!(told.matches("connection refused").count(), 1, "{told}");
        assert!(told.starts_with("the database could not be reached"), "{told}");
        assert_eq!(StoreError::Busy.in_full(), StoreError::Busy.to_string());
    }
}
