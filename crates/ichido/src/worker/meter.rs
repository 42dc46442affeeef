//! What is counted, by queue (SPEC D14). No label holds a key or an identity: queues and outcomes are few.

use std::time::Duration;

use metrics::{Gauge, counter, gauge, histogram};

/// What a try came to, for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Retry,
    Dead,
    ConflictProcessed,
    Parked,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Retry => "retry",
            Self::Dead => "dead",
            Self::ConflictProcessed => "conflict_processed",
            Self::Parked => "parked",
        }
    }
}

/// Messages were claimed, or there were none.
pub(super) fn dequeued(queue: &str, count: usize) {
    let (result, count) = if count == 0 { ("empty", 1) } else { ("success", count as u64) };
    counter!("outbox_dequeue_total", "queue" => queue.to_owned(), "result" => result).increment(count);
}

/// What was sent has ended, with its message in a new state.
pub(super) fn ended(queue: &str, outcome: Outcome) {
    counter!("outbox_send_total", "queue" => queue.to_owned(), "outcome" => outcome.as_str()).increment(1);
}

/// A message left for good: how long it took from its creation, and how many retries.
pub(super) fn left(queue: &str, lag: Duration, retries: u32) {
    histogram!("outbox_lag_seconds", "queue" => queue.to_owned()).record(lag.as_secs_f64());
    histogram!("outbox_retry_count", "queue" => queue.to_owned()).record(f64::from(retries));
}

/// The age of the oldest message that waits: a stalled queue sends nothing, and so shows no lag.
pub(super) fn oldest_waiting(queue: &str, age: Duration) {
    gauge!("outbox_oldest_waiting_seconds", "queue" => queue.to_owned()).set(age.as_secs_f64());
}

/// A call was made.
pub(super) fn executed(queue: &str) {
    counter!("ichido_worker_executed_total", "queue" => queue.to_owned()).increment(1);
}

/// A call was not made although its turn had come: its claim was lost, or an earlier try may have done it or did.
pub(super) fn suppressed(queue: &str) {
    counter!("ichido_worker_suppressed_total", "queue" => queue.to_owned()).increment(1);
}

/// A report came after its claim was lost.
pub(super) fn fenced(queue: &str) {
    counter!("ichido_worker_fenced_total", "queue" => queue.to_owned()).increment(1);
}

/// The effect of a try is not known.
pub(super) fn unknown(queue: &str) {
    counter!("ichido_worker_unknown_total", "queue" => queue.to_owned()).increment(1);
}

/// Messages were taken back from workers that are gone.
pub(super) fn rescued(queue: &str, count: usize) {
    counter!("ichido_worker_rescued_total", "queue" => queue.to_owned()).increment(count as u64);
}

/// A call under way, until this is dropped.
pub(super) struct InFlight(Gauge);

impl InFlight {
    pub(super) fn begin(queue: &str) -> Self {
        let gauge = gauge!("outbox_inflight", "queue" => queue.to_owned());
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
