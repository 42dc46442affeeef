//! A fresh SQLite file in a temporary folder of its own.
//!
//! Guarantee: no two files share a folder, and the folder goes with its owner, the database's log included.

use std::path::{Path, PathBuf};

use uuid::Uuid;

/// A place for a database file, removed with all that is in it when dropped.
#[derive(Debug)]
pub struct File {
    /// The address to open.
    pub url: String,
    folder: PathBuf,
}

impl File {
    /// The folder that the file is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file itself, which is made by opening it.
    pub fn path(&self) -> PathBuf {
        self.folder.join("ichido.db")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Whoever still has it open keeps an unlinked file: nothing is left behind.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// A place where no database is yet.
///
/// # Panics
///
/// When the temporary folder cannot be written.
#[expect(clippy::expect_used, reason = "for tests, which can go no further")]
pub fn fresh_file() -> File {
    let folder = std::env::temp_dir().join(format!("ichido-sqlite-{}", Uuid::now_v7().simple()));
    std::fs::create_dir(&folder).expect("a temporary folder can be made");
    let url = format!("sqlite:{}", folder.join("ichido.db").display());
    File { url, folder }
}
