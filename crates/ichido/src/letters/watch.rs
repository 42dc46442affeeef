//! Watches the messages of a canary step until they end.

use ichido_store::error::StoreError;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::bulk::{Bulk, Ended, limits};
use super::canary::{Canary, CanaryDecision, Observation, Watched, judge, observe};

impl Bulk {
    /// Watches messages until enough succeeded, which returns `None`, or the operation ends.
    pub(super) async fn watch(
        &self,
        ids: &[Uuid],
        canary: Canary,
        operation: Uuid,
        stop: &impl Fn() -> bool,
        report: &mut impl FnMut(Watched),
    ) -> Result<Option<Ended>, StoreError> {
        let until = Instant::now() + canary.watch_for;
        loop {
            let is_timed_out = until <= Instant::now();
            let mut watched = Watched::default();
            let stages = self.store.messages().stages(ids).await?;
            for (_, stage, tries) in &stages {
                watched.add(observe(*stage, *tries));
            }
            // Only sent or cancelled messages are ever deleted.
            for _ in stages.len()..ids.len() {
                watched.add(Observation::Succeeded);
            }
            report(watched);
            match judge(watched, canary, is_timed_out) {
                CanaryDecision::Widen => return Ok(None),
                CanaryDecision::Halt => return Ok(Some(Ended::Halted { watched })),
                CanaryDecision::Wait => (),
            }
            if let Some(ended) = self.stopped(operation, stop).await? {
                return Ok(Some(ended));
            }
            sleep(limits::WATCH_EVERY).await;
        }
    }
}
