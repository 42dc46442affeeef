//! Claiming, settling and renewing on SQLite.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, StepRefusal};
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::step::step;
use super::{Sqlite, WriteTransaction};
use crate::claim_end::{MessageClaim, delete_leases, ends, fences, is_refused, marks, not_ours, settle};
use crate::claim_tracker::{ClaimEnd, ClaimEnds, ClaimReport};
use crate::columns::{Columns as _, fence_from, number};
use crate::error::StoreError;
use crate::guarantee_columns::GuaranteeColumns;
use crate::message::{ClaimOptions, ClaimedMessage, QueueName, Settlement, StepResult, limits};
use crate::micros;
use crate::row_changes::{add_counts, apply};
use crate::rows::work;
use crate::statement::{DbConnection, SqlValue, column, paired, shared, sqlite_only};

impl Sqlite {
    /// Claims up to `count` messages, or a single suspect if `suspects` are wanted.
    pub(crate) async fn claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimOptions,
        suspects: bool,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        let mut tx = self.write().await?;
        // Issued when the lease is written: reading an empty queue writes nothing.
        let fence = fence_from(tx.last.saturating_add(1))?;
        let mut connection = tx.db_connection();
        let values = [
            queue.as_str().into(),
            number(fence).into(),
            SqlValue::Now,
            i64::from(count.get().min(limits::MAX_CLAIM)).into(),
        ];
        let mut rows = Vec::new();
        if suspects {
            rows = connection.all(sqlite_only!("work_pick_suspect"), &values).await?;
        }
        let suspect = !rows.is_empty();
        if !suspect {
            rows = connection.all(sqlite_only!("work_pick"), &values).await?;
        }
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let work: Vec<ClaimedMessage> =
            rows.iter().map(|row| work(queue, terms, row)).collect::<Result<_, _>>()?;
        take(&mut tx, queue, terms, &work, suspect).await?;
        tx.draw(1);
        tx.commit().await?;
        self.claim_tracker.claimed(&work);
        self.own_claims.hold(fence, terms.lease);
        Ok(work)
    }

    /// Writes the outcomes of messages. The caller commits and then calls [`Sqlite::reported`].
    ///
    /// The whole batch applies or none of it. A repeated report, as after a lost answer, gets the same outcome.
    pub(super) async fn settle<'a>(
        &self,
        tx: &mut WriteTransaction,
        settlements: &[&'a Settlement],
    ) -> Result<WrittenReports<'a>, StoreError> {
        let mut answers = vec![StepResult::NoSuchMessage; settlements.len()];
        let mut reports = Vec::with_capacity(settlements.len());
        for (index, settlement) in settlements.iter().enumerate() {
            match ClaimReport::new(index, settlement) {
                Ok(report) => reports.push(report),
                Err(why) => answers[index] = StepResult::Refused(why),
            }
        }
        // Of two reports about one claim, a success goes first.
        reports.sort_by_key(|report| report.last() != State::Sent);
        if reports.is_empty() {
            return Ok(WrittenReports { answers, reports, over: Vec::new() });
        }
        let unowned = self.claim_tracker.unowned(reports.iter().map(ClaimReport::message_claim));
        let now = tx.now;
        let mut connection = tx.db_connection();
        let not_ours = not_ours(&mut connection, unowned).await?;
        let rows = connection.all(paired!("lease_hold"), &[SqlValue::Numbers(&fences(&reports))]).await?;
        let held: HashMap<Fence, Uuid> = rows
            .iter()
            .map(|row| Ok((row.fence()?, row.uuid("node")?)))
            .collect::<Result<_, StoreError>>()?;
        let mut ends = ends(&mut connection, &reports).await?;
        let back: Vec<MessageClaim> =
            reports.iter().filter(|report| report.is_given_back()).map(ClaimReport::message_claim).collect();
        let start_mark = match &*back {
            [] => HashSet::new(),
            back => marks(&mut connection, paired!("start_mark_find"), back).await?,
        };
        let holder = |report: &ClaimReport<'_>| {
            let node = held.get(&report.fence).filter(|_| !not_ours.contains(&report.message_claim()));
            node.map(|node| (*node, now))
        };
        let may_have_started = |report: &ClaimReport<'_>| start_mark.contains(&report.message_claim());
        let (mut changes, settled) = settle(&reports, &mut ends, holder, may_have_started);
        tx.apply(&mut changes).await?;
        let release =
            |report: &&ClaimReport<'_>| held.contains_key(&report.fence) && !is_refused(&settled, report);
        let over = self.claim_tracker.exhausted(reports.iter().filter(release));
        if !over.is_empty() {
            let fences: Vec<i64> = over.iter().copied().map(number).collect();
            delete_leases(&mut tx.db_connection(), &fences).await?;
        }
        for report in &reports {
            answers[report.index] = match settled.get(&report.index) {
                Some(stepped) => *stepped,
                None => settle_late(tx, report, ends.ended.get(&report.message_claim())).await?,
            };
        }
        reports.retain(|report| !is_refused(&settled, report));
        Ok(WrittenReports { answers, reports, over })
    }

    /// Writes a success within its holder's own transaction. Nobody else writes until it ends, so no lock is needed.
    pub(crate) async fn settle_success_in(
        &self,
        connection: &mut SqliteConnection,
        report: &ClaimReport<'_>,
    ) -> Result<StepResult, StoreError> {
        self.files.check()?;
        let now = self.now(connection).await?;
        let mut connection = DbConnection::Sqlite(connection, now);
        let (fence, own) = (number(report.fence), self.valid_claims());
        let claim = [fence.into(), report.settlement.id.into(), SqlValue::Now, SqlValue::Numbers(&own)];
        let Some(lease) = connection.optional(sqlite_only!("lease_valid"), &claim).await? else {
            return Ok(StepResult::Refused(StepRefusal::StaleFence));
        };
        let holder = Some((lease.uuid("node")?, now));
        let reports = std::slice::from_ref(report);
        let (changes, _) = settle(reports, &mut ClaimEnds::default(), |_| holder, |_| false);
        apply(&mut connection, &changes).await?;
        Ok(StepResult::Now(report.last()))
    }

    /// Returns the claims of this process that are valid by its own clock.
    pub(crate) fn valid_claims(&self) -> Vec<i64> {
        self.own_claims.valid_claims()
    }

    /// Stops tracking what has ended, after the commit.
    pub(super) fn reported(&self, written: WrittenReports<'_>) -> Vec<StepResult> {
        self.claim_tracker.release(written.reports.iter());
        for fence in written.over {
            self.own_claims.release(fence);
        }
        written.answers
    }

    /// Marks that these calls are about to start. Returns which of them may.
    pub(crate) async fn begin(&self, calls: &[MessageClaim]) -> Result<Vec<bool>, StoreError> {
        let mut tx = self.write().await?;
        let unowned = self.claim_tracker.unowned(calls.iter().copied());
        let not_ours = not_ours(&mut tx.db_connection(), unowned).await?;
        let own: Vec<MessageClaim> = calls.iter().filter(|call| !not_ours.contains(call)).copied().collect();
        let marked = marks(&mut tx.db_connection(), paired!("start_mark_mark"), &own).await?;
        tx.commit().await?;
        Ok(calls.iter().map(|call| marked.contains(call)).collect())
    }

    /// Notes that the claims in `renewed` were renewed.
    pub(crate) fn renewed(&self, fences: &[Fence], renewed: &HashSet<Fence>, lease: Duration) {
        self.claim_tracker.renewed(fences, renewed);
        for fence in renewed {
            self.own_claims.hold(*fence, lease);
        }
    }
}

