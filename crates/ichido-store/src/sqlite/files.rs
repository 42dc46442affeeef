//! The files of a database, and whether they are still where they were opened.
//!
//! Guarantee: nothing is acknowledged that was written to a file which the next start will not find. SQLite continues to write
//! to files that were removed, moved, replaced or emptied, without an error. So after each commit, and before the
//! acknowledgement, the names are looked up again and compared with what was opened. It costs one `stat` for each of the three
//! files and opens none of them: closing a file of our own would drop every lock that SQLite has on it in this process.
//!
//! An inode number is not reused while SQLite has the file open, which at least one reader always has.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::error::StoreError;

/// The files that SQLite puts beside a database in WAL mode: its log, and the log's index, which all processes share. If either
/// is replaced, two processes overwrite each other.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

pub(super) struct DatabaseFiles {
    /// The database first, under the name that the next start uses.
    opened: Vec<(PathBuf, FileId)>,
    lost: watch::Sender<Option<PathBuf>>,
}

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the identity of the file that a name leads to now.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|found| Self::from_metadata(&found))
    }

    #[cfg(unix)]
    fn from_metadata(found: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { device: found.dev(), inode: found.ino() }
    }

    /// On other systems an open file can be neither removed nor replaced.
    #[cfg(not(unix))]
    fn from_metadata(_found: &Metadata) -> Self {
        Self { device: 0, inode: 0 }
    }
}

impl DatabaseFiles {
    /// Records the files of an open database; `before` is its identity before it was opened. All exist, because something was
    /// read.
    pub(super) fn note(path: &Path, before: FileId) -> Result<Self, StoreError> {
        let (lost, _) = watch::channel(None);
        let noted = |error| StoreError::Unavailable(sqlx::Error::Io(error));
        let path = std::path::absolute(path).map_err(noted)?;
        // SQLite follows links, and puts its own files beside the link's target.
        let whole = path.canonicalize().map_err(noted)?;
        let mut files = Self { opened: vec![(path, before)], lost };
        for end in BESIDE {
            let mut name = OsString::from(&whole);
            name.push(end);
            let name = PathBuf::from(name);
            let identity = FileId::new(&name).map_err(noted)?;
            files.opened.push((name, identity));
        }
        files.check()?;
        Ok(files)
    }

    /// Checks that all files are where they were. After the first loss it fails forever.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.refuse_if_lost()?;
        let database = self.opened.first().map(|(path, _)| path);
        let is_lost = |(path, opened): &&(PathBuf, FileId)| match std::fs::metadata(path) {
            // SQLite itself empties the log, but never the database.
            Ok(found) => {
                FileId::from_metadata(&found) != *opened || (found.len() == 0 && Some(path) == database)
            }
            // No other error proves that it is gone.
            Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        };
        let Some((file, _)) = self.opened.iter().find(is_lost) else { return Ok(()) };
        if self.lost.send_replace(Some(file.clone())).is_none() {
            let file = file.display();
            tracing::error!(%file, "database file removed, moved or replaced; nothing more is accepted");
        }
        Err(StoreError::FileLost { file: file.clone() })
    }

    /// Fails after a loss, without looking.
    pub(super) fn refuse_if_lost(&self) -> Result<(), StoreError> {
        match &*self.lost.borrow() {
            Some(file) => Err(StoreError::FileLost { file: file.clone() }),
            None => Ok(()),
        }
    }

    /// Waits until one of them is known to be lost.
    pub(super) async fn lost(&self) -> StoreError {
        let mut lost = self.lost.subscribe();
        let found = match lost.wait_for(Option::is_some).await {
            Ok(file) => file.clone(),
            Err(_) => None,
        };
        match found {
            Some(file) => StoreError::FileLost { file },
            // The store is gone, and nobody waits for its files.
            None => std::future::pending().await,
        }
    }
}
