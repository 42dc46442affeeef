//! The history of a key: what its record says, and what was recorded about it.

use super::{Record, RecordPhase};
use crate::fence::Fence;
use crate::time::Timestamp;

/// One step in the history of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// When it happened.
    pub at: Timestamp,
    /// What happened: `claimed`, `taken_over` and `settled` follow from the record; `unknown`, `reconciled` and `decided` are
    /// entries of the audit trail.
    pub kind: String,
    /// The state before; `none` before the first claim.
    pub from: String,
    /// The state after.
    pub to: String,
    /// The fence of the claim, if it is known.
    pub fence: Option<Fence>,
    /// Who did it, if it was a person.
    pub actor: Option<String>,
}

impl KeyEntry {
    fn derived(at: Timestamp, kind: &str, to: &str, fence: Option<Fence>) -> Self {
        let (kind, to) = (kind.to_owned(), to.to_owned());
        Self { at, kind, from: String::new(), to, fence, actor: None }
    }
}

/// Returns the history of a key, oldest first: the claims and the outcome that its record holds, between the entries that were
/// `recorded` about it.
///
/// The record holds its first and its last claim. A claim between the two left no trace, because the last one replaced it.
// SPEC C5, F1.
pub fn history(
    record: &Record,
    completed_at: Option<Timestamp>,
    recorded: impl IntoIterator<Item = KeyEntry>,
) -> Vec<KeyEntry> {
    let mut entries: Vec<KeyEntry> = recorded.into_iter().collect();
    let is_first = record.first_claimed_at == record.claimed_at;
    let first = KeyEntry::derived(
        record.first_claimed_at,
        "claimed",
        "claimed",
        Some(record.fence).filter(|_| is_first),
    );
    let taken_over = || KeyEntry::derived(record.claimed_at, "taken_over", "claimed", Some(record.fence));
    let mut derived = vec![first];
    derived.extend((!is_first).then(taken_over));
    if let (RecordPhase::Settled { outcome, .. }, Some(at)) = (record.phase, completed_at) {
        // A decision settles the record in the same transaction, and says who decided. It is compared with the claim, because two
        // moments of one transaction may differ.
        let is_recorded = |entry: &KeyEntry| record.claimed_at <= entry.at && entry.to == outcome.as_str();
        if !entries.iter().any(is_recorded) {
            derived.push(KeyEntry::derived(at, "settled", outcome.as_str(), Some(record.fence)));
        }
    }
    entries.extend(derived);
    // Stable, and a claim comes before what was recorded at the same moment.
    entries.sort_by_key(|entry| (entry.at, entry.kind != "claimed" && entry.kind != "taken_over"));
    let mut state = "none".to_owned();
    for entry in &mut entries {
        if entry.from.is_empty() {
            entry.from.clone_from(&state);
        }
        state.clone_from(&entry.to);
    }
    entries
}
