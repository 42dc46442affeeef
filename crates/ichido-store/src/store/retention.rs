//! How far retention may go, whatever the wall clock says.

use std::time::Duration;

use ichido_core::clock::{Reading, Retention};
use ichido_core::time::Timestamp;

use super::Store;
use crate::driver::on;
use crate::error::StoreError;
use crate::held::lock;

/// How far retention advances before that is written down: what a restart loses of it is caught up with in half a minute.
const WRITE_EVERY: Duration = Duration::from_mins(10);

/// How far this process has come, and what of it is written down.
pub(super) struct Progress {
    retention: Retention,
    written: Option<Timestamp>,
}

/// The moment that counts as now for what is forgotten.
pub(super) struct Limit {
    pub(super) until: Timestamp,
    /// How far that is behind the wall clock.
    pub(super) behind: Duration,
}

impl Limit {
    /// A moment that was counted from the wall clock, counted from here.
    pub(super) fn moved(&self, moment: Timestamp) -> Timestamp {
        let behind = i64::try_from(self.behind.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(moment.as_micros().saturating_sub(behind))
    }
}

impl Store {
    /// Begins a round of retention; `None` when the wall clock was set since the last one, and nothing may be forgotten.
    pub(super) async fn forget_until(&self) -> Result<Option<Limit>, StoreError> {
        // Read first: an answer that takes long makes the wall clock later, never earlier.
        let monotonic = self.skew.monotonic();
        let now = Reading { wall: self.now().await?, monotonic };
        if lock(&self.retention).is_none() {
            let written = on!(&*self.driver, driver => driver.retention_reached().await)?;
            let retention = Retention::begin(now, written);
            lock(&self.retention).get_or_insert(Progress { retention, written });
        }
        let (round, reached) = {
            let mut progress = lock(&self.retention);
            // It was put there above, and nobody takes it away.
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
            on!(&*self.driver, driver => driver.retention_reach(reached).await)?;
            if let Some(progress) = &mut *lock(&self.retention) {
                progress.written = Some(reached);
            }
        }
        Ok(Some(Limit { until, behind: now.wall.since(until) }))
    }
}
