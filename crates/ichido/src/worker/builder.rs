//! Builder of a worker. `start` validates everything and reports all errors together.

mod handle;
mod handle_tx;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::audit::AuditKey;
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::batch::{BatchLimits, Batcher};
use ichido_store::message::{QueueName, limits as store_limits};
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::alert::AlertSettings;
use super::cancellations::Cancellations;
use super::claim::MessageClaims;
use super::config_error::{WorkerConfigError, WorkerConfigErrors};
use super::heartbeat::Pulse;
use super::metrics::{self, QueueMetrics};
use super::node::{Dispatcher, FinishedClaims, ServedQueue, StartMarks, WorkerNode};
use super::pacer::Pacer;
use super::running::WorkerHandle;
use super::settings::{DestinationConfig, QueueConfig, limits};
use super::slots::Slots;
use super::stop::{StopSignal, StopStage};
use crate::clock::Clock;
use crate::destination::{DeliveryTerms, Destination};
use crate::handler_tx::Pool;
use crate::lease::Leases;

/// Settings of a worker; [`Worker::start`] starts it.
#[derive(Clone)]
#[must_use = "a worker does nothing until it is started"]
pub struct Worker {
    store: Store,
    name: String,
    targets: Vec<DestinationConfig>,
    queues: Vec<QueueConfig>,
    /// Queues that were tuned before they had a handler.
    tuned_too_early: Vec<String>,
    idle_sleep: Duration,
    stop_timeout: Duration,
    keep_finished: Duration,
    audit_key: Option<AuditKey>,
    alerts: Option<AlertSettings>,
    pool: Option<Pool>,
    tx_timeout: Duration,
}

