//! How claims on messages end, on either database: the rows to read, and the results of workers' reports.

use std::collections::{BTreeSet, HashMap, HashSet};

use ichido_core::fence::Fence;
use ichido_core::lifecycle::StepRefusal;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::claim_tracker::{ClaimEnd, ClaimEnds, ClaimReport};
use crate::columns::{Columns as _, Row, number};
use crate::error::StoreError;
use crate::message::{Settlement, StepResult};
use crate::placement::{EventStamp, RowChanges};
use crate::rows;
use crate::statement::{Column, DbConnection, SqlValue, Statement, column, paired, sqlite_only};

/// A message and the claim that it is or was under.
pub(crate) type MessageClaim = (Uuid, Fence);

/// Returns the messages that their claims do not hold, judging by the remaining leases.
pub(crate) async fn not_ours(
    connection: &mut DbConnection<'_>,
    unowned: Vec<MessageClaim>,
) -> Result<HashSet<MessageClaim>, StoreError> {
    let mut unowned: HashSet<MessageClaim> = unowned.into_iter().collect();
    if !unowned.is_empty() {
        let pairs: Vec<MessageClaim> = unowned.iter().copied().collect();
        let fences: BTreeSet<i64> = pairs.iter().map(|(_, fence)| number(*fence)).collect();
        let fences: Vec<i64> = fences.into_iter().collect();
        let values = [SqlValue::Rows(&columns(&pairs)), SqlValue::Numbers(&fences)];
        let members = pairs_of(&connection.all(paired!("lease_members"), &values).await?)?;
        unowned.retain(|pair| !members.contains(pair));
    }
    Ok(unowned)
}

/// Reads how messages ended under their claims, if they have.
pub(crate) async fn ends(
    connection: &mut DbConnection<'_>,
    reports: &[ClaimReport<'_>],
) -> Result<ClaimEnds, StoreError> {
    let pairs: Vec<MessageClaim> = reports.iter().map(ClaimReport::message_claim).collect();
    rows::ends(&connection.all(paired!("event_find"), &[SqlValue::Rows(&columns(&pairs))]).await?)
}

/// Returns those messages that a statement about start marks returns.
pub(crate) async fn marks(
    connection: &mut DbConnection<'_>,
    statement: Statement,
    pairs: &[MessageClaim],
) -> Result<HashSet<MessageClaim>, StoreError> {
    pairs_of(&connection.all(statement, &[SqlValue::Rows(&columns(pairs))]).await?)
}

/// Deletes leases and the start marks made under them.
pub(crate) async fn delete_leases(
    connection: &mut DbConnection<'_>,
    fences: &[i64],
) -> Result<(), StoreError> {
    if let DbConnection::Sqlite(..) = connection {
        connection.execute(sqlite_only!("lease_unmark"), &[SqlValue::Numbers(fences)]).await?;
    }
    connection.execute(paired!("lease_over"), &[SqlValue::Numbers(fences)]).await.map(drop)
}

/// Returns the fences of these reports, each once, in order.
pub(crate) fn fences(reports: &[ClaimReport<'_>]) -> Vec<i64> {
    let fences: BTreeSet<i64> = reports.iter().map(|report| number(report.fence)).collect();
    fences.into_iter().collect()
}

/// Applies the reports whose claims are still valid.
///
/// `holder` returns the claim's holder and the time; `may_have_begun` returns whether a start mark contradicts a message that
/// is given back. Returns the rows to write and the outcomes by index, and adds to `ends`. Reports without an outcome are late.
pub(crate) fn settle(
    reports: &[ClaimReport<'_>],
    ends: &mut ClaimEnds,
    holder: impl Fn(&ClaimReport<'_>) -> Option<(Uuid, Timestamp)>,
    may_have_started: impl Fn(&ClaimReport<'_>) -> bool,
) -> (RowChanges, HashMap<usize, StepResult>) {
    let (mut changes, mut settled) = (RowChanges::default(), HashMap::with_capacity(reports.len()));
    for report in reports {
        let Some((node, now)) = holder(report).filter(|_| !ends.ended.contains_key(&report.message_claim()))
        else {
            continue;
        };
        let is_proven = ends.proven.contains(&report.settlement.id);
        // The mark decides, whatever the holder remembers.
        let stepped = if !is_proven && may_have_started(report) {
            StepResult::Refused(StepRefusal::MayHaveStarted)
        } else {
            let Settlement { state, event, note, claimed_at, .. } = report.settlement;
            let stamp = EventStamp {
                fence: Some(report.fence),
                claimed_at: Some(*claimed_at),
                node: Some(node),
                now,
            };
            let states = if is_proven { report.proven() } else { report.states };
            changes.add(&report.moving(), *state, *event, states, note, stamp);
            ends.ended.insert(report.message_claim(), ClaimEnd::new(*event, states.0));
            StepResult::Now(states.1.unwrap_or(states.0))
        };
        settled.insert(report.index, stepped);
    }
    (changes, settled)
}

/// Returns whether a report was refused, which leaves the message claimed.
pub(crate) fn is_refused(settled: &HashMap<usize, StepResult>, report: &ClaimReport<'_>) -> bool {
    matches!(settled.get(&report.index), Some(StepResult::Refused(_)))
}

fn columns(pairs: &[MessageClaim]) -> [Column<'_>; 2] {
    [column(pairs, |(id, _)| *id), column(pairs, |(_, fence)| number(*fence))]
}

fn pairs_of(rows: &[Row]) -> Result<HashSet<MessageClaim>, StoreError> {
    rows.iter().map(|row| Ok((row.uuid("message_id")?, row.fence()?))).collect()
}
