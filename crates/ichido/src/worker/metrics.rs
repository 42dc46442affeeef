//! Metrics by queue and by destination.
//!
//! No label contains a key or an identity: queues, destinations, states and outcomes are few.
// Spec: A14, D14.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ichido_core::lifecycle::StateName;
use ichido_store::Store;
use ichido_store::message::DeadLetterState;
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

ichido_core::words! {
    /// The outcome of an attempt, for its message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Outcome {
        Success = "success",
        Retry = "retry",
        Dead = "dead",
        ConflictProcessed = "conflict_processed",
        Parked = "parked",
        Cancelled = "cancelled",
    }
}

const EXECUTED: &str = "ichido_worker_executed_total";
pub(super) const REPLAYED: &str = "ichido_worker_replayed_total";
pub(super) const SUPPRESSED: &str = "ichido_worker_suppressed_total";
pub(super) const FENCED: &str = "ichido_worker_fenced_total";
pub(super) const UNKNOWN: &str = "ichido_worker_unknown_total";
pub(super) const TX_TIMEOUTS: &str = "ichido_worker_tx_timeouts_total";
pub(super) const RESCUED: &str = "ichido_worker_rescued_total";
const UNSERVED: &str = "ichido_worker_unserved";
const ATTEMPTS: &str = "ichido_worker_attempts_total";
const MESSAGES: &str = "outbox_messages";
const DEAD_LETTER_OLDEST: &str = "outbox_dead_letter_oldest_seconds";
const PAUSED: &str = "ichido_destination_paused";
const CIRCUIT: &str = "ichido_destination_circuit";
const FIRING: &str = "ichido_alerts_firing";
const RATE: &str = "ichido_destination_max_calls_per_second";

/// The states in which a message waits.
///
/// It waits for its turn, its next attempt, a response or a person.
pub(super) const WAITING: [StateName; 5] =
    [StateName::Queued, StateName::Failed, StateName::Sending, StateName::Parked, StateName::Dead];

/// Describes a worker's metrics to the installed recorder.
pub fn describe_metrics() {
    for (name, what) in [
        (
            "outbox_dequeue_total",
            "Messages claimed (result success) and claims that found none (result empty)",
        ),
        ("outbox_send_total", "Attempts by outcome"),
        (EXECUTED, "Calls made"),
        (REPLAYED, "Calls that the destination reported as processed before under the same key"),
        (SUPPRESSED, "Calls skipped because the claim was lost or an earlier attempt may have taken effect"),
        (FENCED, "Reports that arrived after their claim was lost"),
        (UNKNOWN, "Attempts whose effect is unknown"),
        (RESCUED, "Messages rescued from dead workers"),
        (TX_TIMEOUTS, "Transactions of handlers that were open for longer than tx_timeout and rolled back"),
        (ATTEMPTS, "Attempts by outcome, automatic retries (retry yes) apart from first attempts (no)"),
    ] {
        describe_counter!(name, Unit::Count, what);
    }
    describe_gauge!("outbox_inflight", Unit::Count, "Calls in flight");
    let oldest = "Time for which the oldest message that can be claimed has waited; 0 if there is none";
    describe_gauge!("outbox_oldest_waiting_seconds", Unit::Seconds, oldest);
    let messages = "Unfinished messages by state; dead and parked ones wait for a person. Every worker reports \
        the totals of all: do not sum them";
    describe_gauge!(MESSAGES, Unit::Count, messages);
    let letter = "How long the oldest dead or parked message has waited for a person; 0 if there is none";
    describe_gauge!(DEAD_LETTER_OLDEST, Unit::Seconds, letter);
    describe_gauge!(PAUSED, Unit::Count, "1 while a destination is paused as it asked (Retry-After), else 0");
    describe_gauge!(
        CIRCUIT,
        Unit::Count,
        "1 for the state of a destination's circuit breaker, 0 for the other states"
    );
    let rate = "Maximum calls per second from all workers together to a destination; +Inf without a limit";
    describe_gauge!(RATE, Unit::CountPerSecond, rate);
    let unserved = "Messages left by dead workers in queues that no worker serves, so none rescues them";
    describe_gauge!(UNSERVED, Unit::Count, unserved);
    let firing = "Open incidents by rule, reported by the worker that watches; the others report 0";
    describe_gauge!(FIRING, Unit::Count, firing);
    let lag = "Time from enqueue, or from when it was scheduled, until a message was sent or dead";
    describe_histogram!("outbox_lag_seconds", Unit::Seconds, lag);
    describe_histogram!("outbox_retry_count", Unit::Count, "Retries of messages that were sent or dead");
    super::resolved::describe_resolved();
    crate::unknown_outcomes::describe_metrics();
}

