//! The counts of one subject: in memory, as rows of the store, and as the points of a series.

use std::collections::BTreeMap;

use ichido_core::alert::measure::Durations;
use ichido_core::series::{SeriesRange, SeriesSubject};
use ichido_core::time::Timestamp;

use crate::columns::Columns;
use crate::error::StoreError;

/// How a message or request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// For the first time.
    New,
    /// Again: the same was there before.
    Repeated,
    /// With a key that belongs to a different message or request.
    Conflict,
}

/// The counts of one queue, destination, operation or language model.
///
/// Nothing arrives at a destination, so it has no arrivals; an operation delivers nothing, so it has no times. Only models have tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectCounts {
    /// Messages or requests that arrived.
    pub arrived: u64,
    /// Those of them that had arrived before.
    pub repeated: u64,
    /// Those of them whose key belongs to a different message or request.
    pub conflicts: u64,
    /// Calls of a destination or model, or runs of an operation's handler.
    pub executed: u64,
    /// Retries that have ended.
    pub retried: u64,
    /// Those of them that failed.
    pub retry_failed: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Messages that became dead letters.
    pub dead: u64,
    /// Messages that were parked, or requests whose outcome is unknown.
    pub parked: u64,
    /// Reports of workers, or runs of a handler, that ended after their claim was lost.
    pub fenced: u64,
    /// Calls that the destination or model throttled.
    pub throttled: u64,
    /// Tokens of prompts, as the model's provider counts them.
    pub tokens_in: u64,
    /// Tokens of answers, as the model's provider counts them.
    pub tokens_out: u64,
    /// Calls to a model of unknown outcome, which may have been billed and are repeated.
    pub billed_twice: u64,
    /// First attempts that were claimed, and the time since they were due, or since a person sent them again.
    pub waited: Durations,
    /// Messages that were sent or died, and the time since they were due, or since a person sent them again.
    pub left: Durations,
}

impl SubjectCounts {
    /// Returns how many messages or requests were new.
    pub const fn accepted(&self) -> u64 {
        self.arrived.saturating_sub(self.repeated).saturating_sub(self.conflicts)
    }

