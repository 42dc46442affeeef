//! How the API shows a bulk operation: its preview, its progress and its outcome.

use std::collections::BTreeMap;

use ichido::dead_letters::{
    BulkEnd, BulkProgress, BulkReport, CanaryCounts, Preflight, RecordedStart, format_counts,
};
use ichido_store::dead_letter::{DeadLetterFilter, Disposition};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::bulk_history::RecordedBulk;
use super::super::bulk_runner::BulkStatus;

/// The preview, and the operation that was started.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct StartedOperation {
    pub preview: Preview,
    /// Null if nothing was started: it was a preview, or there is nothing to do.
    pub operation: Option<Operation>,
}

/// What a bulk operation would do.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Preview {
    /// When this was counted. An operation with this time leaves out messages that die later.
    pub as_of: String,
    /// Number of messages that match the filter; at most 30000 are counted.
    pub matched: u64,
    /// Number of them that would be requeued, discarded or decided.
    pub eligible: u64,
    /// Messages that would be requeued, discarded or decided, by queue.
    pub queues: BTreeMap<String, u64>,
    /// Messages that would be requeued, discarded or decided, by the code of their last error; an empty string if there is none.
    pub errors: BTreeMap<String, u64>,
    pub refused: Vec<RefusedLetters>,
    /// Whether more messages match than were counted. An operation is about all of them; the numbers here are those of the counted ones.
    #[serde(default)]
    #[schema(required = true)]
    pub has_more: bool,
}

/// Messages that would not be requeued, discarded or decided.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct RefusedLetters {
    pub queue: String,
    pub reason: String,
    pub count: u64,
    /// The reason for people, and how to fix it.
    pub detail: String,
}

impl Preview {
    pub(super) fn new(found: &Preflight) -> Self {
        let refused = found.refused.iter().map(|((queue, reason), count)| RefusedLetters {
            queue: queue.clone(),
            reason: reason.as_str().to_owned(),
            count: *count,
            detail: reason.to_string(),
        });
        Self {
            as_of: found.as_of.to_string(),
            matched: found.matched,
            eligible: found.eligible,
            queues: found.queues.clone(),
            errors: found.errors.clone(),
            refused: refused.collect(),
            has_more: found.has_more,
        }
    }

    /// Returns whether nothing that matches would be moved.
    pub const fn moves_nothing(&self) -> bool {
        self.eligible == 0 && !self.has_more
    }

    /// Formats how many of the messages would be moved: `4 of 5`, or `at least 4 of more than 5`.
    pub fn counts(&self) -> String {
        format_counts(self.eligible, self.matched, self.has_more)
    }

    /// Returns the progress of its operation after so many messages.
    pub const fn progress_at(&self, moved: u64) -> OperationProgress {
        OperationProgress { moved, total: self.eligible, has_more: self.has_more, canary: None }
    }

    /// Returns the word that a person types to confirm it, and what it confirms: the number, or `ALL` if it is not known.
    pub fn confirmation(&self) -> (String, String) {
        let number = self.eligible.to_string();
        if self.has_more { ("ALL".to_owned(), self.counts()) } else { (number.clone(), number) }
    }
}

/// The latest bulk operations.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct Operations {
    /// Newest first.
    pub(super) operations: Vec<Operation>,
}

/// A bulk operation.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Operation {
    pub id: Uuid,
    /// `requeue`, `requeue_canary`, `discard`, `decide_done`, `decide_not_done`, `decide_not_done_canary` or `decide_give_up`.
    pub action: String,
    /// Who started it.
    pub by: String,
    /// `started`, `stopping`, `ended`, `stopped`, `halted` (by its canary), `failed`, or `abandoned`: its process was killed. If started
    /// again, it continues with the rest.
    pub state: String,
    /// Its filter, and its outcome.
    pub detail: String,
    pub started_at: String,
    pub updated_at: String,
    /// What it was started with; null if an earlier release recorded it.
    pub start: Option<OperationStart>,
    /// Its progress; only while it runs in this server.
    pub progress: Option<OperationProgress>,
    /// Its outcome; null while it runs, if its process was killed, and if an earlier release recorded it.
    pub result: Option<OperationResult>,
}

/// What a bulk operation was started with.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct OperationStart {
    pub filter: OperationFilter,
    /// Number of messages that matched the filter; at most 30000 were counted.
    pub matched: u64,
    /// Number of them to requeue, discard or decide.
    pub eligible: u64,
    /// Whether more messages matched than were counted. The operation is about all of them.
    #[serde(default)]
    #[schema(required = true)]
    pub has_more: bool,
    pub reason: Option<String>,
}

/// The filter of a bulk operation. Another operation with this filter continues with the rest.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct OperationFilter {
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_from: Option<String>,
    /// Messages that died later are not part of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
}

impl From<DeadLetterFilter> for OperationFilter {
    fn from(filter: DeadLetterFilter) -> Self {
        Self {
            state: filter.state.to_string(),
            queue: filter.queue.map(|queue| queue.as_str().to_owned()),
            code: filter.code.map(|code| code.to_string()),
            effect: filter.effect.map(|effect| effect.to_string()),
            identity: filter.identity,
            since_from: filter.since_from.map(|moment| moment.to_string()),
            since_before: filter.since_before.map(|moment| moment.to_string()),
            text: filter.text,
            group: filter.group.map(|group| group.to_string()),
            discarded: filter.disposition == Disposition::Discarded,
            replaced: filter.disposition == Disposition::Replaced,
        }
    }
}

