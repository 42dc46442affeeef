//! Maintenance on every node: recurring work, a limited amount each time.
//!
//! Every node promotes due messages, declares silent nodes dead, ends requests to cancel messages, and rescues messages of dead
//! workers in the queues that it serves: only a node that knows a queue's destination can judge what a repeated call could do. Work that one node does for
//! all is in `singleton_tasks`, the heartbeat in `heartbeat`.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::lifecycle::StateName;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::ErrorCode;
use ichido_store::error::StoreError;
use ichido_store::message::{DeadLetterState, QueueName, StateCount};
use ichido_store::rescue::RescueOptions;

use super::metrics::{self, Outcome};
use super::node::WorkerNode;
use super::pacer::FRESH_FOR;
use crate::unknown_outcomes;

/// The time between readings of the store's clock.
const READ_CLOCK_EVERY: Duration = Duration::from_secs(10);
/// The time between publications of the queue facts.
///
/// Once would be enough, except that others may consider this node gone, for instance after its machine was suspended.
const PUBLISH_EVERY: Duration = Duration::from_mins(10);
/// The time between searches for dead nodes and lapsed leases.
const RESCUE_EVERY: Duration = Duration::from_secs(1);
/// The time between measurements of waiting messages.
const MEASURE_EVERY: Duration = Duration::from_secs(5);
/// The time between flushes of local counts to the shared ones.
const FLUSH_EVERY: Duration = Duration::from_secs(5);
/// The most rows per statement.
const BATCH_SIZE: u32 = 1_000;
/// The most statements of one kind per round.
const MAX_BATCHES: usize = 10;
/// The most dead claims rescued per round.
const MAX_RESCUES: usize = 100;
/// How long after its claim a call of an unknown queue may be in flight.
const TRAVELS_FOR_UNKNOWN: Duration = Duration::from_mins(10);

/// The log message if the facts could not be published.
pub(super) const NOT_PUBLISHED: &str = "failed to publish the queues";

pub(super) struct Maintenance {
    node: Arc<WorkerNode>,
    clock: Timer,
    publish: Timer,
    rescue: Timer,
    measure: Timer,
    pace: Timer,
    flush: Timer,
}

impl Maintenance {
    pub(super) fn new(node: Arc<WorkerNode>) -> Self {
        // The first ones happened at startup.
        let started = node.clock.elapsed();
        Self {
            node,
            clock: Timer::after(started, READ_CLOCK_EVERY),
            publish: Timer::after(started, PUBLISH_EVERY),
            rescue: Timer::every(RESCUE_EVERY),
            measure: Timer::every(MEASURE_EVERY),
            pace: Timer::every(FRESH_FOR),
            flush: Timer::every(FLUSH_EVERY),
        }
    }

    /// Runs until it is aborted. That leaves nothing half done: each step is one transaction.
    pub(super) async fn run(mut self) {
        loop {
            self.run_once().await;
            tokio::time::sleep(self.node.idle_sleep).await;
        }
    }

    async fn run_once(&mut self) {
        let now = self.node.clock.elapsed();
        if self.clock.is_due(now) {
            self.node.read_clock().await;
        }
        // A publication deletes the facts of nodes that were not seen for long: after a pause, that could be this one.
        if self.node.is_alive().await && self.publish.is_due(now) {
            ok_or_log(NOT_PUBLISHED, self.node.publish().await);
        }
        self.node.promote().await;
        if self.rescue.is_due(now) {
            self.node.declare_dead().await;
            self.node.rescue().await;
            self.node.apply_cancellations().await;
        }
        if self.pace.is_due(now) {
            self.node.resize_slots().await;
            for dispatcher in &self.node.dispatchers {
                dispatcher.pacer.report().await;
                // A pause and an open circuit end by the clock alone.
                dispatcher.pacer.report_status();
            }
        }
        if self.measure.is_due(now) {
            self.node.measure().await;
        }
        if self.flush.is_due(now) {
            self.node.flush().await;
        }
    }
}

/// A task that runs periodically.
pub(super) trait PeriodicTask: Send {
    /// The period.
    const EVERY: Duration;

    /// Runs it once.
    fn run_once(&mut self) -> impl Future<Output = ()> + Send;
}

/// Runs a task periodically until it is aborted.
///
/// That leaves nothing half done: each step is one transaction.
pub(super) async fn run_periodically<R: PeriodicTask>(node: Arc<WorkerNode>, mut task: R) {
    let mut due = Timer::every(R::EVERY);
    loop {
        if due.is_due(node.clock.elapsed()) {
            task.run_once().await;
        }
        tokio::time::sleep(node.idle_sleep).await;
    }
}

/// A periodic timer on the local clock.
struct Timer {
    every: Duration,
    at: Duration,
}

impl Timer {
    fn every(every: Duration) -> Self {
        Self { every, at: Duration::ZERO }
    }

    /// A timer that first fires one period after `now`.
    fn after(now: Duration, every: Duration) -> Self {
        Self { every, at: now + every }
    }

    fn is_due(&mut self, now: Duration) -> bool {
        let is_due = self.at <= now;
        if is_due {
            self.at = now + self.every;
        }
        is_due
    }
}

impl WorkerNode {
    async fn read_clock(&self) {
        let query = self.clock.start_query();
        if let Some(now) = ok_or_log("failed to read the store's clock", self.store.now().await) {
            self.clock.record_reading(query, now);
        }
    }

    /// Flushes local counts to the shared ones.
    pub(super) async fn flush(&self) {
        ok_or_log("failed to flush counters", self.store.series().flush().await);
    }

