//! The upkeep: what must be done now and then, each time a bounded amount.
//!
//! Every node says that it lives, makes due what has come due, and rescues the messages of dead workers of the queues that it
//! serves, since only who knows a queue's destination can judge what a repetition could do. What is enough once is in `care`.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::lifecycle::Stage;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::ErrorCode;
use ichido_store::error::StoreError;
use ichido_store::message::{Count, LetterState, QueueName};
use ichido_store::rescue::RescueTerms;

use super::metrics::{self, Outcome};
use super::node::WorkerNode;
use super::pacer::FRESH_FOR;

/// How often a node says that it lives, and hears the store's clock.
const BEAT_EVERY: Duration = Duration::from_secs(10);
/// How often it publishes what it knows of its queues. Once would do, but for what others may have taken for long gone, as after a pause of
/// the machine.
const PUBLISH_EVERY: Duration = Duration::from_mins(10);
/// How often it is looked for workers that are gone.
const RESCUE_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked how long messages have waited.
const MEASURE_EVERY: Duration = Duration::from_secs(5);
/// How often what was counted is added to the counts of all nodes.
const FLUSH_EVERY: Duration = Duration::from_secs(5);
/// The most rows in one statement.
const BATCH_SIZE: u32 = 1_000;
/// The most statements of one kind in one round.
const BATCHES_MAX: usize = 10;
/// The most dead claims that are rescued in one round.
const RESCUES_MAX: usize = 100;
/// How long after its claim a call of a queue that nobody here knows may still be travelling.
const TRAVELS_FOR_UNKNOWN: Duration = Duration::from_mins(10);

/// What is logged when the facts could not be published.
pub(super) const NOT_PUBLISHED: &str = "what is known of the queues could not be published";

pub(super) struct Maintenance {
    node: Arc<WorkerNode>,
    beat: Timer,
    publish: Timer,
    rescue: Timer,
    measure: Timer,
    pace: Timer,
    flush: Timer,
}

impl Maintenance {
    pub(super) fn new(node: Arc<WorkerNode>) -> Self {
        // The first ones were at the start.
        let started = node.clock.own();
        Self {
            node,
            beat: Timer::after(started, BEAT_EVERY),
            publish: Timer::after(started, PUBLISH_EVERY),
            rescue: Timer::every(RESCUE_EVERY),
            measure: Timer::every(MEASURE_EVERY),
            pace: Timer::every(FRESH_FOR),
            flush: Timer::every(FLUSH_EVERY),
        }
    }

    /// Goes on until it is aborted; nothing is left half done then, since each step is one transaction.
    pub(super) async fn run(mut self) {
        loop {
            self.run_once().await;
            tokio::time::sleep(self.node.idle_sleep).await;
        }
    }

