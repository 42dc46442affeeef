//! The audit entries of a bulk operation, through which another process can stop it.

use ichido_core::lifecycle::Decision;
use ichido_store::Store;
use ichido_store::action::AuditAction;
use ichido_store::dead_letter::{DeadLetterFilter, Disposition};
use ichido_store::error::StoreError;
use uuid::Uuid;

use super::bulk::{BulkAction, BulkEnd, BulkOperation, BulkReport};
use super::claim::LiveBulks;
use super::preflight::Preflight;

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
        let reason = self.reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
        let detail =
            format!("{}; {} of {}{reason}", describe_filter(&self.filter), found.eligible, found.matched);
        self.store.actions().record(&self.action(operation, ("none", STARTED), detail)).await
    }

    pub(super) async fn record_end(&self, report: &BulkReport) -> Result<(), StoreError> {
        let to = match &report.ended {
            BulkEnd::Done => "ended",
            BulkEnd::Stopped { .. } => "stopped",
            BulkEnd::Halted { .. } => "halted",
            BulkEnd::Abandoned => "abandoned",
            BulkEnd::Failed => "failed",
        };
        let BulkReport { moved, refused, gone, .. } = report;
        let refused: u64 = refused.values().sum();
        let detail = format!("moved={moved} refused={refused} gone={gone}");
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

/// Formats a filter: `state=dead queue=orders`.
fn describe_filter(filter: &DeadLetterFilter) -> String {
    let DeadLetterFilter {
        state,
        disposition,
        queue,
        code,
        effect,
        identity,
        since_from,
        since_before,
        text,
        group,
    } = filter;
    let mut words = vec![format!("state={}", state.as_str())];
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}={value}")));
    };
    add("disposition", (*disposition != Disposition::Open).then(|| disposition.as_str().to_owned()));
    add("queue", queue.as_ref().map(|queue| queue.as_str().to_owned()));
    add("error", code.map(|code| code.as_str().to_owned()));
    add("effect", effect.map(|effect| format!("{effect:?}")));
    add("identity", identity.clone());
    add("from", since_from.map(|moment| moment.to_string()));
    add("before", since_before.map(|moment| moment.to_string()));
    add("group", group.map(|group| group.to_string()));
    add("text", text.as_ref().map(|text| format!("{text:?}")));
    words.join(" ")
}