/// Reports that are written and not yet committed.
pub(super) struct WrittenReports<'a> {
    answers: Vec<StepResult>,
    reports: Vec<ClaimReport<'a>>,
    /// Claims that hold nothing any more.
    over: Vec<Fence>,
}

/// Moves the picked messages from the ready table to one lease row.
async fn take(
    tx: &mut WriteTransaction,
    queue: &QueueName,
    terms: ClaimOptions,
    work: &[ClaimedMessage],
    suspect: bool,
) -> Result<(), StoreError> {
    let Some(fence) = work.first().map(|work| work.fence) else { return Ok(()) };
    let rows = [column(work, |work| i16::from(work.priority)), column(work, |work| work.id)];
    let mut connection = tx.db_connection();
    connection.execute(sqlite_only!("work_take"), &[queue.as_str().into(), SqlValue::Rows(&rows)]).await?;
    let promised = GuaranteeColumns::new(&terms);
    let ids: Vec<Uuid> = work.iter().map(|work| work.id).collect();
    let values = [
        number(fence).into(),
        queue.as_str().into(),
        terms.node.into(),
        SqlValue::Now,
        micros(terms.lease).into(),
        (terms.start_marks || suspect).into(),
        suspect.into(),
        promised.guarantee.into(),
        promised.keeps_for.into(),
        promised.max_time_in_flight.into(),
        SqlValue::Ids(&ids),
    ];
    connection.execute(sqlite_only!("lease_add"), &values).await?;
    let count = i32::try_from(work.len()).unwrap_or(i32::MAX);
    let queue = queue.as_str();
    add_counts(&mut connection, [(queue, "queued", -count), (queue, "sending", count)]).await
}

/// Handles a report after the message ended under this claim or was rescued. A success is evidence even then.
async fn settle_late(
    tx: &mut WriteTransaction,
    report: &ClaimReport<'_>,
    before: Option<&ClaimEnd>,
) -> Result<StepResult, StoreError> {
    let Settlement { id, event, note, .. } = report.settlement;
    let Some(before) = before else {
        // The message was never part of this claim, so the report is about another message.
        let message =
            tx.db_connection().optional(paired!("step_message"), &[(*id).into(), SqlValue::Now]).await?;
        let is_there = message.is_some();
        return Ok(if is_there {
            StepResult::Refused(StepRefusal::StaleFence)
        } else {
            StepResult::NoSuchMessage
        });
    };
    if let Some(state) = report.repeated_outcome(before) {
        return Ok(StepResult::Now(state));
    }
    let Event::Succeeded { fence } = *event else { return Ok(StepResult::Refused(StepRefusal::StaleFence)) };
    let (stepped, _) = step(tx, *id, |_| Event::LateSuccess { fence }, note).await?;
    if matches!(stepped, StepResult::Refused(_)) {
        // The same evidence may have been stored before, and its answer lost.
        let before = tx.db_connection().optional(shared!("late_find"), &[(*id).into()]).await?;
        return Ok(before.map_or(stepped, |_| StepResult::Now(State::Sent)));
    }
    Ok(stepped)
}
