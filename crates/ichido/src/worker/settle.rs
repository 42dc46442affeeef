//! Settles a message's outcome, until it is durable.

use std::time::Duration;

use ichido_core::lifecycle::{State, StateName, StepRefusal};
use ichido_core::text;
use ichido_core::verdict::ErrorCode;
use ichido_store::error::StoreError;
use ichido_store::message::{Settlement, StepResult};

use super::claim::LeasedMessage;
use super::metrics::{self, Outcome};
use super::node::{ServedQueue, WorkerNode};

/// The first wait after the store could not be reached.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// The longest wait between two attempts to reach it.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The longest item or error text in a log line, in characters.
const MAX_LOGGED_CHARS: usize = 200;

impl WorkerNode {
    /// Settles a message. Returns when its outcome is durable or can never be.
    ///
    /// The slot stays occupied while the store is unreachable, so a worker whose settlements lag claims nothing more.
    pub(super) async fn settle(&self, served: &ServedQueue, leased: &LeasedMessage, settlement: Settlement) {
        if let Some(stepped) = self.settle_until_durable(&settlement).await {
            self.record_settlement(served, leased, &settlement, stepped);
        }
    }

    /// Returns the result, or `None` if it can never be stored.
    async fn settle_until_durable(&self, settlement: &Settlement) -> Option<StepResult> {
        let (message, mut wait) = (settlement.id, RETRY_DELAY);
        loop {
            match self.store.claims().settle(settlement.clone()).await {
                Ok(stepped) => return Some(stepped),
                Err(error) if !is_transient(&error) => {
                    // Its lease lapses, and the rescue decides by what is known.
                    tracing::error!(error = error.with_causes(), message_id = %message, "failed to store an outcome; not retrying");
                    return None;
                }
                Err(error) => {
                    tracing::warn!(error = error.with_causes(), message_id = %message, "failed to store an outcome; retrying");
                    tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                    wait = (wait * 2).min(MAX_RETRY_DELAY);
                }
            }
        }
    }

    /// Records a success that was committed with its handler's writes, and deletes its claim.
    // Spec: H1.
    pub(super) async fn settled_in_transaction(
        &self,
        served: &ServedQueue,
        leased: &LeasedMessage,
        success: &Settlement,
    ) {
        let fence = leased.work.fence;
        if let Err(error) = self.finished.submit(fence, 0).await {
            // It lapses, and the rescue finds nothing to do.
            tracing::debug!(error = error.with_causes(), %fence, "failed to delete a finished claim");
        }
        self.record_settlement(served, leased, success, StepResult::Now(State::Sent));
    }

    /// Finds out whether a success was committed, by settling a failure.
    ///
    /// The failure waits for a transaction that is still open, and is refused if the success was committed or the claim was
    /// lost.
    // Spec: H1.
    pub(super) async fn settle_in_doubt(
        &self,
        served: &ServedQueue,
        leased: &LeasedMessage,
        success: &Settlement,
        failure: Settlement,
    ) {
        tracing::warn!(message_id = %success.id, "commit outcome unknown; reading it back");
        let Some(stepped) = self.settle_until_durable(&failure).await else { return };
        let is_refused = matches!(stepped, StepResult::Refused(StepRefusal::StaleFence));
        if is_refused && self.has_succeeded(leased).await {
            return self.settled_in_transaction(served, leased, success).await;
        }
        self.record_settlement(served, leased, &failure, stepped);
    }

    /// Returns whether the message ended with a success under this claim.
    async fn has_succeeded(&self, leased: &LeasedMessage) -> bool {
        let steps = self.store.messages().transitions(leased.work.id).await.unwrap_or_default();
        let fence = Some(leased.work.fence.get());
        steps.iter().any(|step| step.fence == fence && step.to == StateName::Sent)
    }

