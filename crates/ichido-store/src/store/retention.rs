//! How far retention may go, whatever the wall clock says.

use std::time::Duration;

use ichido_core::clock::{ClockPair, Retention};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::Store;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::skew::RetentionProgress;
use crate::statement::shared;

/// How far retention advances before it is stored. What a restart loses is caught up in half a minute.
const WRITE_EVERY: Duration = Duration::from_mins(10);

/// The time that counts as now for deletion.
pub(super) struct RetentionLimit {
    pub(super) until: Timestamp,
    /// How far it is behind the wall clock.
    pub(super) behind: Duration,
}

impl RetentionLimit {
    /// Moves a time that was computed from the wall clock to this clock.
    pub(super) fn moved(&self, moment: Timestamp) -> Timestamp {
        let behind = i64::try_from(self.behind.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(moment.as_micros().saturating_sub(behind))
    }
}

impl Store {
    /// Resumes retention where an earlier process stopped. The first one begins at the wall clock and stores that at once: a
    /// process that starts with a wrong clock must find it.
    pub(super) async fn begin_retention(&self) -> Result<(), StoreError> {
        let now = self.read_clocks().await?;
        let mut written = self.stored_progress().await?;
        let retention = Retention::begin(now, written);
        if written.is_none() {
            let reached = retention.reached();
            let outcome = self.store_progress(reached).await;
            // Another node may be writing it just now. If not, the first round tries again and reports the error.
            written = outcome.is_ok().then_some(reached);
        }
        *self.skew.progress() = Some(RetentionProgress { retention, written });
        Ok(())
    }

    /// Begins a round of retention. Returns `None` if the wall clock was set since the last one: then nothing may be deleted.
    pub(super) async fn forget_until(&self) -> Result<Option<RetentionLimit>, StoreError> {
        let now = self.read_clocks().await?;
        let (round, reached) = {
            let mut progress = self.skew.progress();
            // It is set when the store is opened, and never removed.
            let Some(progress) = progress.as_mut() else { return Ok(None) };
            let round = progress.retention.round(now);
            let reached = progress.retention.reached();
            let is_due = progress.written.is_none_or(|written| WRITE_EVERY <= reached.since(written));
            (round, is_due.then_some(reached))
        };
        let until = match round {
            Ok(until) => until,
            Err(step) => {
                tracing::warn!(by = ?step.by, ahead = step.ahead, "wall clock was set; retention skipped a round");
                return Ok(None);
            }
        };
        if let Some(reached) = reached {
            self.store_progress(reached).await?;
            if let Some(progress) = self.skew.progress().as_mut() {
                progress.written = Some(reached);
            }
        }
        Ok(Some(RetentionLimit { until, behind: now.wall.since(until) }))
    }

    /// Reads how far retention has come on all nodes.
    async fn stored_progress(&self) -> Result<Option<Timestamp>, StoreError> {
        let row = self.driver.optional(shared!("retention_reached"), &[]).await?;
        Ok(row.map(|row| row.timestamp("reached")).transpose()?)
    }

    /// Stores how far retention has come.
    async fn store_progress(&self, reached: Timestamp) -> Result<(), StoreError> {
        let values = [Uuid::nil().into(), reached.into()];
        self.driver.execute(shared!("retention_reach"), &values).await.map(drop)
    }

    /// Reads both clocks.
    async fn read_clocks(&self) -> Result<ClockPair, StoreError> {
        // Read first: a slow answer makes the wall clock later, never earlier.
        let monotonic = self.skew.monotonic();
        Ok(ClockPair { wall: self.now().await?, monotonic })
    }
}
