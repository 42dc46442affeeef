//! A bulk operation while it runs: watched, stopped with Ctrl-C or by another process, listed.

use std::io::IsTerminal as _;
use std::time::Duration;

use ichido_core::text::table::Column;
use ichido_core::text::visible;
use ichido_server::serve::views::{CanaryResult, Operation, OperationProgress, OperationResult, Preview};
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use super::DeadLetters;
use super::steps::LetterAction;
use crate::api_client::{self, List};
use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;

/// The delay before the first poll; later polls come less and less often.
const FIRST_POLL_AFTER: Duration = Duration::from_millis(10);
/// The longest delay between polls.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Begins the line of a terminal anew.
const CLEARED_LINE: &str = "\r\u{1b}[2K";

/// Returns whether more may happen.
///
/// The record may say how the operation ended before its result is known.
fn is_running(operation: &Operation) -> bool {
    matches!(operation.state.as_str(), "started" | "stopping") || operation.progress.is_some()
}

/// Returns the progress, if it differs from what was shown last.
fn new_progress(
    operation: &mut Operation,
    found: &Preview,
    shown: Option<&OperationProgress>,
) -> Option<OperationProgress> {
    let last = operation.result.as_ref().map(|result| found.progress_at(result.moved));
    let last = last.filter(|last| shown.is_none_or(|shown| shown.moved != last.moved));
    operation.progress.take().or(last).filter(|far| shown != Some(far))
}

impl DeadLetters {
    /// Polls an operation until it has ended.
    ///
    /// Failing to print progress does not stop the operation; the error is returned at the end.
    pub(super) async fn watch(
        &self,
        mut operation: Operation,
        found: &Preview,
        mut signals: Signals,
        action: LetterAction,
    ) -> Result<(), Exit> {
        let id = operation.id;
        out::eprint(&format!("bulk operation {id}; stop it with Ctrl-C or: ichido dead stop {id}\n"));
        let target = format!("/v1/operations/{id}");
        let (mut shown, mut output) = (None, Ok(()));
        let (mut wait, mut is_stopped) = (FIRST_POLL_AFTER, false);
        loop {
            let is_running = is_running(&operation);
            if let Some(far) = new_progress(&mut operation, found, shown.as_ref()) {
                output = output.and(self.show_progress(&far, action));
                shown = Some(far);
            }
            if !is_running {
                break;
            }
            tokio::select! {
                () = sleep(wait) => wait = POLL_EVERY.min(wait * 2),
                () = signals.next(), if !is_stopped => {
                    is_stopped = true;
                    match self.api.post(&format!("{target}/stop"), &json!({})).await {
                        // It may have ended in the meantime.
                        Ok(_) | Err(Exit::Conflict(_)) => wait = FIRST_POLL_AFTER,
                        Err(exit) => return Err(exit),
                    }
                }
            }
            operation = api_client::decode(&self.api.get(&target).await?)?;
        }
        if !self.api.json && std::io::stderr().is_terminal() {
            out::eprint(CLEARED_LINE);
        }
        self.finish(&operation, !found.refused.is_empty(), action).and(output)
    }

    /// Shows the progress.
    ///
    /// A terminal shows one line that is rewritten; otherwise each update is a line.
    fn show_progress(&self, far: &OperationProgress, action: LetterAction) -> Result<(), Exit> {
        if self.api.json {
            return out::print_line(json!({ "progress": far }));
        }
        let OperationProgress { moved, total, canary: watched, .. } = far;
        if moved == total && watched.is_none() {
            // The report says it.
            return Ok(());
        }
        let watched =
            watched.as_ref().map(|CanaryResult { pending: waiting, succeeded: well, failed: ill }| {
                format!("; watching: {well} sent, {ill} failed, {waiting} in flight")
            });
        let line = format!("{} {}{}", far.counts(), action.past_tense(), watched.unwrap_or_default());
        if std::io::stderr().is_terminal() {
            out::eprint(&format!("{CLEARED_LINE}{line}"));
        } else {
            out::eprint(&format!("{line}\n"));
        }
        Ok(())
    }

