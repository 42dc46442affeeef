//! What is counted, by queue (SPEC D14). No label holds a key or an identity: queues and outcomes are few.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

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
    const ALL: [Self; 5] = [Self::Success, Self::Retry, Self::Dead, Self::ConflictProcessed, Self::Parked];

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

const EXECUTED: &str = "ichido_worker_executed_total";
const REPLAYED: &str = "ichido_worker_replayed_total";
const SUPPRESSED: &str = "ichido_worker_suppressed_total";
const FENCED: &str = "ichido_worker_fenced_total";
const UNKNOWN: &str = "ichido_worker_unknown_total";
const RESCUED: &str = "ichido_worker_rescued_total";

/// Tells the recorder of metrics, once it is installed, what each metric of a worker is.
pub fn describe_metrics() {
    for (name, what) in [
        (
            "outbox_dequeue_total",
            "Messages claimed (result success), and claims that found none (result empty)",
        ),
        ("outbox_send_total", "What tries came to, by outcome"),
        (EXECUTED, "Calls made"),
        (REPLAYED, "Calls answered as processed before under the same key"),
        (
            SUPPRESSED,
            "Calls not made although their turn had come: the claim was lost, or an earlier try may have done it",
        ),
        (FENCED, "Reports that came after their claim was lost"),
        (UNKNOWN, "Tries of which nobody knows whether they took effect"),
        (RESCUED, "Messages taken back from workers that are gone"),
    ] {
        describe_counter!(name, Unit::Count, what);
    }
    describe_gauge!("outbox_inflight", Unit::Count, "Calls under way");
    let oldest = "The age of the oldest message that could be claimed now; 0 when there is none";
    describe_gauge!("outbox_oldest_waiting_seconds", Unit::Seconds, oldest);
    let lag = "From when a message was put in until it was sent or dead";
    describe_histogram!("outbox_lag_seconds", Unit::Seconds, lag);
    describe_histogram!("outbox_retry_count", Unit::Count, "The retries of messages that were sent or dead");
}

/// Shows the counts of a queue from the start: what is missing cannot be told from what never happened.
pub(super) fn begin(queue: &str) {
    for result in ["success", "empty"] {
        counter!("outbox_dequeue_total", "queue" => queue.to_owned(), "result" => result).increment(0);
    }
    for outcome in Outcome::ALL {
        counter!("outbox_send_total", "queue" => queue.to_owned(), "outcome" => outcome.as_str())
            .increment(0);
    }
    for name in [EXECUTED, REPLAYED, SUPPRESSED, FENCED, UNKNOWN, RESCUED] {
        counter!(name, "queue" => queue.to_owned()).increment(0);
    }
    gauge!("outbox_inflight", "queue" => queue.to_owned()).increment(0.0);
}

/// What every message of a queue moves, found once: looking for a name takes longer than counting.
pub(super) struct Meters {
    executed: Counter,
    in_flight: Gauge,
    sent: Counter,
    lag: Histogram,
    retries: Histogram,
}

impl Meters {
    pub(super) fn of(queue: &str) -> Self {
        Self {
            executed: counter!(EXECUTED, "queue" => queue.to_owned()),
            in_flight: gauge!("outbox_inflight", "queue" => queue.to_owned()),
            sent: sends(queue, Outcome::Success),
            lag: histogram!("outbox_lag_seconds", "queue" => queue.to_owned()),
            retries: histogram!("outbox_retry_count", "queue" => queue.to_owned()),
        }
    }

    /// A call is made; it is under way until what this returns is dropped.
    pub(super) fn execute(&self) -> InFlight<'_> {
        self.executed.increment(1);
        self.in_flight.increment(1.0);
        InFlight(&self.in_flight)
    }

    /// What was sent took effect, with its message in its last state.
    pub(super) fn sent(&self) {
        self.sent.increment(1);
    }

    /// A message left for good: how long it took from its creation, and how many retries.
    pub(super) fn left(&self, lag: Duration, retries: u32) {
        self.lag.record(lag.as_secs_f64());
        self.retries.record(f64::from(retries));
    }
}

/// Messages were claimed, or there were none.
pub(super) fn dequeued(queue: &str, count: usize) {
    let (result, count) = if count == 0 { ("empty", 1) } else { ("success", count as u64) };
    counter!("outbox_dequeue_total", "queue" => queue.to_owned(), "result" => result).increment(count);
}

/// What was sent has ended, with its message in a new state.
pub(super) fn ended(queue: &str, outcome: Outcome) {
    sends(queue, outcome).increment(1);
}

fn sends(queue: &str, outcome: Outcome) -> Counter {
    counter!("outbox_send_total", "queue" => queue.to_owned(), "outcome" => outcome.as_str())
}

/// The age of the oldest message that waits: a stalled queue sends nothing, and so shows no lag.
pub(super) fn oldest_waiting(queue: &str, age: Duration) {
    gauge!("outbox_oldest_waiting_seconds", "queue" => queue.to_owned()).set(age.as_secs_f64());
}

/// A call was answered as processed before.
pub(super) fn replayed(queue: &str) {
    counter!(REPLAYED, "queue" => queue.to_owned()).increment(1);
}

/// A call was not made although its turn had come: its claim was lost, or an earlier try may have done it or did.
pub(super) fn suppressed(queue: &str) {
    counter!(SUPPRESSED, "queue" => queue.to_owned()).increment(1);
}

/// A report came after its claim was lost.
pub(super) fn fenced(queue: &str) {
    counter!(FENCED, "queue" => queue.to_owned()).increment(1);
}

/// The effect of a try is not known.
pub(super) fn unknown(queue: &str) {
    counter!(UNKNOWN, "queue" => queue.to_owned()).increment(1);
}

/// Messages were taken back from workers that are gone.
pub(super) fn rescued(queue: &str, count: usize) {
    counter!(RESCUED, "queue" => queue.to_owned()).increment(count as u64);
}

/// A call under way, until this is dropped.
pub(super) struct InFlight<'a>(&'a Gauge);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
