//! Locks that show which processes live: a file per node beside the database.
//!
//! Guarantee: while a node's process lives, nobody else can take its lock, whatever the clock says; when it ends, even by
//! `kill -9`, the operating system releases it. The file's name follows from the node's id, so a row of the database never names
//! another file. Links are not followed.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use ichido_core::clock::LockState;

/// The lock of a node of a SQLite store. Dropped, it is released like after a crash; a stop removes its file as well.
#[derive(Debug)]
#[must_use = "dropping it says that the node is gone"]
pub struct NodeLock {
    path: PathBuf,
    _file: File,
}

impl NodeLock {
    /// Creates the file, readable by its owner only, and locks it. Returns `None` where that is impossible.
    pub(crate) fn create(path: PathBuf) -> Option<Self> {
        let mut options = OpenOptions::new();
        // Fails on a link, wherever it leads.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let locked = options.open(&path).and_then(|file| match file.try_lock() {
            Ok(()) => Ok(file),
            Err(error) => {
                remove(&path);
                Err(error.into())
            }
        });
        let file = path.display();
        let locked = locked.inspect_err(|error| {
            tracing::warn!(%error, %file, "failed to lock the node's file; heartbeats alone show that it lives");
        });
        locked.ok().map(|file| Self { path, _file: file })
    }

    /// Takes the lock of a node, if nobody holds it.
    pub(crate) fn probe(path: &Path) -> (LockState, Option<Self>) {
        let Ok(file) = open_regular(path) else { return (LockState::Unknown, None) };
        match file.try_lock() {
            Ok(()) => (LockState::Free, Some(Self { path: path.to_owned(), _file: file })),
            Err(TryLockError::WouldBlock) => (LockState::Held, None),
            Err(TryLockError::Error(_)) => (LockState::Unknown, None),
        }
    }

    /// Removes the file, while it is still locked.
    pub(crate) fn remove(self) {
        remove(&self.path);
    }
}

/// Opens a file that exists, unless its name is a link.
fn open_regular(path: &Path) -> io::Result<File> {
    let named = std::fs::symlink_metadata(path)?;
    if !named.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = File::open(path)?;
    // Between the two it may have been replaced by a link.
    if is_same(&file.metadata()?, &named) { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// On other systems an open file cannot be replaced.
#[cfg(not(unix))]
fn is_same(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, file = %path.display(), "failed to remove a node's lock file");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_held_by_one_and_freed_by_its_end() {
        let folder = crate::testing::sqlite::fresh_file();
        let path = folder.folder().join("ichido.db-node-1");
        assert_eq!(NodeLock::probe(&path).0, LockState::Unknown, "without a file");
        let lock = NodeLock::create(path.clone()).expect("a lock");
        assert_eq!(NodeLock::probe(&path).0, LockState::Held, "in the same process too");
        drop(lock);
        let (state, taken) = NodeLock::probe(&path);
        assert_eq!(state, LockState::Free);
        assert_eq!(NodeLock::probe(&path).0, LockState::Held, "one takes it");
        taken.expect("it is ours").remove();
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn lock_file_is_private_and_no_link_is_followed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = crate::testing::sqlite::fresh_file();
        let (path, link) = (folder.folder().join("lock"), folder.folder().join("link"));
        let lock = NodeLock::create(path.clone()).expect("a lock");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(NodeLock::probe(&link).0, LockState::Unknown);
        drop(lock);
        assert_eq!(NodeLock::probe(&link).0, LockState::Unknown);
    }
}
