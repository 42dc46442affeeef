//! The audit entries of a bulk operation, through which another process can stop it.

use ichido_core::lifecycle::Decision;
use ichido_store::Store;
use ichido_store::action::AuditAction;
use ichido_store::error::StoreError;
use uuid::Uuid;

use super::bulk::{BulkAction, BulkEnd, BulkOperation, BulkReport};
use super::claim::LiveBulks;
use super::preflight::Preflight;
use super::trail::RecordedStart;

const ABOUT: &str = "dead_letters";
const STARTED: &str = "started";
const STOPPING: &str = "stopping";

/// The result of asking a bulk operation to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// It stops before its next batch, if it still runs.
    Accepted,
    /// It has ended, or its process is gone.
    Ended,
    /// There is no such operation.
    Unknown,
}

/// Asks an operation in another process to stop. Records who asked.
pub async fn request_stop(store: &Store, operation: Uuid, actor: &str) -> Result<StopRequest, StoreError> {
    let live = LiveBulks::query(store).await?;
    let entries = store.actions().of(operation).await?;
    if entries.first().is_some_and(|start| live.is_abandoned(operation, start.at)) {
        return Ok(StopRequest::Ended);
    }
    let Some(last) = entries.last() else { return Ok(StopRequest::Unknown) };
    match last.action.to.as_str() {
        STOPPING => Ok(StopRequest::Accepted),
        STARTED => {
            let action = AuditAction {
                from: STARTED.to_owned(),
                to: STOPPING.to_owned(),
                actor: Some(actor.to_owned()),
                detail: None,
                ..last.action.clone()
            };
            store.actions().record(&action).await?;
            Ok(StopRequest::Accepted)
        }
        _ => Ok(StopRequest::Ended),
    }
}

impl BulkOperation {
    pub(super) async fn record_start(&self, operation: Uuid, found: &Preflight) -> Result<(), StoreError> {
        let start = RecordedStart {
            filter: self.filter_as_of(found.as_of),
            eligible: found.eligible,
            matched: found.matched,
            has_more: found.has_more,
            reason: self.reason.clone(),
        };
        self.store.actions().record(&self.action(operation, ("none", STARTED), start.to_string())).await
    }

    pub(super) async fn record_end(&self, report: &BulkReport) -> Result<(), StoreError> {
        let to = match &report.ended {
            BulkEnd::Done => "ended",
            BulkEnd::Stopped { .. } => "stopped",
            BulkEnd::Halted { .. } => "halted",
            BulkEnd::Abandoned => "abandoned",
            BulkEnd::Failed => "failed",
        };
        let detail = report.format_detail();
        self.store.actions().record(&self.action(report.operation, (STARTED, to), detail)).await
    }

    /// Returns how it ends if it was stopped here or by another process.
    pub(super) async fn stopped(
        &self,
        operation: Uuid,
        stop: &impl Fn() -> bool,
    ) -> Result<Option<BulkEnd>, StoreError> {
        if stop() {
            return Ok(Some(BulkEnd::Stopped { by: None }));
        }
        let entries = self.store.actions().of(operation).await?;
        let stop_entry = entries.into_iter().find(|row| row.action.to == STOPPING);
        Ok(stop_entry.map(|row| BulkEnd::Stopped { by: Some(row.action.actor.unwrap_or_default()) }))
    }

    fn action(&self, operation: Uuid, (from, to): (&str, &str), detail: String) -> AuditAction {
        let kind = match self.action {
            BulkAction::Requeue { canary: None } => "requeue",
            BulkAction::Requeue { canary: Some(_) } => "requeue_canary",
            BulkAction::Discard => "discard",
            BulkAction::Decide { decision: Decision::Done, .. } => "decide_done",
            BulkAction::Decide { decision: Decision::NotDone, canary: None } => "decide_not_done",
            BulkAction::Decide { decision: Decision::NotDone, canary: Some(_) } => "decide_not_done_canary",
            BulkAction::Decide { decision: Decision::GiveUp, .. } => "decide_give_up",
        };
        AuditAction {
            subject: operation,
            about: ABOUT.to_owned(),
            kind: kind.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            actor: Some(self.actor.clone()),
            detail: Some(detail),
        }
    }
}
