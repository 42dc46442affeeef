//! Free disk space for an SQLite store.

use std::io;
use std::path::Path;

/// Disk space in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskSpace {
    /// What this user may still write to the store's file system.
    pub(super) free: u64,
    /// The size of the store with its log.
    pub(super) taken: u64,
}

/// Reads the free space of the file system.
#[cfg(unix)]
pub(super) fn disk_space(file: &Path) -> io::Result<DiskSpace> {
    let seen = rustix::fs::statvfs(file)?;
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    // After a clean stop there is no log.
    let log_bytes = std::fs::metadata(Path::new(&log)).map_or(0, |log| log.len());
    let taken = std::fs::metadata(file)?.len().saturating_add(log_bytes);
    Ok(DiskSpace { free: seen.f_bavail.saturating_mul(seen.f_frsize), taken })
}

#[cfg(not(unix))]
pub(super) fn disk_space(_: &Path) -> io::Result<DiskSpace> {
    Err(io::Error::other("unsupported operating system"))
}