    /// Prints the result, and returns it as the command's result.
    fn finish(
        &self,
        operation: &Operation,
        would_be_refused: bool,
        action: LetterAction,
    ) -> Result<(), Exit> {
        self.print_report(operation, action)?;
        let result = operation.result.as_ref();
        let is_refused = result.map_or(would_be_refused, |result| !result.refused.is_empty());
        match operation.state.as_str() {
            "ended" if is_refused => Err(Exit::Findings),
            "ended" => Ok(()),
            "halted" => Err(Exit::Failed(halted(result.and_then(|result| result.canary.as_ref())))),
            "stopped" => {
                let by = result.and_then(|result| result.stopped_by.as_ref());
                let by = by.map(|by| format!(" by {}", visible(by))).unwrap_or_default();
                Err(Exit::Interrupted(format!(
                    "the operation was stopped{by}; run the command again to continue"
                )))
            }
            "abandoned" => Err(Exit::Interrupted(
                "another operation took over, because this one stopped responding; run the command again to continue"
                    .to_owned(),
            )),
            _ => {
                let why = result.and_then(|result| result.error.as_ref());
                let why = why.map(|why| format!(": {}", visible(why))).unwrap_or_default();
                Err(Exit::Failed(format!("the operation failed; run the command again to continue{why}")))
            }
        }
    }

    fn print_report(&self, operation: &Operation, action: LetterAction) -> Result<(), Exit> {
        let Operation { id, state, detail, result, .. } = operation;
        if self.api.json {
            let refused = result.as_ref().map(|result| {
                result.refused.iter().map(|why| (why.reason.as_str(), why.count)).collect::<Value>()
            });
            return out::print_line(json!({ "report": {
                "operation": id.to_string(),
                "moved": result.as_ref().map(|result| result.moved),
                "gone": result.as_ref().map(|result| result.gone),
                "refused": refused,
                "ended": state,
                "detail": detail,
            } }));
        }
        let Some(OperationResult { moved, gone, refused, .. }) = result else {
            // This server did not run the operation, so only the record is known here.
            return out::print_line(format_args!(
                "bulk {}: {}: {}",
                action.as_str(),
                visible(state),
                visible(detail)
            ));
        };
        out::print_line(format_args!("{moved} {}", action.past_tense()))?;
        if 0 < *gone {
            out::print_line(format_args!("{gone} changed by someone else meanwhile"))?;
        }
        refused.iter().try_for_each(|why| {
            out::print_line(format_args!("{} refused: {}", why.count, visible(&why.detail)))
        })
    }

    pub(super) async fn stop(&self, operation: Uuid) -> Result<(), Exit> {
        self.api.post(&format!("/v1/operations/{operation}/stop"), &json!({})).await?;
        let asked = json!({ "operation": operation.to_string(), "asked": true });
        out::print_either(self.api.json, asked, "stop requested; the operation stops before its next batch")
    }

    pub(super) async fn operations(&self) -> Result<(), Exit> {
        let list =
            List { none: "no bulk operations", to_json, ..List::new("/v1/operations", "operations", HEAD) };
        let row = |bulk: Operation| {
            [bulk.started_at, bulk.id.to_string(), bulk.action, bulk.by, bulk.state, bulk.detail]
        };
        self.api.list(list, row).await
    }
}

const HEAD: [Column; 6] = [
    Column::past("STARTED"),
    // Whole, because `stop` needs it.
    Column::text("ID"),
    Column::text("ACTION"),
    Column::text("BY"),
    Column::state("STATE"),
    Column::free("DETAIL"),
];

/// Formats an operation of a list as JSON.
fn to_json(mut bulk: Map<String, Value>) -> Value {
    let shown_as = [
        ("started_at", "started_at"),
        ("id", "id"),
        ("what", "action"),
        ("who", "by"),
        ("state", "state"),
        ("detail", "detail"),
    ];
    shown_as.into_iter().map(|(name, member)| (name, bulk.remove(member).unwrap_or_default())).collect()
}

fn halted(watched: Option<&CanaryResult>) -> String {
    let seen = watched.map(|CanaryResult { pending: waiting, succeeded: well, failed: ill }| {
        format!(" ({ill} failed, {well} sent, {waiting} in flight)")
    });
    format!(
        "halted, because too many of the first messages failed{}; the rest is unchanged: fix the cause, then run the command again",
        seen.unwrap_or_default()
    )
}