impl Worker {
    /// Creates a worker on a store.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            name: "worker".to_owned(),
            targets: Vec::new(),
            queues: Vec::new(),
            tuned_too_early: Vec::new(),
            idle_sleep: limits::IDLE_SLEEP_DEFAULT,
            stop_timeout: limits::STOP_TIMEOUT_DEFAULT,
            keep_finished: limits::KEEP_FINISHED_DEFAULT,
            audit_key: None,
            alerts: None,
            pool: None,
            tx_timeout: limits::TX_TIMEOUT_DEFAULT,
        }
    }

    /// Sets its display name among the nodes.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Adds a destination that queues can name.
    pub fn destination(mut self, target: DestinationConfig) -> Self {
        self.targets.push(target);
        self
    }

    /// Adds a queue to serve.
    pub fn queue(mut self, queue: QueueConfig) -> Self {
        self.queues.push(queue);
        self
    }

    /// Sets the polling interval of idle queues and due messages. A wake-up ends the wait.
    pub fn idle_sleep(self, idle_sleep: Duration) -> Self {
        Self { idle_sleep, ..self }
    }

    /// Sets how long calls in flight may continue after a stop.
    pub fn stop_timeout(self, stop_timeout: Duration) -> Self {
        Self { stop_timeout, ..self }
    }

    /// Sets how long messages are stored after they were sent or cancelled.
    ///
    /// Their keys are new again afterwards.
    pub fn keep_finished(self, keep_finished: Duration) -> Self {
        Self { keep_finished, ..self }
    }

    /// Sets the key that seals the audit trail.
    ///
    /// Without it the trail is still sealed, but anybody who can write the database could change an entry and seal it
    /// again. A worker without the key does not seal a trail that was sealed with one.
    // Spec: F5.
    pub fn audit_key(self, key: AuditKey) -> Self {
        Self { audit_key: Some(key), ..self }
    }

    /// Watches the alert rules and notifies their receivers.
    ///
    /// A worker without alerts watches nothing and leaves that to the others.
    pub fn alerts(self, alerts: AlertSettings) -> Self {
        Self { alerts: Some(alerts), ..self }
    }

    /// Starts the worker, or returns all errors.
    ///
    /// Call it within a tokio runtime, which runs it.
    pub fn start(self) -> Result<WorkerHandle, WorkerConfigErrors> {
        let stop_timeout = self.stop_timeout;
        let pool = self.pool.clone();
        let (node, sender) = self.node()?;
        if let Some(pool) = pool {
            pool.warn_of_our_schema();
        }
        Ok(WorkerHandle::start(Arc::new(node), sender, stop_timeout))
    }

    /// Makes the node, which does nothing yet, and the sender that stops it.
    pub(super) fn node(self) -> Result<(WorkerNode, watch::Sender<StopStage>), WorkerConfigErrors> {
        WorkerConfigErrors::or(self.errors(), Some(()))?;
        let clock = Arc::new(Clock::new(self.store.clone()));
        let dispatchers: HashMap<String, Arc<Dispatcher>> = self
            .targets
            .iter()
            .map(|target| (target.name.clone(), self.dispatcher(target, &clock)))
            .collect();
        let in_flight = Arc::default();
        let mut queues = HashMap::new();
        for settings in &self.all_queues() {
            let (Some(name), Some(dispatcher)) =
                (QueueName::parse(&settings.name), dispatchers.get(&settings.destination))
            else {
                continue; // Unreachable: both were checked.
            };
            warn_of_short_key_retention(settings, &dispatcher.destination);
            metrics::register_queue(name.as_str());
            self.store.counters().serve(name.as_str(), &settings.destination);
            let metrics = Arc::new(QueueMetrics::new(&self.store, name.as_str(), &in_flight));
            let settings = settings.clone();
            let (slots, dispatcher) = (Slots::new(settings.parallelism.get()), Arc::clone(dispatcher));
            let served = ServedQueue { name: name.clone(), settings, slots, dispatcher, metrics };
            queues.insert(name, Arc::new(served));
        }
        let (sender, stop) = StopSignal::new();
        let node = WorkerNode {
            id: Uuid::now_v7(),
            name: self.name,
            claims: Leases::new(MessageClaims(self.store.clone()), Arc::clone(&clock)),
            marks: Batcher::start(BatchLimits::DEFAULT, Arc::new(StartMarks(self.store.clone()))),
            finished: Batcher::start(BatchLimits::DEFAULT, Arc::new(FinishedClaims(self.store.clone()))),
            clock,
            pulse: Pulse::default(),
            cancellations: Cancellations::default(),
            suspect: Arc::new(Semaphore::new(1)),
            stop,
            idle_sleep: self.idle_sleep,
            keep_finished: self.keep_finished,
            audit_key: self.audit_key,
            alerts: self.alerts.map(Arc::new),
            queues,
            dispatchers: dispatchers.into_values().collect(),
            in_flight,
            store: self.store,
        };
        Ok((node, sender))
    }

    fn dispatcher(&self, target: &DestinationConfig, clock: &Arc<Clock>) -> Arc<Dispatcher> {
        let permits = target.max_parallel.map(|count| {
            let count = usize::try_from(count.get()).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)))
        });
        Arc::new(Dispatcher {
            promise: target.destination.terms(),
            destination: target.destination.clone(),
            pacer: Pacer::new(target.name.clone(), target.pace, Some(&self.store), Arc::clone(clock)),
            transactions: self.transactions(target),
            permits,
            interval: target.interval,
        })
    }

    fn errors(&self) -> Vec<WorkerConfigError> {
        let mut errors = Vec::new();
        if self.all_queues().is_empty() {
            errors.push(WorkerConfigError::NoQueue);
        }
        if self.idle_sleep.is_zero() {
            errors.push(WorkerConfigError::NoIdleSleep);
        }
        if !is_name(&self.name) {
            errors.push(WorkerConfigError::WorkerName);
        }
        let targets = self.targets.iter();
        let destinations: Vec<(&str, Duration)> =
            targets.map(|target| (target.name.as_str(), target.destination.terms().timeout)).collect();
        errors.extend(config_errors(&destinations, &self.all_queues()));
        errors.extend(self.handler_errors());
        errors.extend(self.transaction_errors());
        errors
    }

    /// Returns the configured queues and those of alerts.
    fn all_queues(&self) -> Vec<QueueConfig> {
        let alert_queues = self.alerts.iter().flat_map(AlertSettings::queues);
        self.queues.iter().cloned().chain(alert_queues).collect()
    }
}

