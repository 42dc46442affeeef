//! Bulk operations on dead letters, as the audit trail records them.

use ichido::dead_letters::{BulkEnd, BulkReport, LiveBulks, RecordedStart};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::action::ActionRow;
use ichido_store::error::StoreError;
use uuid::Uuid;

/// How many bulk operations are listed.
pub(super) const MAX_BULKS: usize = 50;
/// How many actions are read to find them.
const MAX_ACTIONS: u32 = 1_000;
/// The subject of such actions.
const ABOUT: &str = "dead_letters";
const STARTED: &str = "started";
const STOPPING: &str = "stopping";

/// A bulk operation: its start and its latest entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedBulk {
    pub(super) id: Uuid,
    pub(super) started_at: Timestamp,
    /// The time of its latest entry.
    pub(super) updated_at: Timestamp,
    /// What it does.
    pub(super) kind: String,
    /// Who started it.
    pub(super) by: String,
    pub(super) state: String,
    pub(super) detail: String,
    /// What its start recorded; `None` if an earlier release did.
    pub(super) start: Option<RecordedStart>,
    /// Its outcome; `None` if it has not recorded one, or an earlier release did.
    pub(super) report: Option<BulkReport>,
}

/// Returns the latest bulk operations, newest first.
pub(super) async fn recent(store: &Store) -> Result<Vec<RecordedBulk>, StoreError> {
    let living = LiveBulks::query(store).await?;
    Ok(from_actions(store.actions().list(None, MAX_ACTIONS).await?, &living))
}

/// Returns one bulk operation.
pub(super) async fn find(store: &Store, id: Uuid) -> Result<Option<RecordedBulk>, StoreError> {
    let living = LiveBulks::query(store).await?;
    let mut actions = store.actions().of(id).await?;
    actions.reverse();
    Ok(from_actions(actions, &living).pop())
}

/// Collects the bulk operations of these actions, which are newest first.
fn from_actions(actions: Vec<ActionRow>, living: &LiveBulks) -> Vec<RecordedBulk> {
    let mut found: Vec<RecordedBulk> = Vec::new();
    for row in actions.into_iter().filter(|row| row.action.about == ABOUT) {
        if let Some(bulk) = found.iter_mut().find(|bulk| bulk.id == row.action.subject) {
            bulk.merge_earlier(row);
        } else if found.len() == MAX_BULKS {
            break;
        } else {
            found.push(RecordedBulk::from_last(row));
        }
    }
    for bulk in &mut found {
        bulk.mark_abandoned(living);
    }
    found
}

impl RecordedBulk {
    fn from_last(row: ActionRow) -> Self {
        Self {
            id: row.action.subject,
            started_at: row.at,
            updated_at: row.at,
            detail: detail(&row),
            start: start(&row),
            report: BulkReport::parse(
                row.action.subject,
                &row.action.to,
                row.action.detail.as_deref().unwrap_or_default(),
                None,
            ),
            kind: row.action.kind,
            by: row.action.actor.unwrap_or_default(),
            state: row.action.to,
        }
    }

    /// Merges an earlier entry. The first entry has the filter, and who started it.
    fn merge_earlier(&mut self, row: ActionRow) {
        self.detail = format!("{}; {}", detail(&row), self.detail);
        if row.action.to == STARTED {
            self.start = start(&row);
            (self.started_at, self.by) = (row.at, row.action.actor.unwrap_or_default());
        } else if let (STOPPING, Some(BulkReport { ended: BulkEnd::Stopped { by }, .. })) =
            (row.action.to.as_str(), &mut self.report)
        {
            *by = row.action.actor;
        }
    }

    /// Marks an unfinished operation whose process is gone; the trail alone cannot tell.
    fn mark_abandoned(&mut self, living: &LiveBulks) {
        let is_gone = living.is_abandoned(self.id, self.started_at);
        self.state = match self.state.as_str() {
            STARTED if is_gone => "abandoned".to_owned(),
            // It was asked to stop, and has.
            STOPPING if is_gone => "stopped".to_owned(),
            _ => return,
        };
        self.detail.push_str("; its process is gone: start it again to continue with the rest");
    }
}

/// Parses the first entry.
fn start(row: &ActionRow) -> Option<RecordedStart> {
    let detail = row.action.detail.as_deref().filter(|_| row.action.to == STARTED)?;
    RecordedStart::parse(detail)
}

/// Formats the detail of an entry.
///
/// The person who stops an operation may not be the one who started it.
fn detail(row: &ActionRow) -> String {
    if row.action.to == STOPPING {
        return format!("stop requested by {}", row.action.actor.as_deref().unwrap_or_default());
    }
    row.action.detail.clone().unwrap_or_default()
}
