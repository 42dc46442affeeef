//! Reads a page of the audit trail for people.

use std::collections::HashMap;

use ichido_core::audit::entry::{AuditEntry, EntryId};
use uuid::Uuid;

use crate::audit::{AuditFilter, AuditPage, ListedEntry, SealState, entry, entry_id, trail};
use crate::check;
use crate::columns::{Columns as _, Row};
use crate::driver::Driver;
use crate::error::StoreError;
use crate::message::limits::MAX_PAGE;
use crate::statement::{SqlValue, paired, shared};

/// Reads a page of entries before one.
pub(super) async fn page(
    driver: &Driver,
    filter: &AuditFilter,
    before: Option<EntryId>,
    limit: u32,
) -> Result<AuditPage, StoreError> {
    check::no_nul("the actor", filter.actor.as_deref().unwrap_or_default())?;
    check::no_nul("the kind", filter.kind.as_deref().unwrap_or_default())?;
    let limit = limit.clamp(1, MAX_PAGE);
    let read = if filter.is_indexed() { limit } else { MAX_PAGE };
    let rows = rows(driver, filter, before, read).await?;
    let is_last = rows.len() < read as usize;
    let (mut entries, mut next) = (Vec::new(), None);
    for row in &rows {
        let entry = entry(row)?;
        next = Some(entry.id);
        if filter.selects(&entry) {
            entries.push(entry);
        }
        if entries.len() == limit as usize {
            break;
        }
    }
    let is_all = is_last && entries.len() < limit as usize;
    let mut seals = seals(driver, &entries).await?;
    let listed = entries.into_iter().map(|entry| {
        let seal = seals.remove(&entry.id).map_or(SealState::Waiting, |seal| SealState::Sealed { seal });
        ListedEntry { entry, seal }
    });
    Ok(AuditPage { entries: listed.collect(), next: next.filter(|_| !is_all) })
}

/// Reads at most `limit` entries with the index that fits best. Planned for each query: few rows join their messages.
async fn rows(
    driver: &Driver,
    filter: &AuditFilter,
    before: Option<EntryId>,
    limit: u32,
) -> Result<Vec<Row>, StoreError> {
    let last = EntryId { message: Uuid::max(), fence: i64::MAX, step: i16::MAX };
    let EntryId { message, fence, step } = before.unwrap_or(last);
    let limit = i64::from(limit).into();
    let position: [SqlValue<'_>; 4] = [fence.into(), message.into(), step.into(), limit];
    match (filter.subject, &filter.actor, &filter.kind) {
        (Some(subject), ..) => {
            let values = [subject.into(), fence.into(), step.into(), limit];
            driver.all(shared!("audit_list_subject").with_custom_plan(), &values).await
        }
        (None, Some(actor), _) => {
            driver.all(shared!("audit_list_actor").with_custom_plan(), &with(position, actor)).await
        }
        (None, None, Some(kind)) => {
            driver.all(shared!("audit_list_kind").with_custom_plan(), &with(position, kind)).await
        }
        (None, None, None) => driver.all(shared!("audit_list").with_custom_plan(), &position).await,
    }
}

/// Adds the value of a filter to a position.
fn with<'v>(position: [SqlValue<'v>; 4], value: &'v str) -> [SqlValue<'v>; 5] {
    let [fence, message, step, limit] = position;
    [fence, message, step, limit, value.into()]
}

/// Reads the seals of those entries that are sealed.
async fn seals(driver: &Driver, entries: &[AuditEntry]) -> Result<HashMap<EntryId, Option<u64>>, StoreError> {
    if entries.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<EntryId> = entries.iter().map(|entry| entry.id).collect();
    let rows = driver.all(paired!("audit_seals"), &[SqlValue::Rows(&trail::ids(&ids))]).await?;
    let seal = |row: &Row| Ok((entry_id(row)?, row.number_or_none("seal")?.map(i64::unsigned_abs)));
    rows.iter().map(seal).collect()
}
