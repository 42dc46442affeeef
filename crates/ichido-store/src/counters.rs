//! Counters per minute, over all nodes: for alerts, and as series.
//!
//! Guarantee: counting takes no round trip and never fails the counted operation. [`Series::flush`](crate::Series::flush)
//! adds a process's counts to the store, all or nothing. A process that dies loses only the counts it had not added yet: alerts
//! about the current state (dead, parked and waiting messages) do not use these counts.
//!
//! [`Counters`] counts what arrives, what is called and how that ends, by queue and by operation. The counts of a destination are
//! those of its queues, and there are totals of all queues and all operations: both are summed up when counts are flushed, so they
//! cost nothing before. The store itself counts enqueued messages; a worker and the tower layer count the rest, and flush.
//! [`SubjectCounts`] explains each count.
// SPEC A14, A15.

mod subject;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ichido_core::alert::AlertSubject;
use ichido_core::series::SeriesSubject;
use ichido_core::sync::lock;

pub use subject::{Arrival, SeriesPoint, SubjectCounts};
pub(crate) use subject::{points, rows, sums};

/// The maximum number of subjects that a process counts between two flushes. Queues and operations are few.
pub const MAX_SUBJECTS: usize = 1_000;
/// The maximum number of sums read at once.
pub(crate) const MAX_SUMS: i64 = 200_000;

/// The counters of this process that are not in the store yet.
#[derive(Debug, Default)]
pub struct Counters {
    queues: Mutex<HashMap<String, SubjectCounts>>,
    operations: Mutex<HashMap<String, SubjectCounts>>,
    /// The destinations of the queues that this process serves.
    destinations: Mutex<HashMap<String, String>>,
    is_full: AtomicBool,
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

    /// Counts a request whose outcome is unknown.
    pub fn request_parked(&self, operation: &str) {
        self.of_operation(operation, |counted| counted.parked += 1);
    }

    /// Counts a run that ended after another one had taken over its key.
    pub fn request_fenced(&self, operation: &str) {
        self.of_operation(operation, |counted| counted.fenced += 1);
    }

    fn of_queue(&self, name: &str, change: impl FnOnce(&mut SubjectCounts)) {
        self.count(&self.queues, name, change);
    }

    fn of_operation(&self, name: &str, change: impl FnOnce(&mut SubjectCounts)) {
        self.count(&self.operations, name, change);
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
                tracing::warn!(MAX_SUBJECTS, "too many queues or operations to count");
            }
            return;
        }
        change(subjects.entry(name.to_owned()).or_default());
    }

    /// Takes the counts of queues and operations.
    pub(crate) fn take(&self) -> BTreeMap<AlertSubject, SubjectCounts> {
        let queues = std::mem::take(&mut *lock(&self.queues)).into_iter();
        let operations = std::mem::take(&mut *lock(&self.operations)).into_iter();
        let queues = queues.map(|(name, counted)| (AlertSubject::Queue(name), counted));
        let operations = operations.map(|(name, counted)| (AlertSubject::Operation(name), counted));
        queues.chain(operations).collect()
    }

    /// Adds counts back that could not be stored.
    pub(crate) fn restore(&self, taken: BTreeMap<AlertSubject, SubjectCounts>) {
        for (about, counted) in taken {
            match about {
                AlertSubject::Queue(name) => self.of_queue(&name, |to| to.add(&counted)),
                AlertSubject::Operation(name) => self.of_operation(&name, |to| to.add(&counted)),
                AlertSubject::Destination(_) | AlertSubject::Trail => (),
            }
        }
    }

    /// Adds the counts of destinations and the totals, in the order of their key in the store.
    pub(crate) fn with_sums(
        &self,
        taken: &BTreeMap<AlertSubject, SubjectCounts>,
    ) -> BTreeMap<String, SubjectCounts> {
        let destinations = lock(&self.destinations);
        let mut all: BTreeMap<String, SubjectCounts> = BTreeMap::new();
        let mut add = |about: String, counted: &SubjectCounts| all.entry(about).or_default().add(counted);
        for (about, counted) in taken {
            add(about.to_string(), counted);
            match about {
                AlertSubject::Queue(name) => {
                    add(SeriesSubject::Queues.about(), counted);
                    if let Some(destination) = destinations.get(name) {
                        let about = AlertSubject::Destination(destination.clone());
                        add(about.to_string(), &counted.deliveries());
                    }
                }
                AlertSubject::Operation(_) => add(SeriesSubject::Operations.about(), counted),
                AlertSubject::Destination(_) | AlertSubject::Trail => (),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
