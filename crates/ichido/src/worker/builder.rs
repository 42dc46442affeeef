//! From wishes to a worker: every contradiction is found when it starts, all at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::audit::AuditKey;
use ichido_core::retry::{Guarantee, ScheduleError};
use ichido_store::Store;
use ichido_store::batch::{Batcher, Bounds};
use ichido_store::message::{QueueName, limits as store_limits};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::alert::Alerts;
use super::claim::MessageClaims;
use super::metrics::{self, QueueMetrics};
use super::node::{Dispatcher, ServedQueue, StartMarks, WorkerNode};
use super::pacer::Pacer;
use super::running::Running;
use super::settings::{Queue, Target, limits};
use super::stop::StopSignal;
use crate::clock::Clock;
use crate::destination::{Destination, Done, Failed, Handler, Job, Promise};
use crate::lease::Leases;

/// What somebody wishes of a worker; [`Worker::start`] sets it to work.
#[derive(Clone)]
#[must_use = "a draft does nothing until it is started"]
pub struct Worker {
    store: Store,
    name: String,
    targets: Vec<Target>,
    queues: Vec<Queue>,
    idle_sleep: Duration,
    stop_within: Duration,
    keep_finished: Duration,
    audit_key: Option<AuditKey>,
    alerts: Option<Alerts>,
}

impl Worker {
    /// A worker on a store.
    pub fn of(store: Store) -> Self {
        Self {
            store,
            name: "worker".to_owned(),
            targets: Vec::new(),
            queues: Vec::new(),
            idle_sleep: limits::IDLE_SLEEP_DEFAULT,
            stop_within: limits::STOP_WITHIN_DEFAULT,
            keep_finished: limits::KEEP_FINISHED_DEFAULT,
            audit_key: None,
            alerts: None,
        }
    }

    /// Its name among the nodes, for people.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// A destination that its queues can name.
    pub fn destination(mut self, target: Target) -> Self {
        self.targets.push(target);
        self
    }