/// Returns all contradictions in destinations and queues: what [`Worker::start`] would refuse.
///
/// It is for programs that read them from a file and know the location of each. A destination is its name and the timeout
/// of a call, which is known before anybody has connected to it.
pub fn config_errors(destinations: &[(&str, Duration)], queues: &[QueueConfig]) -> Vec<WorkerConfigError> {
    let mut errors = Vec::new();
    for (index, (name, _)) in destinations.iter().enumerate() {
        if !is_name(name) {
            errors.push(WorkerConfigError::DestinationName { name: (*name).to_owned() });
        }
        if destinations[..index].iter().any(|(before, _)| before == name) {
            errors.push(WorkerConfigError::DuplicateDestination { name: (*name).to_owned() });
        }
    }
    for (index, queue) in queues.iter().enumerate() {
        if queues[..index].iter().any(|before| before.name == queue.name) {
            errors.push(WorkerConfigError::DuplicateQueue { queue: queue.name.clone() });
        }
        errors.extend(queue_errors(queue, destinations));
    }
    errors
}

fn queue_errors(queue: &QueueConfig, destinations: &[(&str, Duration)]) -> Vec<WorkerConfigError> {
    let name = || queue.name.clone();
    let mut errors = Vec::new();
    if QueueName::parse(&queue.name).is_none() {
        errors.push(WorkerConfigError::QueueName { queue: name() });
    }
    match destinations.iter().find(|(name, _)| *name == queue.destination) {
        None => {
            let destination = queue.destination.clone();
            errors.push(WorkerConfigError::NoDestination { queue: name(), destination });
        }
        Some(&(_, timeout)) => {
            let lease = queue.lease;
            if lease <= timeout {
                errors.push(WorkerConfigError::LeaseTooShort { queue: name(), lease, timeout });
            }
        }
    }
    if queue.lease < limits::MIN_LEASE {
        errors.push(WorkerConfigError::LeaseBelowMinimum { queue: name(), lease: queue.lease });
    }
    if limits::MAX_LEASE < queue.lease {
        errors.push(WorkerConfigError::LeaseTooLong { queue: name(), lease: queue.lease });
    }
    let bounds = [
        ("batch_size", queue.batch_size, store_limits::MAX_CLAIM),
        ("parallelism", queue.parallelism, limits::MAX_PARALLELISM),
    ];
    for (what, found, max) in bounds {
        if max < found.get() {
            errors.push(WorkerConfigError::TooMany { queue: name(), what, found: found.get(), max });
        }
    }
    if let Err(error) = queue.retry.clone().checked() {
        errors.push(WorkerConfigError::Retry { queue: name(), error });
    }
    errors
}

/// A receiver that forgets a key before a queue's last retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortKeyRetention {
    /// How long it remembers keys.
    pub keeps_for: Duration,
    /// How long the queue may work on a message, including its last call.
    pub horizon: Duration,
    /// How to fix it.
    pub help: String,
}

/// Returns whether a receiver forgets keys too early.
///
/// Then a message of unknown effect is parked.
pub fn short_key_retention(queue: &QueueConfig, destination: &Destination) -> Option<ShortKeyRetention> {
    let promise = destination.terms();
    let horizon = horizon(queue, &promise);
    match promise.guarantee {
        Guarantee::Keyed { keeps_for } if keeps_for < horizon => {
            Some(ShortKeyRetention { keeps_for, horizon, help: destination.key_retention_advice(horizon) })
        }
        Guarantee::Keyed { .. } | Guarantee::Idempotent | Guarantee::Transactional | Guarantee::None => None,
    }
}

/// Returns how long a queue may work on a message.
///
/// The last call may be in flight for a while.
pub(super) fn horizon(queue: &QueueConfig, promise: &DeliveryTerms) -> Duration {
    queue.retry.horizon(promise.timeout, Duration::ZERO).saturating_add(promise.max_time_in_flight())
}

fn warn_of_short_key_retention(queue: &QueueConfig, destination: &Destination) {
    if let Some(ShortKeyRetention { keeps_for, horizon, help }) = short_key_retention(queue, destination) {
        let queue = &queue.name;
        tracing::warn!(
            queue,
            ?keeps_for,
            ?horizon,
            help,
            "destination forgets keys before the last retry; unknown effects are parked from then on"
        );
    }
}

fn is_name(name: &str) -> bool {
    (1..=limits::MAX_NAME_BYTES).contains(&name.len()) && !name.contains('\0')
}

ichido_core::debug_only! {
    Worker as worker { name, targets, queues }
}