/// Registers a queue's counters at zero.
///
/// A missing counter cannot be distinguished from one that never moved.
pub(super) fn register_queue(queue: &str) {
    for result in ["success", "empty"] {
        counter!("outbox_dequeue_total", "queue" => queue.to_owned(), "result" => result).increment(0);
    }
    for outcome in Outcome::ALL {
        sent_counter(queue, outcome).increment(0);
        for is_retry in [false, true] {
            attempts_counter(queue, is_retry, outcome).increment(0);
        }
    }
    for name in [EXECUTED, REPLAYED, SUPPRESSED, FENCED, UNKNOWN, RESCUED, TX_TIMEOUTS] {
        counter!(name, "queue" => queue.to_owned()).increment(0);
    }
    gauge!("outbox_inflight", "queue" => queue.to_owned()).increment(0.0);
    // We serve it.
    unserved(queue, 0);
}

/// The metrics that every message of a queue changes, and its series.
///
/// They are looked up once, because the lookup is slower than counting.
pub(super) struct QueueMetrics {
    queue: String,
    /// For the counters of its series.
    store: Store,
    executed: Counter,
    in_flight: Gauge,
    /// The calls in flight of all queues.
    in_flight_total: Arc<AtomicUsize>,
    sent: Counter,
    /// Successful first attempts, and successful retries.
    succeeded: [Counter; 2],
    lag: Histogram,
    retries: Histogram,
}

impl QueueMetrics {
    pub(super) fn new(store: &Store, queue: &str, in_flight_total: &Arc<AtomicUsize>) -> Self {
        Self {
            queue: queue.to_owned(),
            store: store.clone(),
            in_flight_total: Arc::clone(in_flight_total),
            executed: counter!(EXECUTED, "queue" => queue.to_owned()),
            in_flight: gauge!("outbox_inflight", "queue" => queue.to_owned()),
            sent: sent_counter(queue, Outcome::Success),
            succeeded: [false, true].map(|is_retry| attempts_counter(queue, is_retry, Outcome::Success)),
            lag: histogram!("outbox_lag_seconds", "queue" => queue.to_owned()),
            retries: histogram!("outbox_retry_count", "queue" => queue.to_owned()),
        }
    }

    /// Counts a call; it is in flight until the returned guard is dropped.
    pub(super) fn start_call(self: &Arc<Self>) -> InFlight {
        self.count_calls(1);
        self.in_flight()
    }

    /// Counts calls that have ended.
    pub(super) fn count_calls(&self, count: usize) {
        self.executed.increment(count as u64);
        self.store.counters().executed(&self.queue, count as u64);
    }

