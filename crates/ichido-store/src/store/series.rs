//! Counts per minute, from all nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::alert::{AlertSubject, MAX_WINDOW};

use super::Series;
use crate::counters::{MAX_SUMS, SubjectCounts, rows, sums};
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::micros;
use crate::statement::{SqlValue, column, paired};

/// How long counts are kept beyond the longest window.
const KEPT_BEYOND: Duration = Duration::from_mins(5);

impl<'s> Series<'s> {
    /// Adds the counts of this process to those of this minute.
    ///
    /// Counts that could not be added are counted again, but not after a lost answer, because they may have been added.
    pub fn flush(self) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let taken = self.0.counters.take();
            let rows = rows(&taken);
            if rows.is_empty() {
                return Ok(());
            }
            let columns = [
                column(&rows, |row| row.about),
                column(&rows, |row| row.kind),
                column(&rows, |row| row.slot),
                column(&rows, |row| row.count),
                column(&rows, |row| row.micros),
            ];
            let added = self
                .0
                .driver
                .execute(paired!("counter_add"), &[SqlValue::Rows(&columns), SqlValue::Now])
                .await;
            if added.is_err() && !matches!(added, Err(StoreError::Unknown(_))) {
                self.0.counters.restore(taken);
            }
            added.map(drop)
        })
    }

    /// Sums the counts of all nodes, for the minutes that began within the window.
    pub fn sums(self, window: Duration) -> StoreFuture<'s, BTreeMap<AlertSubject, SubjectCounts>> {
        Box::pin(async move {
            let values = [micros(window).into(), SqlValue::Now, MAX_SUMS.into()];
            sums(&self.0.driver.all(paired!("counter_sums"), &values).await?)
        })
    }

    /// Deletes the counts of the oldest minute that no window needs. Returns how many rows, or 0.
    pub fn sweep(self) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let values = [micros(MAX_WINDOW + KEPT_BEYOND).into(), SqlValue::Now];
            self.0.driver.execute(paired!("counter_sweep"), &values).await
        })
    }
}
