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
            for (_, stage, attempts) in &stages {
                watched.add(observe(*stage, *attempts));
            }
            // Only sent or cancelled messages are ever deleted.
            for _ in stages.len()..ids.len() {
                watched.add(Observation::Succeeded);
            }
            report(watched);
            match judge(watched, canary, is_timed_out) {
                CanaryDecision::Widen => return Ok(None),
                CanaryDecision::Halt => return Ok(Some(BulkEnd::Halted { watched })),
                CanaryDecision::Wait => (),
            }
            if let Some(ended) = self.stopped(operation, stop).await? {
                return Ok(Some(ended));
            }
            sleep(limits::WATCH_EVERY).await;
        }
    }
}
