//! Failure groups: folding, listing, acknowledging, resolving.

use ichido_core::failure_group::{GroupEvent, GroupStanding, GroupState};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::FailureGroups;
use crate::action::AuditAction;
use crate::check;
use crate::columns::Columns as _;
use crate::db_timestamp::DbTimestamp;
use crate::dead_letter::DeadLetterFilter;
use crate::error::StoreError;
use crate::failure_group::{
    FailureGroup, GroupPosition, MAX_SAMPLES, delta_row, first_of_each, fold, group_row,
};
use crate::future::StoreFuture;
use crate::message::DeadLetterState;
use crate::message::limits::{MAX_EXCERPT_BYTES, MAX_PAGE};
use crate::statement::{DbConnection, SqlValue, column, paired, shared};
use crate::transaction::Transaction;

impl<'s> FailureGroups<'s> {
    /// Lists the groups that have open letters. Those that need a person come first, then the ones that failed last.
    ///
    /// `after` is [`FailureGroup::position`] of the last one of the previous page. At most [`MAX_PAGE`].
    // SPEC E3.
    pub fn list(self, after: Option<GroupPosition>, limit: u32) -> StoreFuture<'s, Vec<FailureGroup>> {
        Box::pin(async move {
            let first = GroupPosition { urgency: u8::MAX, last_seen: Timestamp::MAX, id: Uuid::max() };
            let after = after.unwrap_or(first);
            let values = [
                i16::from(after.urgency).into(),
                after.last_seen.into(),
                after.id.into(),
                i64::from(limit.min(MAX_PAGE)).into(),
            ];
            self.0.driver.all(shared!("group_list"), &values).await?.iter().map(group_row).collect()
        })
    }

    /// Returns a group, also one without open letters.
    pub fn get(self, id: Uuid) -> StoreFuture<'s, Option<FailureGroup>> {
        Box::pin(async move {
            self.0
                .driver
                .optional(shared!("group_get"), &[id.into()])
                .await?
                .as_ref()
                .map(group_row)
                .transpose()
        })
    }

    /// Returns the ids of the newest open letters of a group, dead ones first; at most [`MAX_SAMPLES`].
    pub fn samples(self, id: Uuid) -> StoreFuture<'s, Vec<Uuid>> {
        Box::pin(async move {
            let mut samples = Vec::new();
            for state in [DeadLetterState::Dead, DeadLetterState::Parked] {
                let filter = DeadLetterFilter { state, group: Some(id), ..DeadLetterFilter::default() };
                let letters = self.0.dead_letters().page(&filter, None, MAX_SAMPLES).await?;
                samples.extend(letters.into_iter().map(|letter| letter.id));
            }
            samples.truncate(MAX_SAMPLES as usize);
            Ok(samples)
        })
    }

    /// Marks that a person works on a group, and records who. Returns the group, or `None` if there is none with this id.
    pub fn acknowledge(self, id: Uuid, by: &'s str) -> StoreFuture<'s, Option<FailureGroup>> {
        self.change(id, GroupEvent::Acknowledged, by)
    }

    /// Marks that a person has fixed the cause of a group, and records who. A later failure brings the group back.
    ///
    /// Its letters stay as they are. Returns the group, or `None` if there is none with this id.
    pub fn resolve(self, id: Uuid, by: &'s str) -> StoreFuture<'s, Option<FailureGroup>> {
        self.change(id, GroupEvent::Resolved, by)
    }

    /// Folds at most `limit` changes into their groups, each exactly once. Returns how many.
    pub fn fold(self, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            // Usually there is nothing to fold, and SQLite has one writer.
            if self.0.driver.optional(shared!("group_delta_any"), &[]).await?.is_none() {
                return Ok(0);
            }
            let work = async |transaction: &mut Transaction<'_>| {
                let mut connection = transaction.connection();
                let rows = connection.all(paired!("group_delta_take"), &[i64::from(limit).into()]).await?;
                let deltas = rows.iter().map(delta_row).collect::<Result<Vec<_>, _>>()?;
                if deltas.is_empty() {
                    return Ok(None);
                }
                let first = first_of_each(&deltas);
                let opened = GroupState::Open;
                let columns = [
                    column(&first, |delta| delta.key.id),
                    column(&first, |delta| delta.key.queue.as_str()),
                    column(&first, |delta| delta.key.code.as_deref()),
                    column(&first, |delta| &*delta.key.template),
                    column(&first, |delta| DbTimestamp(delta.at)),
                    column(&first, |_| opened.as_str()),
                    column(&first, |_| i16::from(opened.urgency())),
                ];
                let rows = connection.all(paired!("group_open"), &[SqlValue::Rows(&columns)]).await?;
                let mut groups = rows.iter().map(group_row).collect::<Result<Vec<_>, _>>()?;
                let folded = deltas.len() as u64;
                fold(&mut groups, deltas);
                write(&mut connection, &groups).await?;
                Ok(Some(folded))
            };
            Ok(self.0.driver.transact(work).await?.unwrap_or(0))
        })
    }

    /// Deletes at most `limit` groups without open letters whose last failure was before a time. Returns how many.
    pub fn delete_empty(self, seen_before: Timestamp, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let Some(now) = self.0.forget_until().await? else { return Ok(0) };
            let values = [now.moved(seen_before).into(), i64::from(limit).into()];
            self.0.driver.execute(paired!("group_forget"), &values).await
        })
    }

    /// Applies a person's event to a group. One that changes nothing is not recorded.
    fn change(self, id: Uuid, event: GroupEvent, by: &'s str) -> StoreFuture<'s, Option<FailureGroup>> {
        Box::pin(async move {
            check::text("the actor", by, MAX_EXCERPT_BYTES)?;
            let work = async |transaction: &mut Transaction<'_>| {
                let mut connection = transaction.connection();
                let found = connection.optional(paired!("group_lock"), &[id.into(), SqlValue::Now]).await?;
                let Some(row) = found else { return Ok(None) };
                let (before, now) = (group_row(&row)?, row.timestamp("now")?);
                let standing: GroupStanding = before.standing.after(event, now);
                if standing == before.standing {
                    return Ok(Some(before));
                }
                let action = AuditAction::group_changed(&before, standing.state, by);
                let after = FailureGroup { standing, changed_by: Some(by.to_owned()), ..before };
                write(&mut connection, std::slice::from_ref(&after)).await?;
                transaction.record(&action).await?;
                Ok(Some(after))
            };
            self.0.driver.transact(work).await
        })
    }
}

/// Writes groups that the transaction has locked.
async fn write(connection: &mut DbConnection<'_>, groups: &[FailureGroup]) -> Result<(), StoreError> {
    let columns = [
        column(groups, |group| group.id),
        column(groups, |group| group.count),
        column(groups, |group| DbTimestamp(group.first_seen)),
        column(groups, |group| DbTimestamp(group.last_seen)),
        column(groups, |group| group.standing.state.as_str()),
        column(groups, |group| DbTimestamp(group.standing.since)),
        column(groups, |group| group.changed_by.as_deref()),
        column(groups, |group| i16::from(group.standing.state.urgency())),
    ];
    connection.execute(paired!("group_write"), &[SqlValue::Rows(&columns)]).await.map(drop)
}
