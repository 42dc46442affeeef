//! Settles a message's outcome, until it is durable.

use std::time::Duration;

use ichido_core::lifecycle::{State, StateName, StepRefusal};
use ichido_core::text;
use ichido_core::verdict::ErrorCode;
use ichido_store::error::StoreError;
use ichido_store::message::{Settlement, StepResult};

use super::claim::LeasedMessage;
use super::in_place::SettledMessage;
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

    /// Settles messages together. Returns when their outcomes are durable or can never be.
    pub(super) async fn settle_all(&self, served: &ServedQueue, mut messages: Vec<SettledMessage>) {
        let mut wait = RETRY_DELAY;
        while !messages.is_empty() {
            let settlements = messages.iter().map(|message| message.settlement.clone()).collect();
            let stepped = self.store.claims().settle_together(settlements).await;
            messages = self.record_settlements(served, messages, stepped);
            if !messages.is_empty() {
                back_off(&mut wait).await;
            }
        }
    }

    /// Records the results of messages that were settled together. Returns those to be settled again.
    fn record_settlements(
        &self,
        served: &ServedQueue,
        messages: Vec<SettledMessage>,
        stepped: Vec<Result<StepResult, StoreError>>,
    ) -> Vec<SettledMessage> {
        let (mut lags, mut again) = (Vec::with_capacity(messages.len()), Vec::new());
        let now = self.clock.now();
        for (message, stepped) in messages.into_iter().zip(stepped) {
            let SettledMessage { leased, settlement } = &message;
            match stepped {
                // Most of all messages: sent with their first attempt.
                Ok(StepResult::Now(State::Sent))
                    if leased.work.history.attempts <= 1 && settlement.note.code.is_none() =>
                {
                    lags.push(now.since(leased.work.waits_since()));
                }
                Ok(stepped) => self.record_settlement(served, leased, settlement, stepped),
                Err(error) => {
                    if log_failure(&error, settlement) {
                        again.push(message);
                    }
                }
            }
        }
        served.metrics.sent(false, lags.len());
        for lag in &lags {
            served.metrics.finished(*lag, 0);
        }
        self.store.counters().sent(served.name.as_str(), &lags);
        again
    }

    /// Returns the result, or `None` if it can never be stored.
    async fn settle_until_durable(&self, settlement: &Settlement) -> Option<StepResult> {
        let mut wait = RETRY_DELAY;
        loop {
            match self.store.claims().settle(settlement.clone()).await {
                Ok(stepped) => return Some(stepped),
                Err(error) if log_failure(&error, settlement) => back_off(&mut wait).await,
                Err(_) => return None,
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
        let (message, trace_id) = (work.id, work.trace_id.as_deref());
        let key = || work.key.log_hash();
        let named = || named(work.item.as_deref(), settlement.note.excerpt.as_deref());
        let retries = work.history.attempts.saturating_sub(1);
        let is_retry = 0 < retries;
        let failed = |outcome| {
            metrics::count_attempt(queue, is_retry, outcome);
            self.count_retry(queue, is_retry, true);
        };
        // A message that was to be sent later is not late until then, and one that a person sent again not before that.
        let lag = || leased.now(&self.clock).since(work.waits_since());
        match stepped {
            StepResult::Now(State::Sent) => {
                if settlement.note.code == Some(ErrorCode::ConflictProcessed) {
                    metrics::count(metrics::REPLAYED, queue, 1);
                    metrics::count_attempt(queue, is_retry, Outcome::ConflictProcessed);
                } else {
                    metrics_of_queue.sent(is_retry, 1);
                }
                self.count_retry(queue, is_retry, false);
                let lag = lag();
                metrics_of_queue.finished(lag, retries);
                self.store.counters().sent(queue, &[lag]);
            }
            StepResult::Now(State::Failed { .. }) => failed(Outcome::Retry),
            StepResult::Now(State::Dead { effect, .. }) => {
                failed(Outcome::Dead);
                let lag = lag();
                metrics_of_queue.finished(lag, retries);
                self.store.counters().dead(queue, Some(lag));
                let code = settlement.note.code.map(ErrorCode::as_str);
                let (attempts, (item, error)) = (work.history.attempts, named());
                tracing::warn!(queue, message_id = %message, key = key(), trace_id, item, error, attempts, code, ?effect, "dead_letter: message will not be retried");
            }
            StepResult::Now(State::Parked { .. }) => {
                failed(Outcome::Parked);
                self.store.counters().parked(queue);
                let code = settlement.note.code.map(ErrorCode::as_str);
                tracing::warn!(queue, message_id = %message, key = key(), trace_id, item = named().0, code, "parked: effect unknown, waiting for lookup or decision");
            }
            StepResult::Now(State::Cancelled { effect, .. }) => {
                metrics::count_attempt(queue, is_retry, Outcome::Cancelled);
                tracing::info!(queue, message_id = %message, key = key(), trace_id, ?effect, "message cancelled on request");
            }
            // Given back; a holder's report leads to no other state.
            StepResult::Now(State::Queued { .. } | State::Sending { .. }) => (),
            // It was sent or cancelled by somebody else in the meantime; a report cannot change that.
            StepResult::Refused(StepRefusal::StaleFence | StepRefusal::WrongState) => {
                metrics::count(metrics::FENCED, queue, 1);
                self.store.counters().fenced(queue);
                let fence = work.fence;
                tracing::warn!(queue, message_id = %message, key = key(), trace_id, %fence, "report arrived after its claim was lost");
            }
            StepResult::Refused(why) => {
                tracing::error!(queue, message_id = %message, key = key(), %why, "report refused; its lease will lapse");
            }
            StepResult::NoSuchMessage => {
                tracing::error!(queue, message_id = %message, "report named a message that does not exist");
            }
        }
    }

    /// Counts a retry for alerts and series.
    // Spec: A15.
    fn count_retry(&self, queue: &str, is_retry: bool, has_failed: bool) {
        if is_retry {
            self.store.counters().retried(queue, has_failed);
        }
    }
}

/// Returns item and error text for a log line: visible characters only, of bounded length.
// Spec: E3.
pub(super) fn named(item: Option<&str>, error: Option<&str>) -> (Option<String>, Option<String>) {
    let line = |text: &str| text::bounded(text, MAX_LOGGED_CHARS);
    (item.map(line), error.map(line))
}

/// Logs why an outcome was not stored. Returns whether to try again.
fn log_failure(error: &StoreError, settlement: &Settlement) -> bool {
    let (message, is_transient) = (settlement.id, is_transient(error));
    let error = error.with_causes();
    if is_transient {
        tracing::warn!(error, message_id = %message, "failed to store an outcome; retrying");
    } else {
        // Its lease lapses, and the rescue decides by what is known.
        tracing::error!(error, message_id = %message, "failed to store an outcome; not retrying");
    }
    is_transient
}

/// Waits before the next attempt to reach the store, each time longer.
async fn back_off(wait: &mut Duration) {
    tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
    *wait = (*wait * 2).min(MAX_RETRY_DELAY);
}

/// Returns whether the same statement may succeed later.
pub(super) fn is_transient(error: &StoreError) -> bool {
    matches!(error, StoreError::Busy | StoreError::Unavailable(_) | StoreError::Unknown(_))
}
