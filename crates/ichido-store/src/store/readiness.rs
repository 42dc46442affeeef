//! Whether the store accepts writes and keeps them.

use super::Store;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::future::{BoxFuture, StoreFuture};

impl Store {
    /// Checks that the store can be written to: the database answers, its file is in place, the disk is not full.
    ///
    /// The last writes tell whether the disk is full. It writes nothing.
    pub fn check_ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.check_files()?;
            self.disk_space.check()?;
            self.now().await?;
            Ok(())
        })
    }

    /// Checks that an SQLite database is still where it was opened.
    ///
    /// Every write of the store checks this before it returns. Call it after the commit of your own transaction, before you
    /// acknowledge it. On PostgreSQL there is nothing to check.
    pub fn check_files(&self) -> Result<(), StoreError> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => sqlite.check_files(),
            Driver::Postgres(_) => Ok(()),
        }
    }

    /// Waits until an SQLite database is known to be lost ([`StoreError::FileLost`]).
    ///
    /// Then nothing more is accepted, and the program should exit. On PostgreSQL it waits forever.
    pub fn files_lost(&self) -> BoxFuture<'_, StoreError> {
        Box::pin(async move {
            match &*self.driver {
                Driver::Sqlite(sqlite) => sqlite.files_lost().await,
                Driver::Postgres(_) => std::future::pending().await,
            }
        })
    }

    /// Records the outcome of a write.
    pub(super) fn note_write<T>(&self, written: Result<T, StoreError>) -> Result<T, StoreError> {
        self.disk_space.record(self.skew.monotonic(), &written);
        written
    }
}