    /// A queue to serve.
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queues.push(queue);
        self
    }

    /// A queue to serve by a function of its requests, which are JSON. It promises nothing about repetitions: see
    /// [`Worker::handler`] for one that does.
    pub fn handle<T, F, A, D>(self, queue: &str, handle: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(Job<T>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, Failed>> + Send + 'static,
        D: Into<Done>,
    {
        self.handler(queue, Handler::json(handle))
    }

    /// A queue to serve by a handler, as a destination of the queue's name. For settings of its own, name the two apart:
    /// [`Worker::destination`] and [`Worker::queue`].
    pub fn handler(self, queue: &str, handler: Handler) -> Self {
        self.destination(Target::new(queue, handler)).queue(Queue::new(queue, queue))
    }

    /// How long an idle queue waits before it looks again, unless it is woken; also how often it is looked for what is due.
    pub fn idle_sleep(self, idle_sleep: Duration) -> Self {
        Self { idle_sleep, ..self }
    }

    /// How long calls under way may go on after a stop.
    pub fn stop_within(self, stop_within: Duration) -> Self {
        Self { stop_within, ..self }
    }

    /// How long messages are kept after they were sent or cancelled; their keys are new again afterwards.
    pub fn keep_finished(self, keep_finished: Duration) -> Self {
        Self { keep_finished, ..self }
    }

    /// The key under which the audit trail is sealed. Without it the trail is sealed all the same, but whoever can write the
    /// database could change an entry and seal it anew (SPEC F5). A trail that was once sealed under a key is left to who has it.
    pub fn audit_key(self, key: AuditKey) -> Self {
        Self { audit_key: Some(key), ..self }
    }

    /// Watches for what alerts are about, and tells their receivers. Without it this worker watches for nothing, and leaves that to those
    /// who do.
    pub fn alerts(self, alerts: Alerts) -> Self {
        Self { alerts: Some(alerts), ..self }
    }

    /// Sets it to work, or says everything that is wrong with it. Must be called within a tokio runtime, on which it runs.
    pub fn start(self) -> Result<Running, BuildErrors> {
        BuildErrors::or(self.errors(), Some(()))?;
        let clock = Arc::new(Clock::new(self.store.clone()));
        let dispatchers: HashMap<String, Arc<Dispatcher>> = self
            .targets
            .iter()
            .map(|target| (target.name.clone(), self.dispatcher(target, &clock)))
            .collect();
        let under_way = Arc::default();
        let mut queues = HashMap::new();
        for settings in &self.all_queues() {
            let (Some(name), Some(dispatcher)) =
                (QueueName::parse(&settings.name), dispatchers.get(&settings.destination))
            else {
                continue; // Not reached: both were checked.
            };
            warn_of_short_key_retention(settings, &dispatcher.destination);
            metrics::register_queue(name.as_str());
            let (settings, metrics) = (settings.clone(), QueueMetrics::new(name.as_str(), &under_way));
            let served =
                ServedQueue { name: name.clone(), settings, dispatcher: Arc::clone(dispatcher), metrics };
            queues.insert(name, Arc::new(served));
        }
        let (sender, stop) = StopSignal::new();
        let node = WorkerNode {
            id: Uuid::now_v7(),
            name: self.name,
            claims: Leases::new(MessageClaims(self.store.clone()), Arc::clone(&clock)),
            marks: Batcher::start(Bounds::DEFAULT, Arc::new(StartMarks(self.store.clone()))),
            clock,
            suspect: Arc::new(Semaphore::new(1)),
            stop,
            idle_sleep: self.idle_sleep,
            keep_finished: self.keep_finished,
            audit_key: self.audit_key,
            alerts: self.alerts.map(Arc::new),
            queues,
            dispatchers: dispatchers.into_values().collect(),
            under_way,
            store: self.store,
        };
        Ok(Running::start(Arc::new(node), sender, self.stop_within))
    }

    fn dispatcher(&self, target: &Target, clock: &Arc<Clock>) -> Arc<Dispatcher> {
        let permits = target.max_parallel.map(|count| {
            let count = usize::try_from(count.get()).unwrap_or(usize::MAX);
            Semaphore::new(count.min(Semaphore::MAX_PERMITS))
        });
        Arc::new(Dispatcher {
            promise: target.destination.promise(),
            destination: target.destination.clone(),
            pacer: Pacer::of(target.name.clone(), target.pace, Some(&self.store), Arc::clone(clock)),
            permits,
            interval: target.interval,
        })
    }

    fn errors(&self) -> Vec<BuildError> {
        let mut errors = Vec::new();
        if self.queues.is_empty() {
            errors.push(BuildError::NoQueue);
        }
        if self.idle_sleep.is_zero() {
            errors.push(BuildError::NoIdleSleep);
        }
        if !is_name(&self.name) {
            errors.push(BuildError::WorkerName);
        }
        let targets = self.targets.iter();
        let destinations: Vec<(&str, Duration)> =
            targets.map(|target| (target.name.as_str(), target.destination.promise().time_out)).collect();
        errors.extend(problems(&destinations, &self.all_queues()));
        errors
    }

    /// Those that were asked for, and those that tell of alerts.
    fn all_queues(&self) -> Vec<Queue> {
        let alert_queues = self.alerts.iter().flat_map(Alerts::queues);
        self.queues.iter().cloned().chain(alert_queues).collect()
    }
}

/// Everything that contradicts itself in destinations and queues: what [`Worker::start`] would refuse of them. For whoever reads
/// them from somewhere, and knows where each stands. A destination is its name and the longest that a call of it may take, which
/// is known before anybody has connected to it.
pub fn problems(destinations: &[(&str, Duration)], queues: &[Queue]) -> Vec<BuildError> {
    let mut errors = Vec::new();
    for (index, (name, _)) in destinations.iter().enumerate() {
        if !is_name(name) {
            errors.push(BuildError::DestinationName { name: (*name).to_owned() });
        }
        if destinations[..index].iter().any(|(before, _)| before == name) {
            errors.push(BuildError::DestinationTwice { name: (*name).to_owned() });
        }
    }
    for (index, queue) in queues.iter().enumerate() {
        if queues[..index].iter().any(|before| before.name == queue.name) {
            errors.push(BuildError::QueueTwice { queue: queue.name.clone() });
        }
        errors.extend(queue_errors(queue, destinations));
    }
    errors
}

fn queue_errors(queue: &Queue, destinations: &[(&str, Duration)]) -> Vec<BuildError> {
    let name = || queue.name.clone();
    let mut errors = Vec::new();
    if QueueName::parse(&queue.name).is_none() {
        errors.push(BuildError::QueueName { queue: name() });
    }
    match destinations.iter().find(|(name, _)| *name == queue.destination) {
        None => {
            let destination = queue.destination.clone();
            errors.push(BuildError::NoDestination { queue: name(), destination });
        }
        Some(&(_, timeout)) => {
            let lease = queue.lease;
            if lease <= timeout {
                errors.push(BuildError::LeaseTooShort { queue: name(), lease, timeout });
            }
        }
    }
    if queue.lease < limits::LEASE_MIN {
        errors.push(BuildError::LeaseBelowLeast { queue: name(), lease: queue.lease });
    }
    if limits::LEASE_MAX < queue.lease {
        errors.push(BuildError::LeaseTooLong { queue: name(), lease: queue.lease });
    }
    let bounds = [
        ("batch_size", queue.batch_size, store_limits::CLAIM_MAX),
        ("parallelism", queue.parallelism, limits::PARALLELISM_MAX),
    ];
    for (what, found, max) in bounds {
        if max < found.get() {
            errors.push(BuildError::TooMany { queue: name(), what, found: found.get(), max });
        }
    }
    if let Err(error) = queue.retry.clone().checked() {
        errors.push(BuildError::Retry { queue: name(), error });
    }
    errors
}

/// A receiver that forgets a key before the last retry of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortMemory {
    /// How long it remembers keys.
    pub keeps_for: Duration,
    /// How long the queue may go on with a message, its last call included.
    pub horizon: Duration,
    /// What a person can do.
    pub mend: String,
}

