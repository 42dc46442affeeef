//! Claiming, settling and renewing on PostgreSQL.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, StepRefusal};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Connection as _, PgConnection};
use tokio::time::Instant;
use uuid::Uuid;

use super::Postgres;
use super::connections::ConnectionPool;
use super::repeated::{optional, repeated};
use super::scan_cursor::{QUEUE_START, QueuePosition, ScanCursor};
use crate::claim_end::{MessageClaim, delete_leases, ends, fences, is_refused, marks, not_ours, settle};
use crate::claim_tracker::ClaimReport;
use crate::columns::{Columns, count, number, small};
use crate::error::StoreError;
use crate::guarantee_columns::GuaranteeColumns;
use crate::message::{ClaimOptions, ClaimedMessage, QueueName, Settlement, StepResult, limits};
use crate::micros;
use crate::row_changes::{apply, body_of, bytes_of, type_of};
use crate::rows::work;
use crate::split_retry::WriteMode;
use crate::statement::{DbConnection, SqlValue, paired, postgres_only, shared};

/// How often to retry reports when concurrent reports about the same messages are faster.
const MAX_ROUNDS: usize = 8;

/// The maximum number of messages in one claim.
const MAX_CLAIM: NonZeroU32 = NonZeroU32::new(limits::MAX_CLAIM).expect("not zero");

