//! Counters for alerts, per minute, over all nodes.
//!
//! Guarantee: counting takes no round trip and never fails the counted operation. [`Series::flush`](crate::Series::flush)
//! adds a process's counts to the store, all or nothing. A process that dies loses only the counts it had not added yet: alerts
//! about the current state (dead, parked and waiting messages) do not use these counts.
//!
//! [`Counters`] counts the arrivals and repetitions of a queue's messages and of an operation's requests, retries and failed
//! retries, and the time from enqueuing to the end of messages. The store itself counts enqueued messages; a worker and the
//! tower layer count the rest, and a worker flushes.
// SPEC A14, A15.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ichido_core::alert::AlertSubject;
use ichido_core::alert::measure::{Durations, slot};
use ichido_core::sync::lock;

use crate::columns::Columns;
use crate::error::StoreError;

/// The maximum number of subjects that a process counts between two flushes. Queues and operations are few.
pub const MAX_SUBJECTS: usize = 1_000;
/// The maximum number of counts read at once.
pub(crate) const MAX_SUMS: i64 = 200_000;

/// The counts of one queue or operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectCounts {
    /// Messages or requests that arrived.
    pub arrived: u64,
    /// Those of them that had arrived before.
    pub repeated: u64,
    /// Retries that have ended.
    pub retried: u64,
    /// Those of them that failed.
    pub retry_failed: u64,
    /// Messages that were sent or died, and the time since they were enqueued.
    pub left: Durations,
}

/// The counters of this process that are not in the store yet.
#[derive(Debug, Default)]
pub struct Counters {
    queues: Mutex<HashMap<String, SubjectCounts>>,
    operations: Mutex<HashMap<String, SubjectCounts>>,
    is_full: AtomicBool,
}

impl Counters {
    /// Counts a message that arrived for a queue.
    pub fn message_arrived(&self, queue: &str, is_repeated: bool) {
        self.count(&self.queues, queue, |counted| counted.arrive(is_repeated));
    }

    /// Counts a request with a key that arrived for an operation.
    pub fn request_arrived(&self, operation: &str, is_repeated: bool) {
        self.count(&self.operations, operation, |counted| counted.arrive(is_repeated));
    }

    /// Counts a retry of a message that has ended.
    pub fn retried(&self, queue: &str, has_failed: bool) {
        self.count(&self.queues, queue, |counted| {
            counted.retried += 1;
            counted.retry_failed += u64::from(has_failed);
        });
    }

    /// Counts messages that were sent or died, so long after they were enqueued.
    pub fn left(&self, queue: &str, took: &[Duration]) {
        if took.is_empty() {
            return;
        }
        self.count(&self.queues, queue, |counted| {
            for took in took.iter().copied() {
                *counted.left.slots.entry(slot(took)).or_default() += 1;
                counted.left.micros = counted.left.micros.saturating_add(micros(took));
            }
        });
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
                tracing::warn!(MAX_SUBJECTS, "too many queues or operations to count for alerts");
            }
            return;
        }
        change(subjects.entry(name.to_owned()).or_default());
    }

    /// Takes the counts, in the order of their key in the store.
    pub(crate) fn take(&self) -> BTreeMap<String, SubjectCounts> {
        let queues = std::mem::take(&mut *lock(&self.queues)).into_iter();
        let operations = std::mem::take(&mut *lock(&self.operations)).into_iter();
        let queues = queues.map(|(name, counted)| (AlertSubject::Queue(name).to_string(), counted));
        let operations =
            operations.map(|(name, counted)| (AlertSubject::Operation(name).to_string(), counted));
        queues.chain(operations).collect()
    }

    /// Adds counts back that could not be stored.
    pub(crate) fn restore(&self, taken: BTreeMap<String, SubjectCounts>) {
        for (about, counted) in taken {
            match AlertSubject::parse(&about) {
                Some(AlertSubject::Queue(name)) => self.count(&self.queues, &name, |to| to.add(&counted)),
                Some(AlertSubject::Operation(name)) => {
                    self.count(&self.operations, &name, |to| to.add(&counted));
                }
                Some(AlertSubject::Destination(_) | AlertSubject::Trail) | None => (),
            }
        }
    }
}

impl SubjectCounts {
    fn arrive(&mut self, is_repeated: bool) {
        self.arrived += 1;
        self.repeated += u64::from(is_repeated);
    }

    fn add(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.repeated += other.repeated;
        self.retried += other.retried;
        self.retry_failed += other.retry_failed;
        for (slot, count) in &other.left.slots {
            *self.left.slots.entry(*slot).or_default() += count;
        }
        self.left.micros = self.left.micros.saturating_add(other.left.micros);
    }

