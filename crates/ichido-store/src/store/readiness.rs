//! Whether the store can be written to, and keeps what is written.

use super::Store;
use crate::driver::Driver;
use crate::error::StoreError;

impl Store {
    /// Whether the database answers, an SQLite file is still where it was opened, and the disk is not full, as far as the last
    /// writes tell. It writes nothing.
    pub async fn check_ready(&self) -> Result<(), StoreError> {
        self.check_files()?;
        self.disk_space.check()?;
        self.now().await?;
        Ok(())
    }

    /// Whether an SQLite database is still where it was opened. Every write of the store checks this before it answers; call it after the
    /// commit of a transaction of your own, before you acknowledge it. On PostgreSQL there is nothing to check.
    pub fn check_files(&self) -> Result<(), StoreError> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => sqlite.check_files(),
            Driver::Postgres(_) => Ok(()),
        }
    }

    /// Waits until an SQLite database is known to be lost ([`StoreError::FileLost`]): then nothing more is accepted, and the program
    /// should end. On PostgreSQL it waits for ever.
    pub async fn files_lost(&self) -> StoreError {
        match &*self.driver {
            Driver::Sqlite(sqlite) => sqlite.files_lost().await,
            Driver::Postgres(_) => std::future::pending().await,
        }
    }

    /// Takes note of what came of a write.
    pub(super) fn note_write<T>(&self, written: Result<T, StoreError>) -> Result<T, StoreError> {
        self.disk_space.note(self.skew.monotonic(), &written);
        written
    }
}
