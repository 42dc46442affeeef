//! Counters per minute, over all nodes: for alerts, and as series.
//!
//! Guarantee: counting takes no round trip and never fails the counted operation. [`Series::flush`](crate::Series::flush)
//! adds a process's counts to the store, all or nothing. A process that dies loses only the counts it had not added yet: alerts
//! about the current state (dead, parked and waiting messages) do not use these counts.
//!
//! [`Counters`] counts what arrives, what is called and how that ends, by queue, by operation and by language model. The counts of a
//! destination are those of its queues, and there are totals of all queues, operations and models: both are summed up when counts are
//! flushed, so they cost nothing before. The store itself counts enqueued messages; a worker, the tower layer and whatever calls a
//! model count the rest, and flush. It also counts how often each key and message was replayed.
//! [`SubjectCounts`] explains each count.
// SPEC A14, A15.

mod subject;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ichido_core::ledger::RecordName;
use ichido_core::series::SeriesSubject;
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use uuid::Uuid;

pub use subject::{Arrival, SeriesPoint, SubjectCounts};
pub(crate) use subject::{by_subject, points, rows};

use crate::subject::key_subject;

/// The maximum number of subjects of a kind that a process counts between two flushes. Queues, operations and models are few.
pub const MAX_SUBJECTS: usize = 1_000;
/// The maximum number of keys and messages whose replays a process counts between two flushes. The rest is not counted.
pub(crate) const MAX_REPLAYED: usize = 1_000;
/// The maximum number of sums read at once.
pub(crate) const MAX_SUMS: i64 = 200_000;

/// How often a key's stored response was replayed, or a message was enqueued again under its key.
///
/// It is counted in memory and stored with the other counts, so a process that dies loses those of its last seconds, and a
/// process counts few keys at once. It is deleted 90 days after the first replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replays {
    /// How many times, at least.
    pub count: u64,
    /// When the first one was stored.
    pub first_at: Timestamp,
    /// When the last one was stored.
    pub last_at: Timestamp,
}

/// The counters of this process that are not in the store yet.
#[derive(Debug, Default)]
pub struct Counters {
    queues: Mutex<HashMap<String, SubjectCounts>>,
    operations: Mutex<HashMap<String, SubjectCounts>>,
    models: Mutex<HashMap<String, SubjectCounts>>,
    /// The destinations of the queues that this process serves.
    destinations: Mutex<HashMap<String, String>>,
    /// How often each key and message was replayed.
    replays: Mutex<BTreeMap<Uuid, i64>>,
    is_full: AtomicBool,
    /// Held while counts are added to the store, so a flush that returns has waited for one that began before.
    pub(crate) flushing: tokio::sync::Mutex<()>,
}

impl Counters {
    /// Adds the deliveries of a queue to the counts of its destination from now on.
    pub fn serve(&self, queue: &str, destination: &str) {
        lock(&self.destinations).insert(queue.to_owned(), destination.to_owned());
    }

    /// Counts a message that arrived for a queue.
    pub fn message_arrived(&self, queue: &str, arrival: Arrival) {
        self.of_queue(queue, |counted| counted.arrive(arrival));
    }

    /// Counts claimed messages that had been due for so long.
    pub fn claimed(&self, queue: &str, waited: impl Iterator<Item = Duration>) {
        let mut waited = waited.peekable();
        if waited.peek().is_some() {
            self.of_queue(queue, |counted| waited.for_each(|waited| counted.waited.add(waited)));
        }
    }

    /// Counts calls.
    pub fn executed(&self, queue: &str, calls: u64) {
        self.of_queue(queue, |counted| counted.executed += calls);
    }

    /// Counts a retry of a message that has ended.
    pub fn retried(&self, queue: &str, has_failed: bool) {
        self.of_queue(queue, |counted| {
            counted.retried += 1;
            counted.retry_failed += u64::from(has_failed);
        });
    }

    /// Counts messages that were sent, so long after they were due.
    pub fn sent(&self, queue: &str, took: &[Duration]) {
        if took.is_empty() {
            return;
        }
        self.of_queue(queue, |counted| {
            for took in took.iter().copied() {
                counted.sent += 1;
                counted.left.add(took);
            }
        });
    }

    /// Counts a message that became a dead letter; if its own attempt ended it, so long after it was due.
    pub fn dead(&self, queue: &str, took: Option<Duration>) {
        self.of_queue(queue, |counted| {
            counted.dead += 1;
            if let Some(took) = took {
                counted.left.add(took);
            }
        });
    }

    /// Counts a message that was parked.
    pub fn parked(&self, queue: &str) {
        self.of_queue(queue, |counted| counted.parked += 1);
    }

    /// Counts a call that the destination throttled.
    pub fn throttled(&self, queue: &str) {
        self.of_queue(queue, |counted| counted.throttled += 1);
    }

    /// Counts a report that arrived after its claim was lost.
    pub fn fenced(&self, queue: &str) {
        self.of_queue(queue, |counted| counted.fenced += 1);
    }

    /// Counts a request with a key that arrived for an operation, and whether its handler ran.
    pub fn request_arrived(&self, operation: &str, arrival: Arrival, has_run: bool) {
        self.of_operation(operation, |counted| {
            counted.arrive(arrival);
            counted.executed += u64::from(has_run);
        });
    }

    /// Counts a request that was answered with the stored response of its key.
    pub fn request_replayed(&self, name: &RecordName) {
        self.replayed(key_subject(name), 1);
    }

