//! Watches the messages of a canary step until they end.

use ichido_store::error::StoreError;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::bulk::{BulkEnd, BulkOperation, limits};
use super::canary::{Canary, CanaryCounts, CanaryDecision, Observation, judge, observe};

impl BulkOperation {
    /// Watches messages until enough succeeded, which returns `None`, or the operation ends.
    pub(super) async fn watch(
        &self,
        ids: &[Uuid],
        canary: Canary,
        operation: Uuid,
        stop: &impl Fn() -> bool,
        report: &mut impl FnMut(CanaryCounts),
    ) -> Result<Option<BulkEnd>, StoreError> {
        let until = Instant::now() + canary.watch_for;
        loop {
            let is_timed_out = until <= Instant::now();
            let mut watched = CanaryCounts::default();
            let stages = self.store.messages().states(ids).await?;
            let mut failed_ids = Vec::new();
            for (id, stage, attempts) in &stages {
                let observation = observe(*stage, *attempts);
                watched.add(observation);
                if observation == Observation::Failed && failed_ids.len() < limits::MAX_FAILED_IDS {
                    failed_ids.push(*id);
                }
            }
            // Only sent or cancelled messages are ever deleted.
            for _ in stages.len()..ids.len() {
                watched.add(Observation::Succeeded);
            }
            report(watched);
            match judge(watched, canary, is_timed_out) {
                CanaryDecision::Widen => return Ok(None),
                CanaryDecision::Halt => return Ok(Some(BulkEnd::Halted { watched, failed_ids })),
                CanaryDecision::Wait => (),
            }
            if let Some(ended) = self.stopped(operation, stop).await? {
                return Ok(Some(ended));
            }
            sleep(limits::WATCH_EVERY).await;
        }
    }
}