impl From<RecordedStart> for OperationStart {
    fn from(start: RecordedStart) -> Self {
        let RecordedStart { filter, eligible, matched, has_more, reason } = start;
        Self { filter: filter.into(), matched, eligible, has_more, reason }
    }
}

/// The progress of a bulk operation.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct OperationProgress {
    /// Number of messages requeued, discarded or decided.
    pub moved: u64,
    /// Number of messages to requeue, discard or decide when they were counted.
    pub total: u64,
    /// Whether more messages matched than were counted, so `total` is a minimum.
    #[serde(default)]
    #[schema(required = true)]
    pub has_more: bool,
    /// The messages of the canary's current step.
    pub canary: Option<CanaryResult>,
}

#[derive(Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct CanaryResult {
    /// Not finished yet.
    pub pending: u64,
    /// Sent.
    pub succeeded: u64,
    /// Failed at least once.
    pub failed: u64,
}

/// The outcome of a bulk operation.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct OperationResult {
    /// Number of messages requeued, discarded or decided.
    pub moved: u64,
    /// Number of messages that changed meanwhile.
    pub gone: u64,
    /// Messages that were not requeued, discarded or decided, by reason.
    pub refused: Vec<NotMoved>,
    /// Who requested the stop, if anybody.
    pub stopped_by: Option<String>,
    /// The messages of its canary when it halted.
    pub canary: Option<CanaryResult>,
    /// Some of the messages that failed in the canary; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_ids: Vec<Uuid>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// Messages that were not requeued, discarded or decided.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct NotMoved {
    pub reason: String,
    pub count: u64,
    /// The reason for people, and what to do about it.
    pub detail: String,
}

impl From<CanaryCounts> for CanaryResult {
    fn from(counts: CanaryCounts) -> Self {
        Self { pending: counts.pending, succeeded: counts.succeeded, failed: counts.failed }
    }
}

impl OperationProgress {
    fn new(running: &BulkProgress) -> Self {
        let BulkProgress { moved, total, has_more, canary, .. } = *running;
        Self { moved, total, has_more, canary: canary.map(CanaryResult::from) }
    }

    /// Formats how many messages were moved: `3 of 5`, or `3` if it is not known of how many.
    pub fn counts(&self) -> String {
        let Self { moved, total, has_more, .. } = self;
        if *has_more { moved.to_string() } else { format!("{moved} of {total}") }
    }
}

impl OperationResult {
    fn new(report: BulkReport, error: Option<String>) -> Self {
        let refused = report.refused.into_iter().map(|(reason, count)| NotMoved {
            reason: reason.as_str().to_owned(),
            count,
            detail: reason.to_string(),
        });
        let (stopped_by, watched, failed_ids) = match report.ended {
            BulkEnd::Stopped { by } => (by, None, Vec::new()),
            BulkEnd::Halted { watched, failed_ids } => (None, Some(watched.into()), failed_ids),
            BulkEnd::Done | BulkEnd::Abandoned | BulkEnd::Failed => (None, None, Vec::new()),
        };
        let (moved, gone) = (report.moved, report.gone);
        Self { moved, gone, refused: refused.collect(), stopped_by, canary: watched, failed_ids, error }
    }
}

impl Operation {
    pub(super) fn new(bulk: RecordedBulk, status: Option<BulkStatus>) -> Self {
        // What is recorded is known everywhere. Why an operation failed is known only here, a moment later.
        let recorded =
            |is_failed: bool| bulk.report.filter(|report| is_failed || report.ended != BulkEnd::Failed);
        let (progress, result) = match status {
            Some(BulkStatus::Finished(report, error)) => (None, Some(OperationResult::new(report, error))),
            Some(BulkStatus::Running(running)) => match recorded(false) {
                Some(report) => (None, Some(OperationResult::new(report, None))),
                None => (Some(OperationProgress::new(&running)), None),
            },
            None => (None, recorded(true).map(|report| OperationResult::new(report, None))),
        };
        Self {
            id: bulk.id,
            action: bulk.kind,
            by: bulk.by,
            state: bulk.state,
            detail: bulk.detail,
            started_at: bulk.started_at.to_string(),
            updated_at: bulk.updated_at.to_string(),
            start: bulk.start.map(OperationStart::from),
            progress,
            result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_a_minimum_says_so() {
        let mut preview = Preview {
            as_of: String::new(),
            matched: 30_000,
            eligible: 0,
            queues: BTreeMap::new(),
            errors: BTreeMap::new(),
            refused: Vec::new(),
            has_more: true,
        };
        let all = ("ALL".to_owned(), "at least 0 of more than 30000".to_owned());
        assert_eq!((preview.moves_nothing(), preview.confirmation()), (false, all));
        assert_eq!(preview.progress_at(45_000).counts(), "45000", "not of 30000");
        preview.has_more = false;
        assert_eq!((preview.moves_nothing(), preview.counts().as_str()), (true, "0 of 30000"));
        assert_eq!(preview.confirmation(), ("0".to_owned(), "0".to_owned()));
        preview.eligible = 5;
        assert_eq!(preview.progress_at(3).counts(), "3 of 5");
    }
}