impl Postgres {
    /// Claims up to `count` messages, or a single suspect if `suspects` are wanted.
    pub(crate) async fn claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimOptions,
        suspects: bool,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        let count = count.min(MAX_CLAIM);
        let Some(position) = self.with_cursor(queue, |cursor| cursor.start(Instant::now())) else {
            return self.claim_from_start(queue, count, terms, suspects).await;
        };
        let start_mark = Instant::now();
        let work = self.claim_after(queue, count, terms, position).await?;
        self.with_cursor(queue, |cursor| cursor.record_scan(start_mark.elapsed()));
        if work.is_empty() && self.with_cursor(queue, |cursor| cursor.should_rescan(start_mark)) {
            // Nothing is left after the cursor; there may be messages before it.
            return self.claim_from_start(queue, count, terms, suspects).await;
        }
        Ok(work)
    }

    async fn claim_from_start(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimOptions,
        suspects: bool,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        let suspect = if suspects { self.claim_suspect(queue, terms).await? } else { Vec::new() };
        if !suspect.is_empty() {
            // The next claim looks for the next suspect.
            self.with_cursor(queue, ScanCursor::rescan_next);
            return Ok(suspect);
        }
        let start_mark = Instant::now();
        let work = self.claim_after(queue, count, terms, QUEUE_START).await?;
        self.with_cursor(queue, |cursor| cursor.record_rescan(start_mark.elapsed()));
        Ok(work)
    }

    /// Notes that a queue is said to have work.
    pub(crate) fn note_wake(&self, queue: &QueueName) {
        self.with_cursor(queue, ScanCursor::wake);
    }

    /// Notes that a message before the cursor can be claimed again.
    pub(crate) fn note_requeued(&self, queue: &QueueName) {
        lock(&self.cursors).remove(queue);
    }

    /// Simulates a long-open snapshot. The cursor is after all messages, and a scan from the start is expensive.
    #[cfg(test)]
    pub(crate) fn expect_expensive_rescan(&self, message: &crate::message::NewMessage) {
        self.with_cursor(&message.queue, |cursor| {
            *cursor = ScanCursor::expensive(i16::from(message.priority));
        });
    }

    fn with_cursor<T>(&self, queue: &QueueName, change: impl FnOnce(&mut ScanCursor) -> T) -> T {
        change(lock(&self.cursors).entry(queue.clone()).or_default())
    }

    async fn claim_after(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimOptions,
        position: QueuePosition,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        let promised = GuaranteeColumns::new(&terms);
        let rows = self
            .calls
            .all(
                sqlx::query(include_str!("sql/work_claim.sql"))
                    .bind(queue.as_str())
                    .bind(terms.node)
                    .bind(position.0)
                    .bind(position.1)
                    .bind(i64::from(count.get()))
                    .bind(micros(terms.lease))
                    .bind(terms.start_marks)
                    .bind(self.skew())
                    .bind(promised.guarantee)
                    .bind(promised.keeps_for)
                    .bind(promised.max_time_in_flight),
            )
            .await?;
        let work = self.claimed(queue, terms, &rows)?;
        if let Some(last) = work.last() {
            self.with_cursor(queue, |cursor| cursor.advance_to((i16::from(last.priority), last.id)));
        }
        Ok(work)
    }

    async fn claim_suspect(
        &self,
        queue: &QueueName,
        terms: ClaimOptions,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        let promised = GuaranteeColumns::new(&terms);
        let rows = self
            .calls
            .all(
                sqlx::query(include_str!("sql/work_claim_suspect.sql"))
                    .bind(queue.as_str())
                    .bind(terms.node)
                    .bind(micros(terms.lease))
                    .bind(self.skew())
                    .bind(promised.guarantee)
                    .bind(promised.keeps_for)
                    .bind(promised.max_time_in_flight),
            )
            .await?;
        self.claimed(queue, terms, &rows)
    }

    fn claimed(
        &self,
        queue: &QueueName,
        terms: ClaimOptions,
        rows: &[PgRow],
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        let mut work: Vec<ClaimedMessage> =
            rows.iter().map(|row| work(queue, terms, row)).collect::<Result<_, _>>()?;
        work.sort_unstable_by_key(|work| (work.priority, work.id));
        self.claim_tracker.claimed(&work);
        Ok(work)
    }

    /// Writes the outcomes of messages. A repeated report, as after a lost answer, gets the same outcome.
    pub(crate) async fn settle(
        &self,
        settlements: &[Settlement],
        manner: WriteMode,
    ) -> Result<Vec<StepResult>, StoreError> {
        let pool = self.pool_for(manner);
        let mut answers = vec![None; settlements.len()];
        let mut sent = Vec::new();
        let mut others = Vec::new();
        for (index, settlement) in settlements.iter().enumerate() {
            match ClaimReport::new(index, settlement) {
                Ok(report) if report.last() == State::Sent => sent.push(report),
                Ok(report) => others.push(report),
                Err(why) => answers[index] = Some(StepResult::Refused(why)),
            }
        }
        let not_ours =
            self.not_ours(pool, sent.iter().chain(&others).map(ClaimReport::message_claim)).await?;
        let mut late = Vec::new();
        if !not_ours.is_empty() {
            late.extend(sent.extract_if(.., |report| not_ours.contains(&report.message_claim())));
            late.extend(others.extract_if(.., |report| not_ours.contains(&report.message_claim())));
        }
        // In the order of the index, which then grows at its end.
        sent.sort_unstable_by_key(ClaimReport::message_claim);
        for index in self.settle_sent(pool, &sent).await? {
            answers[index] = Some(StepResult::Now(State::Sent));
        }
        for (index, stepped) in self.settle_others(pool, &others).await? {
            answers[index] = Some(stepped);
        }
        for report in sent.iter().chain(&others).chain(&late) {
            if answers[report.index].is_none() {
                let late = async |connection: &mut PgConnection| self.settle_late(connection, report).await;
                answers[report.index] = Some(pool.with_connection(late).await?);
            }
        }
        Ok(answers.into_iter().map(|answer| answer.unwrap_or(StepResult::NoSuchMessage)).collect())
    }

    /// Returns the messages that their claims do not hold, judging by the remaining leases.
    async fn not_ours(
        &self,
        pool: &ConnectionPool,
        pairs: impl Iterator<Item = (Uuid, Fence)>,
    ) -> Result<HashSet<(Uuid, Fence)>, StoreError> {
        let unowned = self.claim_tracker.unowned(pairs);
        if unowned.is_empty() {
            return Ok(HashSet::new());
        }
        pool.with_connection(async |connection| not_ours(&mut self.connection(connection), unowned).await)
            .await
    }

    /// Writes the successes. Returns the indexes of those that were applied.
    async fn settle_sent(
        &self,
        pool: &ConnectionPool,
        reports: &[ClaimReport<'_>],
    ) -> Result<Vec<usize>, StoreError> {
        if reports.is_empty() {
            return Ok(Vec::new());
        }
        let over: Vec<i64> = self.claim_tracker.exhausted(reports.iter()).into_iter().map(number).collect();
        let query = match reports {
            [report] => {
                let one = include_str!("sql/settle_sent_one.sql");
                sent_report(one, report, over.first().copied(), self.skew())
            }
            _ => sent_reports(reports, &over, self.skew()),
        };
        let rows = match pool.all(query).await {
            // A report is repeated only after a lost answer.
            Err(StoreError::Refused(sqlx::Error::Database(error))) if error.is_unique_violation() => {
                return Ok(self.settle_others(pool, reports).await?.into_keys().collect());
            }
            rows => rows?,
        };
        let valid: BTreeSet<Fence> = rows.iter().map(Columns::fence).collect::<Result<_, _>>()?;
        self.claim_tracker.release(reports.iter());
        let applied = reports.iter().filter(|report| valid.contains(&report.fence));
        Ok(applied.map(|report| report.index).collect())
    }

    /// Writes a success within its holder's own transaction.
    pub(crate) async fn settle_success_in(
        &self,
        connection: &mut PgConnection,
        report: &ClaimReport<'_>,
        is_marked: bool,
    ) -> Result<StepResult, StoreError> {
        let sql = include_str!("sql/settle_sent_in.sql");
        let query = sent_report(sql, report, None, self.skew()).bind(is_marked);
        let row = query.fetch_optional(connection).await?;
        Ok(row.map_or(StepResult::Refused(StepRefusal::StaleFence), |_| StepResult::Now(report.last())))
    }

    /// Writes the failures, the messages given back, and successes of which some were written before. Returns what was applied and
    /// what a start mark contradicts, by index.
    async fn settle_others(
        &self,
        pool: &ConnectionPool,
        reports: &[ClaimReport<'_>],
    ) -> Result<HashMap<usize, StepResult>, StoreError> {
        if reports.is_empty() {
            return Ok(HashMap::new());
        }
        for _ in 0..MAX_ROUNDS {
            let settling =
                async |connection: &mut PgConnection| self.settle_unended(connection, reports).await;
            match pool.with_connection(settling).await {
                // Another report about one of these was committed in between: the next round sees it.
                Err(StoreError::Refused(sqlx::Error::Database(error))) if error.is_unique_violation() => (),
                outcome => return outcome,
            }
        }
        Err(StoreError::Busy)
    }

    async fn settle_unended(
        &self,
        connection: &mut PgConnection,
        reports: &[ClaimReport<'_>],
    ) -> Result<HashMap<usize, StepResult>, StoreError> {
        let mut transaction = connection.begin().await?;
        let mut connection = self.connection(&mut transaction);
        let values = [SqlValue::Numbers(&fences(reports)), SqlValue::Now];
        let held: HashMap<Fence, (Uuid, Timestamp)> = connection
            .all(paired!("lease_hold"), &values)
            .await?
            .iter()
            .map(|row| Ok((row.fence()?, (row.uuid("node")?, row.timestamp("now")?))))
            .collect::<Result<_, sqlx::Error>>()?;
        let mut ends = ends(&mut connection, reports).await?;
        let back = reports.iter().filter(|report| {
            report.is_given_back()
                && held.contains_key(&report.fence)
                && !ends.ended.contains_key(&report.message_claim())
        });
        let back: Vec<MessageClaim> = back.map(ClaimReport::message_claim).collect();
        // A message given back can no longer start; one that was marked before may have started.
        let never_begun = match &*back {
            [] => HashSet::new(),
            back => marks(&mut connection, postgres_only!("start_mark_never"), back).await?,
        };
        let holder = |report: &ClaimReport<'_>| held.get(&report.fence).copied();
        let may_have_started = |report: &ClaimReport<'_>| {
            report.is_given_back() && !never_begun.contains(&report.message_claim())
        };
        let (changes, settled) = settle(reports, &mut ends, holder, may_have_started);
        apply(&mut connection, &changes).await?;
        // A refused message is still held.
        let release = || reports.iter().filter(|report| !is_refused(&settled, report));
        let gone = self.claim_tracker.exhausted(release().filter(|report| held.contains_key(&report.fence)));
        delete_leases(&mut connection, &gone.into_iter().map(number).collect::<Vec<_>>()).await?;
        transaction.commit().await?;
        self.claim_tracker.release(release());
        // A message that can be claimed again keeps its old position, which is before the cursor.
        for report in reports.iter().filter(|report| matches!(report.last(), State::Queued { .. })) {
            self.with_cursor(&report.settlement.queue, ScanCursor::rescan_next);
        }
        Ok(settled)
    }

    /// Handles a report after the message ended under this claim or was rescued. A success is evidence even then.
    async fn settle_late(
        &self,
        connection: &mut PgConnection,
        report: &ClaimReport<'_>,
    ) -> Result<StepResult, StoreError> {
        let mut ends = ends(&mut self.connection(connection), std::slice::from_ref(report)).await?;
        let Settlement { id, event, note, .. } = report.settlement;
        let Some(before) = ends.ended.remove(&report.message_claim()) else {
            // The message was never part of this claim, so the report is about another message.
            let message = [(*id).into(), SqlValue::Now];
            let message = self.connection(connection).optional(paired!("step_message"), &message).await?;
            return Ok(
                message.map_or(StepResult::NoSuchMessage, |_| StepResult::Refused(StepRefusal::StaleFence))
            );
        };
        if let Some(state) = report.repeated_outcome(&before) {
            return Ok(StepResult::Now(state));
        }
        let Event::Succeeded { fence } = *event else {
            return Ok(StepResult::Refused(StepRefusal::StaleFence));
        };
        let (stepped, _) = self.step_over(connection, *id, |_| Event::LateSuccess { fence }, note).await?;
        if matches!(stepped, StepResult::Refused(_)) {
            // The same evidence may have been stored before, and its answer lost.
            let before = self.connection(connection).optional(shared!("late_find"), &[(*id).into()]).await?;
            return Ok(before.map_or(stepped, |_| StepResult::Now(State::Sent)));
        }
        Ok(stepped)
    }

    /// Marks that these calls are about to start. Returns which of them may.
    pub(crate) async fn begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        let not_ours = self.not_ours(&self.calls, calls.iter().copied()).await?;
        // Sorted, so two batches with the same calls do not deadlock.
        let sorted: BTreeSet<MessageClaim> =
            calls.iter().filter(|call| !not_ours.contains(call)).copied().collect();
        let sorted: Vec<MessageClaim> = sorted.into_iter().collect();
        let marked =
            async |mut it: DbConnection<'_>| marks(&mut it, paired!("start_mark_mark"), &sorted).await;
        let mut may = self.write_with(marked).await?;
        if may.len() < sorted.len() {
            let found =
                async |mut it: DbConnection<'_>| marks(&mut it, paired!("start_mark_find"), &sorted).await;
            may.extend(self.write_with(found).await?);
        }
        Ok(calls.iter().map(|call| may.contains(call)).collect())
    }

    /// Notes that the claims in `renewed` were renewed.
    pub(crate) fn renewed(&self, fences: &[Fence], renewed: &HashSet<Fence>, _lease: Duration) {
        self.claim_tracker.renewed(fences, renewed);
    }
}

