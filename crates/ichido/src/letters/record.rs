//! The audit entries of a bulk operation, through which another process can stop it.

use ichido_store::Store;
use ichido_store::action::Action;
use ichido_store::error::StoreError;
use ichido_store::letter::{LetterFilter, Standing};
use uuid::Uuid;

use super::bulk::{Bulk, Ended, Report, Work};
use super::claim::Living;
use super::preflight::Preflight;

const ABOUT: &str = "letters";
const STARTED: &str = "begun";
const STOPPING: &str = "stopping";

/// The result of asking a bulk operation to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAsked {
    /// It stops before its next batch, if it still runs.
    Asked,
    /// It has ended, or its process is gone.
    Over,
    /// There is no such operation.
    Unknown,
}

/// Asks an operation in another process to stop. Records who asked.
pub async fn ask_to_stop(store: &Store, operation: Uuid, actor: &str) -> Result<StopAsked, StoreError> {
    let live = Living::look(store).await?;
    let entries = store.actions().of(operation).await?;
    if entries.first().is_some_and(|start| live.is_abandoned(operation, start.at)) {
        return Ok(StopAsked::Over);
    }
    let Some(last) = entries.last() else { return Ok(StopAsked::Unknown) };
    match last.action.to.as_str() {
        STOPPING => Ok(StopAsked::Asked),
        STARTED => {
            let action = Action {
                from: STARTED.to_owned(),
                to: STOPPING.to_owned(),
                actor: Some(actor.to_owned()),
                detail: None,
                ..last.action.clone()
            };
            store.actions().add(&action).await?;
            Ok(StopAsked::Asked)
        }
        _ => Ok(StopAsked::Over),
    }
}

impl Bulk {
    pub(super) async fn record_start(&self, operation: Uuid, found: &Preflight) -> Result<(), StoreError> {
        let reason = self.reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
        let detail =
            format!("{}; {} of {}{reason}", describe_filter(&self.filter), found.would_go, found.matched);
        self.store.actions().add(&self.action(operation, ("none", STARTED), detail)).await
    }

    pub(super) async fn record_end(&self, report: &Report) -> Result<(), StoreError> {
        let to = match &report.ended {
            Ended::Done => "ended",
            Ended::Stopped { .. } => "stopped",
            Ended::Halted { .. } => "halted",
            Ended::Abandoned => "abandoned",
            Ended::Failed => "failed",
        };
        let Report { moved, refused, gone, .. } = report;
        let refused: u64 = refused.values().sum();
        let detail = format!("moved={moved} refused={refused} gone={gone}");
        self.store.actions().add(&self.action(report.operation, (STARTED, to), detail)).await
    }

    /// Returns how it ends if it was stopped here or by another process.
    pub(super) async fn stopped(
        &self,
        operation: Uuid,
        stop: &impl Fn() -> bool,
    ) -> Result<Option<Ended>, StoreError> {
        if stop() {
            return Ok(Some(Ended::Stopped { by: None }));
        }
        let entries = self.store.actions().of(operation).await?;
        let stop_entry = entries.into_iter().find(|row| row.action.to == STOPPING);
        Ok(stop_entry.map(|row| Ended::Stopped { by: Some(row.action.actor.unwrap_or_default()) }))
    }

    fn action(&self, operation: Uuid, (from, to): (&str, &str), detail: String) -> Action {
        let kind = match self.work {
            Work::Requeue { canary: None } => "requeue",
            Work::Requeue { canary: Some(_) } => "requeue_canary",
            Work::Discard => "discard",
        };
        Action {
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
fn describe_filter(filter: &LetterFilter) -> String {
    let LetterFilter { state, standing, queue, code, effect, identity, since_from, since_before, text } =
        filter;
    let mut words = vec![format!("state={}", state.as_str())];
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}={value}")));
    };
    add("standing", (*standing != Standing::Open).then(|| standing.as_str().to_owned()));
    add("queue", queue.as_ref().map(|queue| queue.as_str().to_owned()));
    add("error", code.map(|code| code.as_str().to_owned()));
    add("effect", effect.map(|effect| format!("{effect:?}")));
    add("identity", identity.clone());
    add("from", since_from.map(|moment| moment.to_string()));
    add("before", since_before.map(|moment| moment.to_string()));
    add("text", text.as_ref().map(|text| format!("{text:?}")));
    words.join(" ")
}
