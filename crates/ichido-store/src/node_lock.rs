//! Locks that show which processes live: a file per node beside the database.
//!
//! Guarantee: while a node's process lives, nobody else can take its lock, whatever the clock says; when it ends, even by
//! `kill -9`, the operating system releases it. The file's name follows from the node's id, so a row of the database never names
//! another file. Links are not followed, and a file that was put in its place says nothing: each contains its own inode number.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use ichido_core::clock::LockState;

/// The maximum size of the file's text that is read: an inode number.
const MAX_TEXT_BYTES: u64 = 32;

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
        let locked = options.open(&path).and_then(|mut file| {
            let locked = file.try_lock().map_err(io::Error::from);
            let written = locked.and_then(|()| file.write_all(number(&file.metadata()?).as_bytes()));
            written.inspect_err(|_| remove(&path)).map(|()| file)
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
            Ok(()) if !is_own(&file) => (LockState::Unknown, None),
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
    if number(&file.metadata()?) == number(&named) {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// Whether a file is the one that its node created, and not a copy or another one in its place.
fn is_own(file: &File) -> bool {
    let mut text = String::new();
    let read = file.take(MAX_TEXT_BYTES).read_to_string(&mut text);
    read.is_ok() && file.metadata().is_ok_and(|metadata| number(&metadata) == text)
}

/// Returns the inode number, which is the same for all names of a file.
#[cfg(unix)]
fn number(file: &Metadata) -> String {
    std::os::unix::fs::MetadataExt::ino(file).to_string()
}

/// On other systems an open file cannot be replaced.
#[cfg(not(unix))]
fn number(_file: &Metadata) -> String {
    String::new()
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
    fn file_in_the_place_of_a_lock_says_nothing() {
        let folder = crate::testing::sqlite::fresh_file();
        let path = folder.folder().join("ichido.db-node-1");
        let _lock = NodeLock::create(path.clone()).expect("a lock");
        let copy = folder.folder().join("copy");
        std::fs::copy(&path, &copy).unwrap();
        for replace in [
            |path: &Path, _: &Path| std::fs::write(path, ""),
            |path: &Path, copy: &Path| std::fs::rename(copy, path),
        ] {
            std::fs::remove_file(&path).unwrap();
            replace(&path, &copy).unwrap();
            assert_eq!(NodeLock::probe(&path).0, LockState::Unknown, "its node may live");
        }
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