    /// Adds a row of the store.
    fn add_row(&mut self, row: &impl Columns) -> Result<(), StoreError> {
        let corrupt = |detail: &str| StoreError::Corrupt { table: "counters", detail: detail.to_owned() };
        let positive =
            |column| u64::try_from(row.number(column)?).map_err(|_| corrupt("a count is negative"));
        let (count, micros) = (positive("count")?, positive("micros")?);
        match row.text("kind")? {
            ARRIVED => self.arrived += count,
            REPEATED => self.repeated += count,
            RETRIED => self.retried += count,
            RETRY_FAILED => self.retry_failed += count,
            LEFT => {
                let slot = u8::try_from(row.small("slot")?).map_err(|_| corrupt("invalid slot"))?;
                *self.left.slots.entry(slot).or_default() += count;
                self.left.micros = self.left.micros.saturating_add(micros);
            }
            // A later release may count more.
            _ => (),
        }
        Ok(())
    }
}

const ARRIVED: &str = "arrived";
const LEFT: &str = "left";
const REPEATED: &str = "repeated";
const RETRIED: &str = "retried";
const RETRY_FAILED: &str = "retry_failed";

/// One row of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterRow<'a> {
    pub(crate) about: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) slot: i16,
    pub(crate) count: i64,
    pub(crate) micros: i64,
}

/// Converts counts to rows, in the order of their key.
pub(crate) fn rows(taken: &BTreeMap<String, SubjectCounts>) -> Vec<CounterRow<'_>> {
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let mut rows = Vec::new();
    for (about, counted) in taken {
        let mut add = |kind, slot, count: u64, micros: u64| {
            if 0 < count {
                rows.push(CounterRow { about, kind, slot, count: number(count), micros: number(micros) });
            }
        };
        add(ARRIVED, 0, counted.arrived, 0);
        // The sum is stored with the first slot, because all slots are read together.
        let mut micros = counted.left.micros;
        for (slot, count) in &counted.left.slots {
            add(LEFT, i16::from(*slot), *count, std::mem::take(&mut micros));
        }
        add(REPEATED, 0, counted.repeated, 0);
        add(RETRIED, 0, counted.retried, 0);
        add(RETRY_FAILED, 0, counted.retry_failed, 0);
    }
    rows
}

/// Sums rows by subject.
pub(crate) fn sums<R: Columns>(rows: &[R]) -> Result<BTreeMap<AlertSubject, SubjectCounts>, StoreError> {
    let mut sums: BTreeMap<AlertSubject, SubjectCounts> = BTreeMap::new();
    for row in rows {
        // A later release may count more.
        let Some(about) = AlertSubject::parse(row.text("about")?) else { continue };
        sums.entry(about).or_default().add_row(row)?;
    }
    Ok(sums)
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted_twice(counters: &Counters) {
        counters.message_arrived("orders", false);
        counters.message_arrived("orders", true);
        counters.request_arrived("orders", true);
        counters.retried("orders", true);
        counters.left("orders", &[Duration::from_secs(3)]);
    }

    #[test]
    fn failed_counts_are_added_later() {
        let (counters, once) = (Counters::default(), Counters::default());
        counted_twice(&counters);
        let taken = counters.take();
        counted_twice(&counters);
        counters.restore(taken);
        for _ in 0..2 {
            counted_twice(&once);
        }
        assert_eq!(counters.take(), once.take());
        assert_eq!(counters.take(), BTreeMap::new());
    }

    #[test]
    fn rows_come_in_the_order_of_their_key() {
        let counters = Counters::default();
        counted_twice(&counters);
        counters.left("orders", &[Duration::from_mins(3)]);
        counters.left("mail", &[Duration::ZERO]);
        let taken = counters.take();
        let rows = rows(&taken);
        let keys: Vec<_> = rows.iter().map(|row| (row.about, row.kind, row.slot)).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        assert_eq!(keys, sorted);
        assert_eq!(rows.iter().map(|row| row.micros).sum::<i64>(), 183_000_000);
    }

    #[test]
    fn more_subjects_than_the_bound_are_not_counted() {
        let counters = Counters::default();
        for number in 0..=MAX_SUBJECTS {
            counters.message_arrived(&format!("q{number}"), false);
        }
        counters.message_arrived("q0", false);
        let taken = counters.take();
        assert_eq!(taken.len(), MAX_SUBJECTS);
        assert_eq!(taken["queue q0"].arrived, 2);
    }
}