    /// Counts replays of a key or message.
    pub(crate) fn replayed(&self, about: Uuid, count: i64) {
        let mut replays = lock(&self.replays);
        if replays.len() < MAX_REPLAYED || replays.contains_key(&about) {
            *replays.entry(about).or_default() += count;
        }
    }

    /// Counts a request whose outcome is unknown.
    pub fn request_parked(&self, operation: &str) {
        self.of_operation(operation, |counted| counted.parked += 1);
    }

    /// Counts a run that ended after another one had taken over its key.
    pub fn request_fenced(&self, operation: &str) {
        self.of_operation(operation, |counted| counted.fenced += 1);
    }

    /// Counts a call to a language model, and whether an earlier call for the same question failed.
    pub fn model_called(&self, model: &str, is_retry: bool) {
        self.of_model(model, |counted| {
            counted.executed += 1;
            counted.retried += u64::from(is_retry);
        });
    }

    /// Counts a call that a language model throttled.
    pub fn model_throttled(&self, model: &str) {
        self.of_model(model, |counted| counted.throttled += 1);
    }

    /// Counts the tokens of a reply, as the provider counts them.
    pub fn model_replied(&self, model: &str, tokens_in: u64, tokens_out: u64) {
        self.of_model(model, |counted| {
            counted.tokens_in = counted.tokens_in.saturating_add(tokens_in);
            counted.tokens_out = counted.tokens_out.saturating_add(tokens_out);
        });
    }

    /// Counts calls of unknown outcome, which may have been billed and are repeated.
    pub fn model_billed_twice(&self, model: &str, calls: u64) {
        if 0 < calls {
            self.of_model(model, |counted| counted.billed_twice += calls);
        }
    }

    fn of_queue(&self, name: &str, change: impl FnOnce(&mut SubjectCounts)) {
        self.count(&self.queues, name, change);
    }

    fn of_operation(&self, name: &str, change: impl FnOnce(&mut SubjectCounts)) {
        self.count(&self.operations, name, change);
    }

    fn of_model(&self, name: &str, change: impl FnOnce(&mut SubjectCounts)) {
        self.count(&self.models, name, change);
    }

    fn count(
        &self,
        subjects: &Mutex<HashMap<String, SubjectCounts>>,
        name: &str,
        change: impl FnOnce(&mut SubjectCounts),
    ) {
        let mut subjects = lock(subjects);
        if let Some(counted) = subjects.get_mut(name) {
            return change(counted);
        }
        if MAX_SUBJECTS <= subjects.len() {
            if !self.is_full.swap(true, Ordering::Relaxed) {
                tracing::warn!(MAX_SUBJECTS, "too many queues, operations or models to count");
            }
            return;
        }
        change(subjects.entry(name.to_owned()).or_default());
    }

    /// Takes the counts of queues, operations and models.
    pub(crate) fn take(&self) -> BTreeMap<SeriesSubject, SubjectCounts> {
        let taken = |subjects: &Mutex<HashMap<_, _>>| std::mem::take(&mut *lock(subjects)).into_iter();
        let queues = taken(&self.queues).map(|(name, counted)| (SeriesSubject::Queue(name), counted));
        let operations = taken(&self.operations);
        let operations = operations.map(|(name, counted)| (SeriesSubject::Operation(name), counted));
        let models = taken(&self.models).map(|(name, counted)| (SeriesSubject::Model(name), counted));
        queues.chain(operations).chain(models).collect()
    }

    /// Takes the replays, in the order of their ids.
    pub(crate) fn take_replays(&self) -> BTreeMap<Uuid, i64> {
        std::mem::take(&mut *lock(&self.replays))
    }

    /// Adds counts back that could not be stored.
    pub(crate) fn restore(&self, taken: BTreeMap<SeriesSubject, SubjectCounts>) {
        for (subject, counted) in taken {
            match subject {
                SeriesSubject::Queue(name) => self.of_queue(&name, |to| to.add(&counted)),
                SeriesSubject::Operation(name) => self.of_operation(&name, |to| to.add(&counted)),
                SeriesSubject::Model(name) => self.of_model(&name, |to| to.add(&counted)),
                // Sums, which were not taken.
                SeriesSubject::Destination(_)
                | SeriesSubject::Queues
                | SeriesSubject::Operations
                | SeriesSubject::Models => (),
            }
        }
    }

    /// Adds the counts of destinations and the totals, in the order of their key in the store.
    pub(crate) fn with_sums(
        &self,
        taken: &BTreeMap<SeriesSubject, SubjectCounts>,
    ) -> BTreeMap<String, SubjectCounts> {
        let destinations = lock(&self.destinations);
        let mut all: BTreeMap<String, SubjectCounts> = BTreeMap::new();
        let mut add = |subject: &SeriesSubject, counted: &SubjectCounts| {
            all.entry(subject.about()).or_default().add(counted);
        };
        for (subject, counted) in taken {
            add(subject, counted);
            match subject {
                SeriesSubject::Queue(name) => {
                    add(&SeriesSubject::Queues, counted);
                    if let Some(destination) = destinations.get(name) {
                        add(&SeriesSubject::Destination(destination.clone()), &counted.deliveries());
                    }
                }
                SeriesSubject::Operation(_) => add(&SeriesSubject::Operations, counted),
                SeriesSubject::Model(_) => add(&SeriesSubject::Models, counted),
                SeriesSubject::Destination(_)
                | SeriesSubject::Queues
                | SeriesSubject::Operations
                | SeriesSubject::Models => (),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