    fn record_settlement(
        &self,
        served: &ServedQueue,
        leased: &LeasedMessage,
        settlement: &Settlement,
        stepped: StepResult,
    ) {
        let (work, queue, metrics_of_queue) = (&leased.work, served.name.as_str(), &served.metrics);
        let (message, key, trace_id) = (work.id, work.key.log_hash(), work.trace_id.as_deref());
        let named = || named(work.item.as_deref(), settlement.note.excerpt.as_deref());
        let retries = work.history.attempts.saturating_sub(1);
        let is_retry = 0 < retries;
        let failed = |outcome| {
            metrics::count_attempt(queue, is_retry, outcome);
            self.count_retry(queue, is_retry, true);
        };
        // A message that was to be sent later is not late until then.
        let lag = || leased.now(&self.clock).since(work.run_at.unwrap_or(work.created_at));
        match stepped {
            StepResult::Now(State::Sent) => {
                if settlement.note.code == Some(ErrorCode::ConflictProcessed) {
                    metrics::count(metrics::REPLAYED, queue, 1);
                    metrics::count_attempt(queue, is_retry, Outcome::ConflictProcessed);
                } else {
                    metrics_of_queue.sent(is_retry);
                }
                self.count_retry(queue, is_retry, false);
                self.record_finished(served, lag(), retries);
            }
            StepResult::Now(State::Failed { .. }) => failed(Outcome::Retry),
            StepResult::Now(State::Dead { effect, .. }) => {
                failed(Outcome::Dead);
                self.record_finished(served, lag(), retries);
                let code = settlement.note.code.map(ErrorCode::as_str);
                let (attempts, (item, error)) = (work.history.attempts, named());
                tracing::warn!(queue, message_id = %message, key, trace_id, item, error, attempts, code, ?effect, "dead_letter: message will not be retried");
            }
            StepResult::Now(State::Parked { .. }) => {
                failed(Outcome::Parked);
                let code = settlement.note.code.map(ErrorCode::as_str);
                tracing::warn!(queue, message_id = %message, key, trace_id, item = named().0, code, "parked: effect unknown, waiting for lookup or decision");
            }
            StepResult::Now(State::Cancelled { effect, .. }) => {
                metrics::count_attempt(queue, is_retry, Outcome::Cancelled);
                tracing::info!(queue, message_id = %message, key, trace_id, ?effect, "message cancelled on request");
            }
            // Given back; a holder's report leads to no other state.
            StepResult::Now(State::Queued { .. } | State::Sending { .. }) => (),
            // It was sent or cancelled by somebody else in the meantime; a report cannot change that.
            StepResult::Refused(StepRefusal::StaleFence | StepRefusal::WrongState) => {
                metrics::count(metrics::FENCED, queue, 1);
                let fence = work.fence;
                tracing::warn!(queue, message_id = %message, key, trace_id, %fence, "report arrived after its claim was lost");
            }
            StepResult::Refused(why) => {
                tracing::error!(queue, message_id = %message, key, %why, "report refused; its lease will lapse");
            }
            StepResult::NoSuchMessage => {
                tracing::error!(queue, message_id = %message, "report named a message that does not exist");
            }
        }
    }

    /// Counts a retry for alerts.
    // Spec: A15.
    fn count_retry(&self, queue: &str, is_retry: bool, has_failed: bool) {
        if is_retry {
            self.store.counters().retried(queue, has_failed);
        }
    }

    /// Records a finished message.
    fn record_finished(&self, served: &ServedQueue, lag: Duration, retries: u32) {
        served.metrics.finished(lag, retries);
        self.store.counters().left(served.name.as_str(), lag);
    }
}

/// Returns item and error text for a log line: visible characters only, of bounded length.
// Spec: E3.
pub(super) fn named(item: Option<&str>, error: Option<&str>) -> (Option<String>, Option<String>) {
    let line = |text: &str| text::bounded(text, MAX_LOGGED_CHARS);
    (item.map(line), error.map(line))
}

/// Returns whether the same statement may succeed later.
pub(super) fn is_transient(error: &StoreError) -> bool {
    matches!(error, StoreError::Busy | StoreError::Unavailable(_) | StoreError::Unknown(_))
}
