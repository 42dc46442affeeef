//! Bulk operations on letters: previewed, confirmed, started.

use ichido_core::text::table;
use ichido_server::serve::views::{Preview, RefusedLetters, StartedOperation};
use serde_json::json;

use super::DeadLetters;
use super::steps::{Args, LetterAction};
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{api_client, out};

impl DeadLetters {
    /// Requeues, discards or decides the letters that match a filter.
    pub(super) async fn bulk(&self, args: &Args, action: LetterAction) -> Result<(), Exit> {
        let filter = args.filter.to_json()?;
        let body = |as_of: Option<&str>| {
            json!({
                "action": action.as_str(),
                "decision": action.decision(),
                "filter": filter,
                "all": args.filter.is_all(),
                "canary": args.canary,
                "reason": args.reason,
                "preview": as_of.is_none(),
                "as_of": as_of,
            })
        };
        let StartedOperation { preview, .. } =
            api_client::decode(&self.api.post("/v1/operations", &body(None)).await?)?;
        let noun = args.noun(action);
        self.print_preview(&preview, action, noun, args.yes && !args.dry_run)?;
        if args.dry_run || preview.moves_nothing() {
            return match (preview.refused.is_empty(), args.dry_run) {
                (true, _) => Ok(()),
                (false, true) => Err(Exit::Findings),
                (false, false) => Err(Exit::Refused),
            };
        }
        if !args.yes {
            let (word, count) = preview.confirmation();
            out::confirm(&word, &format!("{count} {noun} would be {}", action.past_tense()))?;
        }
        // Before the operation starts, so a signal can always stop it.
        let signals = Signals::listen()?;
        // Letters that died after the preview were not confirmed.
        let body = body(Some(&preview.as_of));
        let begun: StartedOperation = api_client::decode(&self.api.post("/v1/operations", &body).await?)?;
        match begun.operation {
            Some(operation) => self.watch(operation, &begun.preview, signals, action).await,
            None if self.api.json => out::print_line(json!({ "report": { "moved": 0, "ended": "ended" } })),
            None => out::print_line(format_args!("0 {}", action.past_tense())),
        }
    }

    /// Prints what would happen, or what happens now.
    fn print_preview(
        &self,
        found: &Preview,
        action: LetterAction,
        noun: &str,
        now: bool,
    ) -> Result<(), Exit> {
        let Preview { matched, eligible, queues, errors, refused, .. } = found;
        if self.api.json {
            return out::print_line(json!({ "preflight": {
                "matched": matched,
                "eligible": eligible,
                "queues": queues,
                "errors": errors,
                "refused": refused,
                "has_more": found.has_more,
            } }));
        }
        let mut text = if now && !found.moves_nothing() {
            format!("{} {} {noun}\n", action.present_tense(), found.counts())
        } else {
            format!("{} {noun} would be {}\n", found.counts(), action.past_tense())
        };
        if 0 < *eligible {
            for (name, counts) in [("QUEUE", queues), ("ERROR", errors)] {
                let row = |(name, count): (&String, &u64)| {
                    [if name.is_empty() { "(none)" } else { name }.to_owned(), count.to_string()]
                };
                text.push('\n');
                text += &table([name, "COUNT"], counts.iter().map(row));
            }
        }
        if !refused.is_empty() {
            let row = |refused: &RefusedLetters| {
                [refused.queue.clone(), refused.count.to_string(), refused.detail.clone()]
            };
            text.push('\n');
            text += &table(["QUEUE", "REFUSED", "REASON"], refused.iter().map(row));
        }
        out::print(&text)
    }
}
