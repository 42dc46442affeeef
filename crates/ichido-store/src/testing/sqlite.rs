//! A fresh SQLite file in its own temporary folder.
//!
//! Guarantee: no two files share a folder, and the folder is removed with its owner, including the database's log.

use std::path::{Path, PathBuf};

use uuid::Uuid;

/// A path for a database file. Dropping it removes the folder with everything in it.
#[derive(Debug)]
pub struct SqliteTestFile {
    /// The URL to open.
    pub url: String,
    folder: PathBuf,
}

impl SqliteTestFile {
    /// Returns the file's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file's path. Opening it creates it.
    pub fn path(&self) -> PathBuf {
        self.folder.join("ichido.db")
    }
}

impl Drop for SqliteTestFile {
    fn drop(&mut self) {
        // A process that still has it open keeps an unlinked file: nothing is left behind.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Returns a path at which no database exists yet.
///
/// # Panics
///
/// If the temporary folder cannot be written.
#[expect(clippy::expect_used, reason = "tests cannot continue without it")]
pub fn fresh_file() -> SqliteTestFile {
    let folder = std::env::temp_dir().join(format!("ichido-sqlite-{}", Uuid::now_v7().simple()));
    std::fs::create_dir(&folder).expect("a temporary folder can be made");
    let url = format!("sqlite:{}", folder.join("ichido.db").display());
    SqliteTestFile { url, folder }
}