    async fn run_once(&mut self) {
        let now = self.node.clock.own();
        if self.beat.is_due(now) {
            self.node.beat().await;
        }
        if self.publish.is_due(now) {
            ok_or_log(NOT_PUBLISHED, self.node.publish().await);
        }
        self.node.promote().await;
        if self.rescue.is_due(now) {
            self.node.rescue().await;
        }
        if self.pace.is_due(now) {
            for dispatcher in &self.node.dispatchers {
                dispatcher.pacer.report().await;
                // A pause and a rest end by themselves.
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

/// A round that is made every so often.
pub(super) trait PeriodicTask: Send {
    /// How often.
    const EVERY: Duration;

    /// Makes one.
    fn run_once(&mut self) -> impl Future<Output = ()> + Send;
}

/// Makes rounds until it is aborted; nothing is left half done then, since each step of a round is one transaction.
pub(super) async fn run_periodically<R: PeriodicTask>(node: Arc<WorkerNode>, mut task: R) {
    let mut due = Timer::every(R::EVERY);
    loop {
        if due.is_due(node.clock.own()) {
            task.run_once().await;
        }
        tokio::time::sleep(node.idle_sleep).await;
    }
}

/// Something that is done every so often, by our own clock.
struct Timer {
    every: Duration,
    at: Duration,
}

impl Timer {
    fn every(every: Duration) -> Self {
        Self { every, at: Duration::ZERO }
    }

    /// The same, begun at a moment.
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
    pub(super) async fn beat(&self) {
        ok_or_log("the heartbeat could not be written", self.store.nodes().beat(self.id, &self.name).await);
        let asked = self.clock.ask();
        if let Some(now) = ok_or_log("the store's clock could not be read", self.store.now().await) {
            self.clock.hear(asked, now);
        }
    }

    /// Adds what was counted here to the counts of all nodes.
    pub(super) async fn flush(&self) {
        ok_or_log(
            "what was counted could not be added to the counts of all",
            self.store.tallies().flush().await,
        );
    }

    /// Makes claimable what has come due.
    async fn promote(&self) {
        for _ in 0..BATCHES_MAX {
            let promoted =
                ok_or_log("what is due could not be promoted", self.store.claims().promote(BATCH_SIZE).await);
            let count: u64 = promoted.iter().flatten().map(|(_, count)| count).sum();
            if count < u64::from(BATCH_SIZE) {
                return;
            }
        }
    }

    /// Takes back what dead workers of our queues held.
    async fn rescue(&self) {
        let queues: Vec<QueueName> = self.queues.keys().cloned().collect();
        for _ in 0..RESCUES_MAX {
            let rescued = self.store.claims().rescue_of(&queues, |queue| self.rescue_terms(queue)).await;
            let Some(Some(rescued)) = ok_or_log("dead workers could not be looked for", rescued) else {
                return;
            };
            let queue = rescued.queue.as_str();
            metrics::count(metrics::RESCUED, queue, rescued.count);
            tracing::warn!(
                queue,
                messages = rescued.count,
                "messages were taken back from a worker that is gone"
            );
            for message in rescued.dead {
                metrics::count_outcome(queue, Outcome::Dead);
                tracing::warn!(queue, message_id = %message, code = ErrorCode::WorkerDied.as_str(), "dead_letter: a message was given up after its workers died");
            }
            for message in rescued.parked {
                metrics::count_outcome(queue, Outcome::Parked);
                tracing::warn!(queue, message_id = %message, code = ErrorCode::WorkerDied.as_str(), "parked: a worker died with a message that may have taken effect");
            }
        }
    }

    fn rescue_terms(&self, queue: &QueueName) -> RescueTerms {
        let Some(served) = self.queues.get(queue) else {
            // Not asked for; if it were, nothing would be known of it.
            let (guarantee, wait) = (Guarantee::Nothing, Duration::ZERO);
            return RescueTerms { guarantee, wait, travels_for: TRAVELS_FOR_UNKNOWN };
        };
        RescueTerms {
            guarantee: served.guarantee(),
            wait: served.settings.retry.wait(std::num::NonZeroU32::MIN, fastrand::f64(), None),
            travels_for: served.dispatcher.max_time_in_flight(),
        }
    }

    /// How many messages wait, how long the oldest have, and how the destinations stand. Every node says it, so that it does not
    /// vanish with one.
    async fn measure(&self) {
        for queue in self.queues.keys() {
            let oldest = ok_or_log(
                "the oldest message could not be looked for",
                self.store.queues().oldest(queue).await,
            );
            if let Some(oldest) = oldest {
                let age = oldest.map(|oldest| self.clock.now().since(oldest)).unwrap_or_default();
                metrics::oldest_waiting(queue.as_str(), age);
            }
        }
        if let Some(counts) = ok_or_log("messages could not be counted", self.store.queues().counts().await) {
            for queue in self.queues.keys() {
                self.measure_waiting(queue, &counts).await;
            }
        }
        for dispatcher in &self.dispatchers {
            dispatcher.pacer.refresh(self.clock.own().saturating_sub(FRESH_FOR)).await;
        }
    }

    async fn measure_waiting(&self, queue: &QueueName, counts: &[Count]) {
        let of = |state: Stage| {
            let found = counts.iter().find(|count| count.queue == queue.as_str() && count.state == state);
            found.map_or(0, |count| count.count)
        };
        for state in metrics::WAITING {
            metrics::waiting(queue.as_str(), state, of(state));
        }
        for (state, stage) in [(LetterState::Dead, Stage::Dead), (LetterState::Parked, Stage::Parked)] {
            // Where none waits nobody is asked.
            let oldest =
                if of(stage) == 0 { Ok(None) } else { self.store.dead_letters().oldest(state, queue).await };
            if let Some(oldest) = ok_or_log("the oldest letter could not be looked for", oldest) {
                let age = oldest.map(|oldest| self.clock.now().since(oldest)).unwrap_or_default();
                metrics::oldest_letter(queue.as_str(), state, age);
            }
        }
    }
}

/// An error of the upkeep is logged; the next round tries again.
pub(super) fn ok_or_log<T>(what: &'static str, result: Result<T, StoreError>) -> Option<T> {
    result.map_err(|error| tracing::warn!(error = error.in_full(), "{what}; trying again")).ok()
}