/// Builds the statement that writes successes.
fn sent_reports<'q>(
    reports: &'q [ClaimReport<'q>],
    over: &[i64],
    skew: i64,
) -> Query<'q, sqlx::Postgres, PgArguments> {
    let these = || reports.iter();
    let notes = || these().map(|report| &report.settlement.note);
    let fences = fences(reports);
    let mut counts = vec![0_i32; fences.len()];
    // Each report's fence by its position, counted from 1. Fences are sorted, and the claims of a batch are few.
    let lease = |report: &ClaimReport<'_>| fences.partition_point(|fence| *fence < number(report.fence));
    for report in reports {
        if let Some(count) = counts.get_mut(lease(report)) {
            *count += 1;
        }
    }
    let leases = repeated(these().map(|report| i32::try_from(lease(report) + 1).unwrap_or(i32::MAX)));
    sqlx::query(include_str!("sql/settle_sent.sql"))
        .bind(these().map(|report| report.settlement.id).collect::<Vec<_>>())
        .bind(leases)
        .bind(repeated(these().map(|report| count(report.history.attempts))))
        .bind(repeated(these().map(|report| count(report.history.deaths))))
        .bind(fences)
        .bind(over.to_vec())
        .bind(skew)
        .bind(optional(notes().map(|note| note.status.map(small))))
        .bind(optional(
            notes().map(|note| note.result_digest.as_ref().map(|digest| digest.as_bytes().as_slice())),
        ))
        .bind(optional(notes().map(|note| note.receipt.as_deref())))
        .bind(optional(notes().map(|note| note.code.map(ErrorCode::as_str))))
        .bind(optional(notes().map(|note| note.excerpt.as_deref())))
        .bind(optional(notes().map(body_of)))
        .bind(optional(notes().map(type_of)))
        .bind(counts)
        .bind(optional(notes().map(bytes_of)))
}

/// Builds the statement that writes a single success. `over` is its claim, if that holds nothing more.
fn sent_report<'q>(
    sql: &'static str,
    report: &'q ClaimReport<'q>,
    over: Option<i64>,
    skew: i64,
) -> Query<'q, sqlx::Postgres, PgArguments> {
    let note = &report.settlement.note;
    sqlx::query(sql)
        .bind(report.settlement.id)
        .bind(number(report.fence))
        .bind(count(report.history.attempts))
        .bind(count(report.history.deaths))
        .bind(skew)
        .bind(note.status.map(small))
        .bind(note.result_digest.as_ref().map(|digest| digest.as_bytes().as_slice()))
        .bind(note.receipt.as_deref())
        .bind(note.code.map(ErrorCode::as_str))
        .bind(note.excerpt.as_deref())
        .bind(body_of(note))
        .bind(type_of(note))
        .bind(over)
        .bind(bytes_of(note))
}
