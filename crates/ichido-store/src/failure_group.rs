//! Failure groups: the open dead letters of one queue with the same error.
//!
//! Guarantee: a change of a group is written in the transaction that writes or removes its letter, and folded into the group
//! once. A folded group's count is the number of its open letters, dead or parked. Ten thousand failures with three causes are
//! three groups.
//!
//! Every failure writes a delta instead of updating its group's row, which would be a hot lock.
//! [`FailureGroups::fold`](crate::FailureGroups::fold) folds them, and workers call it every few seconds: until then, a group
//! shows what was last folded. [`ichido_core::failure_group`] decides which letters form a group, and its state.
// SPEC E3, E4.

use std::collections::BTreeMap;

use ichido_core::failure_group::{FailureFingerprint, GroupEvent, GroupStanding, GroupState};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::action::AuditAction;
use crate::columns::Columns;
use crate::dead_letter::Disposition;
use crate::error::StoreError;
use crate::group_key::GroupKey;
use crate::message::QueueName;
use crate::placement::RowChanges;
use crate::rows::queue_name;

/// The maximum number of letters that are samples of a group.
pub const MAX_SAMPLES: u32 = 5;

/// A failure group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// Its id, which follows from queue, code and template.
    pub id: Uuid,
    /// The queue.
    pub queue: QueueName,
    /// The code of the error.
    pub code: Option<String>,
    /// The error's text without its values and without quoted text.
    pub template: String,
    /// How many open letters it has, dead or parked.
    pub count: i64,
    /// When its first message failed.
    pub first_seen: Timestamp,
    /// When its last message failed.
    pub last_seen: Timestamp,
    /// Whether a person takes care of it, and since when.
    pub standing: GroupStanding,
    /// The last person who acknowledged or resolved it.
    pub changed_by: Option<String>,
}

/// The position of a group in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPosition {
    /// How much it needs a person.
    pub urgency: u8,
    /// When its last message failed.
    pub last_seen: Timestamp,
    /// Its id.
    pub id: Uuid,
}

impl FailureGroup {
    /// Returns the fingerprint of its error, which is the same in every queue.
    pub fn fingerprint(&self) -> FailureFingerprint {
        FailureFingerprint::new(self.code.as_deref(), &self.template)
    }

    /// Returns its position in the list.
    pub const fn position(&self) -> GroupPosition {
        GroupPosition { urgency: self.standing.state.urgency(), last_seen: self.last_seen, id: self.id }
    }

    /// Adds a change.
    fn add(&mut self, delta: &FoldedDelta) {
        self.count += i64::from(delta.by);
        self.first_seen = self.first_seen.min(delta.at);
        if delta.has_failed {
            self.last_seen = self.last_seen.max(delta.at);
            self.standing = self.standing.after(GroupEvent::Failed, delta.at);
        }
    }
}

/// A change of a group, to be written with the letters that cause it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupDelta<'c> {
    pub(crate) key: &'c GroupKey,
    pub(crate) by: i32,
    pub(crate) has_failed: bool,
}

/// Returns how a set of steps changes groups. Only open letters are counted: closed ones wait for nobody.
pub(crate) fn deltas(changes: &RowChanges) -> Vec<GroupDelta<'_>> {
    let mut deltas: BTreeMap<Uuid, GroupDelta<'_>> = BTreeMap::new();
    let arrived = changes
        .letters
        .iter()
        .filter(|letter| letter.row.disposition == Disposition::Open)
        .map(|letter| (&letter.row.group, 1, letter.row.is_new_failure));
    let left = changes.left_groups.iter().map(|key| (key, -1, false));
    for (key, by, has_failed) in arrived.chain(left) {
        let delta = deltas.entry(key.id).or_insert(GroupDelta { key, by: 0, has_failed: false });
        delta.by += by;
        delta.has_failed |= has_failed;
    }
    deltas.into_values().filter(|delta| delta.by != 0 || delta.has_failed).collect()
}

/// A stored change of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoldedDelta {
    pub(crate) key: GroupKey,
    pub(crate) by: i32,
    pub(crate) has_failed: bool,
    pub(crate) at: Timestamp,
}

/// Adds changes, oldest first, to their groups.
pub(crate) fn fold(groups: &mut [FailureGroup], mut deltas: Vec<FoldedDelta>) {
    deltas.sort_by_key(|delta| delta.at);
    let mut groups: BTreeMap<Uuid, &mut FailureGroup> =
        groups.iter_mut().map(|group| (group.id, group)).collect();
    for delta in &deltas {
        if let Some(group) = groups.get_mut(&delta.key.id) {
            group.add(delta);
        }
    }
}

/// Returns the first change of each group, by id.
pub(crate) fn first_of_each(deltas: &[FoldedDelta]) -> Vec<&FoldedDelta> {
    let mut first: BTreeMap<Uuid, &FoldedDelta> = BTreeMap::new();
    for delta in deltas {
        let known = first.entry(delta.key.id).or_insert(delta);
        if delta.at < known.at {
            *known = delta;
        }
    }
    first.into_values().collect()
}

pub(crate) fn delta_row(row: &impl Columns) -> Result<FoldedDelta, StoreError> {
    let key = GroupKey {
        id: row.uuid("group_id")?,
        queue: queue_name(row.text("queue")?)?,
        code: row.text_or_none("code")?,
        template: row.text("template")?.to_owned(),
    };
    Ok(FoldedDelta {
        key,
        by: row.count("delta")?,
        has_failed: row.truth("failed")?,
        at: row.timestamp("at")?,
    })
}

pub(crate) fn group_row(row: &impl Columns) -> Result<FailureGroup, StoreError> {
    let state = GroupState::parse(row.text("state")?)
        .ok_or_else(|| StoreError::Corrupt { table: "failure_groups", detail: "unknown state".to_owned() })?;
    Ok(FailureGroup {
        id: row.uuid("id")?,
        queue: queue_name(row.text("queue")?)?,
        code: row.text_or_none("code")?,
        template: row.text("template")?.to_owned(),
        count: row.number("count")?,
        first_seen: row.timestamp("first_seen")?,
        last_seen: row.timestamp("last_seen")?,
        standing: GroupStanding { state, since: row.timestamp("state_since")? },
        changed_by: row.text_or_none("state_by")?,
    })
}

impl AuditAction {
    /// A person acknowledged or resolved a failure group.
    pub(crate) fn group_changed(group: &FailureGroup, to: GroupState, by: &str) -> Self {
        Self {
            subject: group.id,
            about: format!("failure group {}", group.id),
            kind: format!("group_{to}"),
            from: group.standing.state.as_str().to_owned(),
            to: to.as_str().to_owned(),
            actor: Some(by.to_owned()),
            detail: Some(format!(
                "{} {} {}",
                group.queue.as_str(),
                group.code.as_deref().unwrap_or("no code"),
                group.template
            )),
        }
    }
}