/// Whether a queue's receiver protects less than it seems to: a message of unknown effect is parked once its key may be forgotten.
pub fn short_memory(queue: &Queue, destination: &Destination) -> Option<ShortMemory> {
    let promise = destination.promise();
    let horizon = horizon(queue, &promise);
    match promise.guarantee {
        Guarantee::HonoursKeys { keeps_for } if keeps_for < horizon => {
            Some(ShortMemory { keeps_for, horizon, mend: destination.key_retention_advice(horizon) })
        }
        Guarantee::HonoursKeys { .. } | Guarantee::Repeatable | Guarantee::Nothing => None,
    }
}

/// How long a queue may go on with a message. The last call may be under way for a while.
pub(super) fn horizon(queue: &Queue, promise: &Promise) -> Duration {
    queue.retry.horizon(promise.time_out, Duration::ZERO).saturating_add(promise.max_time_in_flight())
}

fn warn_of_short_key_retention(queue: &Queue, destination: &Destination) {
    if let Some(ShortMemory { keeps_for, horizon, mend }) = short_memory(queue, destination) {
        let queue = &queue.name;
        tracing::warn!(
            queue,
            ?keeps_for,
            ?horizon,
            mend,
            "the destination forgets keys before the last retry; a message of unknown effect is parked from then on"
        );
    }
}

fn is_name(name: &str) -> bool {
    (1..=limits::NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0')
}

ichido_core::debug_only! {
    Worker as worker { name, targets, queues }
}

/// Why wishes do not make a worker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Nothing to do.
    #[error("the worker serves no queue; name at least one, with queue(…) or handle(…)")]
    NoQueue,
    /// An idle worker would spin.
    #[error("idle_sleep is zero; an idle worker would ask the database without a pause (200 ms is usual)")]
    NoIdleSleep,
    /// No name, or none that can be stored.
    #[error("a worker's name has 1 to {} bytes and no NUL", limits::NAME_BYTES_MAX)]
    WorkerName,
    /// No name, or none that can be stored.
    #[error("destination `{name}`: a name has 1 to {} bytes and no NUL", limits::NAME_BYTES_MAX)]
    DestinationName {
        /// The name.
        name: String,
    },
    /// One name for two.
    #[error(
        "destination `{name}` is given twice; a name stands for one destination, and queues may share it"
    )]
    DestinationTwice {
        /// The name.
        name: String,
    },
    /// No name of a queue.
    #[error(
        "queue `{queue}`: a name has 1 to {} letters, digits, `.`, `_`, `-` or `:`",
        store_limits::QUEUE_BYTES_MAX
    )]
    QueueName {
        /// The name.
        queue: String,
    },
    /// One queue with two settings.
    #[error("queue `{queue}` is given twice; say once how it is served")]
    QueueTwice {
        /// The queue.
        queue: String,
    },
    /// Nothing to call.
    #[error(
        "queue `{queue}` goes to `{destination}`, and there is no destination or handler of that name; add it with destination(…)"
    )]
    NoDestination {
        /// The queue.
        queue: String,
        /// The name it goes to.
        destination: String,
    },
    /// The claim would lapse while its call is under way.
    #[error(
        "queue `{queue}`: the lease, {lease:?}, is not longer than the destination's time-out, {timeout:?}; lengthen the lease, or shorten the time-out"
    )]
    LeaseTooShort {
        /// The queue.
        queue: String,
        /// Its lease.
        lease: Duration,
        /// The time-out of its destination.
        timeout: Duration,
    },
    /// No database could keep up with it.
    #[error("queue `{queue}`: the lease, {lease:?}, is shorter than {:?}", limits::LEASE_MIN)]
    LeaseBelowLeast {
        /// The queue.
        queue: String,
        /// Its lease.
        lease: Duration,
    },
    /// It would count as taken by a clock that was ahead.
    #[error(
        "queue `{queue}`: the lease, {lease:?}, is longer than {:?}; shorten it: leases are renewed",
        limits::LEASE_MAX
    )]
    LeaseTooLong {
        /// The queue.
        queue: String,
        /// Its lease.
        lease: Duration,
    },
    /// A number beyond its bound.
    #[error("queue `{queue}`: {what} is {found}; at most {max}")]
    TooMany {
        /// The queue.
        queue: String,
        /// Which number.
        what: &'static str,
        /// The wish.
        found: u32,
        /// The bound.
        max: u32,
    },
    /// A schedule that cannot be kept.
    #[error("queue `{queue}`: {error}")]
    Retry {
        /// The queue.
        queue: String,
        /// What is wrong.
        error: ScheduleError,
    },
}

/// Everything that is wrong with a draft. Shown one a line.
pub type BuildErrors = crate::BuildErrors<BuildError>;