    /// Applies the parallelism that operators set, and elsewhere what is configured.
    // Spec: H9.
    pub(super) async fn resize_slots(&self) {
        let set = self.store.queues().parallelisms().await;
        let Some(set) = ok_or_log("failed to read the parallelism of queues", set) else { return };
        for (name, served) in &self.queues {
            let set = set.iter().find(|set| set.queue == name.as_str());
            let count = set.map_or(served.settings.parallelism, |set| set.parallelism);
            served.slots.resize(count.get());
        }
    }

    /// Promotes due messages to claimable.
    pub(super) async fn promote(&self) {
        for _ in 0..MAX_BATCHES {
            let promoted =
                ok_or_log("failed to promote due messages", self.store.claims().promote(BATCH_SIZE).await);
            let count: u64 = promoted.iter().flatten().map(|(_, count)| count).sum();
            if count < u64::from(BATCH_SIZE) {
                return;
            }
        }
    }

    /// Declares nodes dead that show no sign of life.
    ///
    /// In doubt about its own life it sends a heartbeat first, and without one it declares nobody dead.
    pub(super) async fn declare_dead(&self) {
        if !self.is_alive().await {
            return;
        }
        let dead =
            ok_or_log("failed to search for dead nodes", self.store.nodes().declare_dead(self.id).await);
        for node in dead.into_iter().flatten() {
            tracing::warn!(node = %node.id, name = node.name, "node declared dead: no sign of life");
        }
    }

    /// Rescues messages of dead workers in our queues.
    pub(super) async fn rescue(&self) {
        let queues: Vec<QueueName> = self.queues.keys().cloned().collect();
        for _ in 0..MAX_RESCUES {
            let rescued = self.store.claims().rescue_of(&queues, |queue| self.rescue_terms(queue)).await;
            let Some(Some(rescued)) = ok_or_log("failed to rescue messages of dead workers", rescued) else {
                return;
            };
            let queue = rescued.queue.as_str();
            metrics::count(metrics::RESCUED, queue, rescued.count);
            tracing::warn!(queue, messages = rescued.count, "rescued messages from a dead worker");
            for message in rescued.dead {
                metrics::count_outcome(queue, Outcome::Dead);
                self.store.counters().dead(queue, None);
                let code = ErrorCode::WorkerDied.as_str();
                tracing::warn!(queue, message_id = %message, code, "dead_letter: its workers died, no attempts left");
            }
            for message in rescued.parked {
                metrics::count_outcome(queue, Outcome::Parked);
                self.store.counters().parked(queue);
                let code = ErrorCode::WorkerDied.as_str();
                tracing::warn!(queue, message_id = %message, code, "parked: its worker died, effect unknown");
            }
        }
    }

    fn rescue_terms(&self, queue: &QueueName) -> RescueOptions {
        let Some(served) = self.queues.get(queue) else {
            // Not requested; nothing is known of such a queue.
            let (guarantee, wait) = (Guarantee::None, Duration::ZERO);
            return RescueOptions { guarantee, wait, max_time_in_flight: TRAVELS_FOR_UNKNOWN };
        };
        RescueOptions {
            guarantee: served.guarantee(),
            wait: served.settings.retry.wait(std::num::NonZeroU32::MIN, fastrand::f64(), None),
            max_time_in_flight: served.dispatcher.max_time_in_flight(),
        }
    }

    /// Measures waiting messages, their age, keys of unknown outcome, and the state of destinations.
    ///
    /// Every node does, so the metrics do not vanish with one.
    async fn measure(&self) {
        for queue in self.queues.keys() {
            let oldest =
                ok_or_log("failed to find the oldest message", self.store.queues().oldest(queue).await);
            if let Some(oldest) = oldest {
                let age = oldest.map(|oldest| self.clock.now().since(oldest)).unwrap_or_default();
                metrics::oldest_waiting(queue.as_str(), age);
            }
        }
        if let Some(counts) = ok_or_log("failed to count messages", self.store.queues().counts().await) {
            for queue in self.queues.keys() {
                self.measure_waiting(queue, &counts).await;
            }
        }
        let unknown = unknown_outcomes::report(&self.store, self.clock.now()).await;
        ok_or_log("failed to count keys of unknown outcome", unknown);
        for dispatcher in &self.dispatchers {
            dispatcher.pacer.refresh(self.clock.elapsed().saturating_sub(FRESH_FOR)).await;
        }
    }

    async fn measure_waiting(&self, queue: &QueueName, counts: &[StateCount]) {
        let of = |state: StateName| {
            let found = counts.iter().find(|count| count.queue == queue.as_str() && count.state == state);
            found.map_or(0, |count| count.count)
        };
        for state in metrics::WAITING {
            metrics::waiting(queue.as_str(), state, of(state));
        }
        for (state, stage) in
            [(DeadLetterState::Dead, StateName::Dead), (DeadLetterState::Parked, StateName::Parked)]
        {
            // No query if none waits.
            let oldest =
                if of(stage) == 0 { Ok(None) } else { self.store.dead_letters().oldest(state, queue).await };
            if let Some(oldest) = ok_or_log("failed to find the oldest dead or parked message", oldest) {
                let age = oldest.map(|oldest| self.clock.now().since(oldest)).unwrap_or_default();
                metrics::oldest_letter(queue.as_str(), state, age);
            }
        }
    }
}

/// Logs an error of a maintenance step; the next round retries it.
pub(super) fn ok_or_log<T>(what: &'static str, result: Result<T, StoreError>) -> Option<T> {
    result.map_err(|error| tracing::warn!(error = error.with_causes(), "{what}; retrying")).ok()
}
