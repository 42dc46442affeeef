//! One sender for a file and a destination, over all processes.
//!
//! The lock is on a file beside the queue's, and the system frees it when its holder is gone, however that died: nobody waits for a lease.
//! Never on the queue's own file, whose locks are SQLite's.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use ichido_core::digest::Digest;

use super::error::QueueError;

/// How many characters of a destination's digest tell its lock from the others'.
const DIGITS: usize = 16;

/// Held for as long as it is there.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it, or says that somebody else has it.
    pub(super) fn take(queue: &Path, destination: &str) -> Result<Self, QueueError> {
        let digest = Digest::of_bytes(destination.as_bytes()).to_string();
        let digits: String = digest.trim_start_matches("sha256:").chars().take(DIGITS).collect();
        let mut name = queue.as_os_str().to_owned();
        name.push(format!(".sender-{digits}"));
        let path = std::path::PathBuf::from(name);
        let failed = |error| QueueError::Lock { file: path.clone(), error };
        let mut options = OpenOptions::new();
        // It stays when it is not held any more: one that is removed could be held by two, each under another file of the same name.
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(QueueError::SenderBusy),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}
