//! Whether the disk is full, judging by the writes of this process.
//!
//! Guarantee: after a write that failed for lack of space, the disk counts as full until another write succeeds, and for at
//! least [`FULL_FOR`]. Small writes may still succeed when larger ones fail.

use std::sync::Mutex;
use std::time::Duration;

use crate::error::StoreError;
use ichido_core::sync::lock;

/// How long a disk counts as full after a write that failed for lack of space.
const FULL_FOR: Duration = Duration::from_secs(30);

/// When a write last failed for lack of space, on the monotonic clock.
#[derive(Default)]
pub(crate) struct DiskSpace(Mutex<Option<Duration>>);

impl DiskSpace {
    /// Records the outcome of a write.
    pub(crate) fn record<T>(&self, now: Duration, written: &Result<T, StoreError>) {
        match written {
            Err(StoreError::Full) => *lock(&self.0) = Some(now),
            Err(_) => {}
            Ok(_) => {
                let mut full_at = lock(&self.0);
                if full_at.is_some_and(|full_at| FULL_FOR <= now.saturating_sub(full_at)) {
                    *full_at = None;
                }
            }
        }
    }

    /// Fails while the disk counts as full.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if lock(&self.0).is_some() { Err(StoreError::Full) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_until_a_later_write_is_done() {
        let (disk_space, second) = (DiskSpace::default(), Duration::from_secs(1));
        let (done, full) = (Ok(()), Err::<(), _>(StoreError::Full));
        disk_space.record(second, &done);
        assert!(disk_space.check().is_ok());
        disk_space.record(second, &full);
        assert!(disk_space.check().is_err());
        disk_space.record(second * 2, &done);
        assert!(disk_space.check().is_err(), "a small write says little");
        disk_space.record(second + FULL_FOR, &Err::<(), _>(StoreError::Busy));
        assert!(disk_space.check().is_err(), "nothing was written");
        disk_space.record(second + FULL_FOR, &done);
        assert!(disk_space.check().is_ok());
    }
}