    /// Adds the counts of another process, subject or time.
    pub fn add(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.repeated += other.repeated;
        self.conflicts += other.conflicts;
        self.executed += other.executed;
        self.retried += other.retried;
        self.retry_failed += other.retry_failed;
        self.sent += other.sent;
        self.dead += other.dead;
        self.parked += other.parked;
        self.fenced += other.fenced;
        self.throttled += other.throttled;
        self.tokens_in = self.tokens_in.saturating_add(other.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(other.tokens_out);
        self.billed_twice += other.billed_twice;
        self.waited.merge(&other.waited);
        self.left.merge(&other.left);
    }

    pub(super) fn arrive(&mut self, arrival: Arrival) {
        self.arrived += 1;
        match arrival {
            Arrival::New => (),
            Arrival::Repeated => self.repeated += 1,
            Arrival::Conflict => self.conflicts += 1,
        }
    }

    /// Returns the counts of its destination.
    pub(super) fn deliveries(&self) -> Self {
        Self { arrived: 0, repeated: 0, conflicts: 0, ..self.clone() }
    }

    /// Adds a row of the store.
    fn add_row(&mut self, row: &impl Columns) -> Result<(), StoreError> {
        let positive =
            |column| u64::try_from(row.number(column)?).map_err(|_| corrupt("a count is negative"));
        let (count, micros) = (positive("count")?, positive("micros")?);
        let durations = || {
            let slot = u8::try_from(row.small("slot")?).map_err(|_| corrupt("invalid slot"))?;
            Ok::<_, StoreError>(Durations { slots: BTreeMap::from([(slot, count)]), micros })
        };
        match row.text("kind")? {
            ARRIVED => self.arrived += count,
            BILLED_TWICE => self.billed_twice += count,
            CONFLICTS => self.conflicts += count,
            DEAD => self.dead += count,
            EXECUTED => self.executed += count,
            FENCED => self.fenced += count,
            LEFT => self.left.merge(&durations()?),
            PARKED => self.parked += count,
            REPEATED => self.repeated += count,
            RETRIED => self.retried += count,
            RETRY_FAILED => self.retry_failed += count,
            SENT => self.sent += count,
            THROTTLED => self.throttled += count,
            TOKENS_IN => self.tokens_in = self.tokens_in.saturating_add(count),
            TOKENS_OUT => self.tokens_out = self.tokens_out.saturating_add(count),
            WAITED => self.waited.merge(&durations()?),
            // A later release may count more.
            _ => (),
        }
        Ok(())
    }
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt { table: "counters", detail: detail.to_owned() }
}

const ARRIVED: &str = "arrived";
const BILLED_TWICE: &str = "billed_twice";
const CONFLICTS: &str = "conflicts";
const DEAD: &str = "dead";
const EXECUTED: &str = "executed";
const FENCED: &str = "fenced";
const LEFT: &str = "left";
const PARKED: &str = "parked";
const REPEATED: &str = "repeated";
const RETRIED: &str = "retried";
const RETRY_FAILED: &str = "retry_failed";
const SENT: &str = "sent";
const THROTTLED: &str = "throttled";
const TOKENS_IN: &str = "tokens_in";
const TOKENS_OUT: &str = "tokens_out";
const WAITED: &str = "waited";

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
pub(crate) fn rows(all: &BTreeMap<String, SubjectCounts>) -> Vec<CounterRow<'_>> {
    let mut rows = Vec::new();
    for (about, counted) in all {
        count_row(&mut rows, about, ARRIVED, counted.arrived);
        count_row(&mut rows, about, BILLED_TWICE, counted.billed_twice);
        count_row(&mut rows, about, CONFLICTS, counted.conflicts);
        count_row(&mut rows, about, DEAD, counted.dead);
        count_row(&mut rows, about, EXECUTED, counted.executed);
        count_row(&mut rows, about, FENCED, counted.fenced);
        duration_rows(&mut rows, about, LEFT, &counted.left);
        count_row(&mut rows, about, PARKED, counted.parked);
        count_row(&mut rows, about, REPEATED, counted.repeated);
        count_row(&mut rows, about, RETRIED, counted.retried);
        count_row(&mut rows, about, RETRY_FAILED, counted.retry_failed);
        count_row(&mut rows, about, SENT, counted.sent);
        count_row(&mut rows, about, THROTTLED, counted.throttled);
        count_row(&mut rows, about, TOKENS_IN, counted.tokens_in);
        count_row(&mut rows, about, TOKENS_OUT, counted.tokens_out);
        duration_rows(&mut rows, about, WAITED, &counted.waited);
    }
    rows
}

fn count_row<'a>(rows: &mut Vec<CounterRow<'a>>, about: &'a str, kind: &'static str, count: u64) {
    if 0 < count {
        rows.push(CounterRow { about, kind, slot: 0, count: number(count), micros: 0 });
    }
}

fn duration_rows<'a>(rows: &mut Vec<CounterRow<'a>>, about: &'a str, kind: &'static str, all: &Durations) {
    // The sum is stored with the first slot, because all slots are read together.
    let mut micros = number(all.micros);
    for (slot, count) in &all.slots {
        let micros = std::mem::take(&mut micros);
        rows.push(CounterRow { about, kind, slot: i16::from(*slot), count: number(*count), micros });
    }
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Sums rows by subject.
pub(crate) fn by_subject<R: Columns>(
    rows: &[R],
) -> Result<BTreeMap<SeriesSubject, SubjectCounts>, StoreError> {
    let mut sums: BTreeMap<SeriesSubject, SubjectCounts> = BTreeMap::new();
    for row in rows {
        // A later release may count others.
        if let Some(subject) = SeriesSubject::of_about(row.text("about")?) {
            sums.entry(subject).or_default().add_row(row)?;
        }
    }
    Ok(sums)
}

/// The counts of one point of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesPoint {
    /// When the point begins.
    pub at: Timestamp,
    /// The counts until the next point.
    pub counts: SubjectCounts,
}

/// Returns every point of a range, with the counts of its rows.
pub(crate) fn points<R: Columns>(range: &SeriesRange, rows: &[R]) -> Result<Vec<SeriesPoint>, StoreError> {
    let mut points: Vec<SeriesPoint> =
        range.starts().map(|at| SeriesPoint { at, counts: SubjectCounts::default() }).collect();
    for row in rows {
        let at = row.timestamp("at")?;
        let index = points.binary_search_by_key(&at, |point| point.at);
        let point = index.ok().and_then(|index| points.get_mut(index));
        point.ok_or_else(|| corrupt("a count is outside of its range"))?.counts.add_row(row)?;
    }
    Ok(points)
}
