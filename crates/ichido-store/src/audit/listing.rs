//! The audit trail for people: who did what to which, before and after, and whether it is sealed.
//!
//! Guarantee: a page reads at most [`MAX_PAGE`](crate::message::limits::MAX_PAGE) entries, from an index.
// SPEC F5.

use ichido_core::audit::entry::{AuditEntry, EntryId};
use ichido_core::audit::key_record::KEYS_SEALED;
use uuid::Uuid;

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
    pub(crate) const fn is_indexed(&self) -> bool {
        matches!((&self.actor, &self.kind, &self.subject), (_, None, None) | (None, Some(_), None))
    }

    pub(crate) fn selects(&self, entry: &AuditEntry) -> bool {
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