    /// Has one call in flight until the returned guard is dropped.
    pub(super) fn in_flight(self: &Arc<Self>) -> InFlight {
        self.in_flight.increment(1.0);
        self.in_flight_total.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Counts messages that were sent.
    pub(super) fn sent(&self, is_retry: bool, count: usize) {
        self.sent.increment(count as u64);
        self.succeeded[usize::from(is_retry)].increment(count as u64);
    }

    /// Records a finished message: its lag since it was due, and its retries.
    pub(super) fn finished(&self, lag: Duration, retries: u32) {
        self.lag.record(lag.as_secs_f64());
        self.retries.record(f64::from(retries));
    }
}

/// Counts claimed messages, or a claim that found none.
pub(super) fn dequeued(queue: &str, count: usize) {
    let (result, count) = if count == 0 { ("empty", 1) } else { ("success", count as u64) };
    counter!("outbox_dequeue_total", "queue" => queue.to_owned(), "result" => result).increment(count);
}

/// Counts an attempt that put its message into a new state.
pub(super) fn count_attempt(queue: &str, is_retry: bool, outcome: Outcome) {
    count_outcome(queue, outcome);
    attempts_counter(queue, is_retry, outcome).increment(1);
}

fn attempts_counter(queue: &str, is_retry: bool, outcome: Outcome) -> Counter {
    let (queue, retry) = (queue.to_owned(), if is_retry { "yes" } else { "no" });
    counter!(ATTEMPTS, "queue" => queue, "retry" => retry, "outcome" => outcome.as_str())
}

/// Counts a message's new state, with or without an attempt.
pub(super) fn count_outcome(queue: &str, outcome: Outcome) {
    sent_counter(queue, outcome).increment(1);
}

fn sent_counter(queue: &str, outcome: Outcome) -> Counter {
    counter!("outbox_send_total", "queue" => queue.to_owned(), "outcome" => outcome.as_str())
}

/// Sets the age of the oldest waiting message.
///
/// A stalled queue sends nothing, and so shows no lag.
pub(super) fn oldest_waiting(queue: &str, age: Duration) {
    gauge!("outbox_oldest_waiting_seconds", "queue" => queue.to_owned()).set(age.as_secs_f64());
}

/// Sets how many messages of a queue wait in a state.
pub(super) fn waiting(queue: &str, state: StateName, count: i64) {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge is a float, and exact for more messages than there will be"
    )]
    let count = count as f64;
    gauge!(MESSAGES, "queue" => queue.to_owned(), "state" => state.as_str()).set(count);
}

/// Sets how long the oldest letter of a queue has waited.
pub(super) fn oldest_letter(queue: &str, state: DeadLetterState, age: Duration) {
    gauge!(DEAD_LETTER_OLDEST, "queue" => queue.to_owned(), "state" => state.as_str()).set(age.as_secs_f64());
}

/// Increments a counter by queue: [`REPLAYED`], [`SUPPRESSED`], [`FENCED`], [`UNKNOWN`] or [`RESCUED`].
pub(super) fn count(what: &'static str, queue: &str, count: usize) {
    counter!(what, "queue" => queue.to_owned()).increment(count as u64);
}

ichido_core::words! {
    /// The state of a destination's circuit breaker.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum CircuitState {
        Closed = "closed",
        HalfOpen = "half_open",
        Open = "open",
    }
}

/// The gauges of a destination, looked up once like [`QueueMetrics`].
pub(super) struct DestinationGauges {
    paused: Gauge,
    circuit: [(CircuitState, Gauge); 3],
    rate: Gauge,
}

impl DestinationGauges {
    pub(super) fn new(destination: &str) -> Self {
        let circuit = |is: CircuitState| {
            (is, gauge!(CIRCUIT, "destination" => destination.to_owned(), "state" => is.as_str()))
        };
        Self {
            paused: gauge!(PAUSED, "destination" => destination.to_owned()),
            circuit: CircuitState::ALL.map(circuit),
            rate: gauge!(RATE, "destination" => destination.to_owned()),
        }
    }

    pub(super) fn set(&self, is_paused: bool, circuit: CircuitState, max_calls_per_second: Option<f64>) {
        self.paused.set(f64::from(u8::from(is_paused)));
        for (is, gauge) in &self.circuit {
            gauge.set(f64::from(u8::from(*is == circuit)));
        }
        self.rate.set(max_calls_per_second.unwrap_or(f64::INFINITY));
    }
}

/// Sets how many messages dead workers left in a queue that nobody serves.
pub(super) fn unserved(queue: &str, count: u64) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    gauge!(UNSERVED, "queue" => queue.to_owned()).set(f64::from(count));
}

/// Sets how many incidents of a rule are open.
pub(super) fn firing(rule: &'static str, count: usize) {
    gauge!(FIRING, "rule" => rule).set(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
}

/// A call in flight, until this is dropped.
pub(super) struct InFlight(Arc<QueueMetrics>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.decrement(1.0);
        self.0.in_flight_total.fetch_sub(1, Ordering::Relaxed);
    }
}
