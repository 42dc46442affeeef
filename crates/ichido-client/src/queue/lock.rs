//! A lock that allows one sender per file and destination, across all processes.
//!
//! The lock is on a separate file, and the system releases it when its holder dies for any reason, so nobody waits
//! for a lease. The queue's own file is never locked, because its locks are SQLite's.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use ichido_core::digest::Digest;

use super::error::QueueError;

/// How many digits of a destination's digest identify its lock file.
const DIGITS: usize = 16;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, or fails if another process has it.
    pub(super) fn take(queue: &Path, destination: &str) -> Result<Self, QueueError> {
        let digest = Digest::of_bytes(destination.as_bytes()).to_string();
        let digits: String = digest.trim_start_matches("sha256:").chars().take(DIGITS).collect();
        let mut name = queue.as_os_str().to_owned();
        name.push(format!(".sender-{digits}"));
        let path = std::path::PathBuf::from(name);
        let failed = |error| QueueError::Lock { file: path.clone(), error };
        let mut options = OpenOptions::new();
        // The file stays after release: if it were removed, two processes could each lock a different file of the
        // same name.
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
