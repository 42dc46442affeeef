//! The audit trail for people: who did what to which, before and after, and whether it is sealed.
//!
//! Guarantee: a page reads at most [`MAX_PAGE`] entries, from an index.
// SPEC F5.

use std::collections::HashMap;

use ichido_core::audit::entry::{AuditEntry, EntryId};
use ichido_core::audit::key_record::KEYS_SEALED;
use uuid::Uuid;

use super::{entry, entry_id, trail};
use crate::check;
use crate::columns::{Columns as _, Row};
use crate::driver::Driver;
use crate::error::StoreError;
use crate::message::limits::MAX_PAGE;
use crate::statement::{SqlValue, paired, shared};

/// Which entries to list. An entry must match every filter that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Who acted.
    pub actor: Option<String>,
    /// The kind of action.
    pub kind: Option<String>,
    /// The subject: a message's id, or [`AuditAction::subject`](crate::action::AuditAction::subject).
    pub subject: Option<Uuid>,
}

/// A page of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<ListedEntry>,
    /// Where the next page begins; `None` on the last one. A page may be short, or empty, and still have one, because the
    /// number of entries that are read for a page is limited.
    pub next: Option<EntryId>,
}

/// An entry of the audit trail, and its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// The entry.
    pub entry: AuditEntry,
    /// Whether it is sealed.
    pub seal: SealState,
}

/// Whether an entry is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealState {
    /// It waits for a seal.
    Waiting,
    /// It is sealed.
    Sealed {
        /// The number of its seal; `None` if an earlier version of this program sealed it, on SQLite.
        seal: Option<u64>,
    },
}

impl AuditFilter {
    /// Whether an index finds these entries, so each entry that is read is listed.
    const fn is_indexed(&self) -> bool {
        matches!((&self.actor, &self.kind, &self.subject), (_, None, None) | (None, Some(_), None))
    }

    fn selects(&self, entry: &AuditEntry) -> bool {
        is_for_people(entry)
            && self.actor.as_ref().is_none_or(|actor| entry.actor.as_ref() == Some(actor))
            && self.kind.as_ref().is_none_or(|kind| entry.kind == *kind)
            && self.subject.is_none_or(|subject| entry.id.message == subject)
    }
}

/// Whether people see an entry in the trail. Entries of workers are in the history of their message, and those about sealed key
/// records are many and say nothing to people.
pub(crate) fn is_for_people(entry: &AuditEntry) -> bool {
    entry.actor.is_some() || entry.about.is_some() && entry.kind != KEYS_SEALED
}

/// Reads a page of entries before one.
pub(crate) async fn page(
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
