//! Many letters at once: told first, confirmed, begun.

use std::io::{BufRead as _, IsTerminal as _};

use ichido_core::text::table;
use ichido_server::serve::shown::{Begun, Preview, Refused};
use serde_json::json;

use super::Dead;
use super::steps::{Args, Work};
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{out, reach};

impl Dead {
    /// By a filter.
    pub(super) async fn many(&self, args: &Args, work: Work) -> Result<(), Exit> {
        let filter = args.filter.told()?;
        let told = |as_of: Option<&str>| {
            json!({
                "action": work.as_str(),
                "filter": filter,
                "all": args.filter.is_all(),
                "canary": args.canary,
                "reason": args.reason,
                "preview": as_of.is_none(),
                "as_of": as_of,
            })
        };
        let Begun { preview, .. } = reach::read(&self.reach.post("/v1/operations", &told(None)).await?)?;
        self.tell(&preview, work)?;
        if args.dry_run || preview.would_go == 0 {
            return if preview.refused.is_empty() { Ok(()) } else { Err(Exit::Found) };
        }
        if !args.yes {
            confirm(preview.would_go, work)?;
        }
        // Before it is begun, so that a signal never finds it without a way to stop.
        let signals = Signals::listen()?;
        // What became a letter since the count was not agreed to.
        let told = told(Some(&preview.as_of));
        let begun: Begun = reach::read(&self.reach.post("/v1/operations", &told).await?)?;
        match begun.operation {
            Some(operation) => self.watch(operation, &begun.preview, signals, work).await,
            None if self.reach.json => out::line(json!({ "report": { "moved": 0, "ended": "ended" } })),
            None => out::line(format_args!("0 {}", work.done())),
        }
    }

    /// What would happen.
    fn tell(&self, found: &Preview, work: Work) -> Result<(), Exit> {
        let Preview { matched, would_go, queues, errors, refused, .. } = found;
        if self.reach.json {
            return out::line(json!({ "preflight": {
                "matched": matched,
                "would_go": would_go,
                "queues": queues,
                "errors": errors,
                "refused": refused,
            } }));
        }
        let mut text = format!("{would_go} of {matched} dead letters would be {}\n", work.done());
        if 0 < *would_go {
            for (name, counts) in [("QUEUE", queues), ("ERROR", errors)] {
                let row = |(name, count): (&String, &u64)| {
                    [if name.is_empty() { "(none)" } else { name }.to_owned(), count.to_string()]
                };
                text.push('\n');
                text += &table([name, "LETTERS"], counts.iter().map(row));
            }
        }
        if !refused.is_empty() {
            let row =
                |refused: &Refused| [refused.queue.clone(), refused.count.to_string(), refused.told.clone()];
            text.push('\n');
            text += &table(["REFUSED OF", "LETTERS", "WHY"], refused.iter().map(row));
        }
        out::say(&text)
    }
}

/// Asks the person at the terminal. Where standard input is not a terminal there is nobody to ask.
fn confirm(count: u64, work: Work) -> Result<(), Exit> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let what = format!("{count} letters would be {}; say so by --yes", work.done());
        return Err(Exit::wrong("--yes", what));
    }
    out::aside(&format!("type {count} to go on: "));
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    if read.is_err() || answer.trim() != count.to_string() {
        return Err(Exit::Failed("nothing was done".to_owned()));
    }
    Ok(())
}
