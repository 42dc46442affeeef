//! Many letters at once at a server: an operation there, told first, confirmed, watched from here, stopped by Ctrl-C.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use super::{BulkArgs, DISCARD, Letter, Served};
use crate::dead::bulk::asked_to_go_on;
use crate::dead::once_each;
use crate::exit::Exit;
use crate::out;
use crate::reach;
use crate::signals::Signals;
use crate::table::table;

/// How often an operation is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The states in which it still runs, or may.
const GOES_ON: [&str; 2] = ["begun", "stopping"];

#[derive(Deserialize)]
struct Begun {
    preview: Preview,
    operation: Option<Operation>,
}

#[derive(Deserialize)]
struct Preview {
    matched: u64,
    would_go: u64,
    queues: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    queue: String,
    reason: String,
    count: u64,
    told: String,
}

#[derive(Deserialize)]
struct Operation {
    id: Uuid,
    action: String,
    by: String,
    state: String,
    detail: String,
    begun_at: String,
    progress: Option<Far>,
}

#[derive(Deserialize)]
struct Operations {
    operations: Vec<Operation>,
}

#[derive(Deserialize, PartialEq, Eq)]
struct Far {
    moved: u64,
    of: u64,
    watched: Option<Watched>,
}

#[derive(Deserialize, PartialEq, Eq)]
struct Watched {
    waiting: u64,
    well: u64,
    ill: u64,
}

impl Served {
    /// By ids or by a filter, as on the store.
    pub(super) async fn many(&self, mut args: BulkArgs, work: (&str, &str)) -> Result<(), Exit> {
        args.ids = once_each(args.ids);
        if work == DISCARD && args.canary {
            return Err(self.wrong("--canary", "is for a requeue; a discard sends nothing"));
        }
        if work == DISCARD && args.reason.is_none() {
            return Err(self.wrong("--reason", "say why these letters need no more attention; it is kept"));
        }
        if args.filter.is_of_parked() {
            let what = "a parked letter is decided, not requeued or discarded: ichido dead decide";
            return Err(self.wrong("--parked", what));
        }
        match (args.ids.is_empty(), args.all || !args.filter.is_all()) {
            (true, false) => {
                Err(self.wrong("ID", "name letters by their ids, by a filter such as --queue, or by --all"))
            }
            (false, true) => Err(self.wrong("ID", "name letters by their ids or by a filter, not by both")),
            (false, false) if args.canary => Err(self.wrong("--canary", "is for many letters by a filter")),
            (false, false) if args.dry_run => self.would(&args.ids, work).await,
            (false, false) => {
                let told = json!({ "reason": args.reason });
                self.each(&args.ids, work.0, &told, |id, ended| match ended {
                    Ok(_) => json!({ "id": id, "done": true, "told": work.1 }),
                    Err(why) => json!({ "id": id, "done": false, "told": why }),
                })
                .await
            }
            (true, true) => self.by_filter(&args, work).await,
        }
    }

    /// What would become of each.
    async fn would(&self, ids: &[Uuid], work: (&str, &str)) -> Result<(), Exit> {
        let mut is_refused = false;
        for id in ids {
            let refused = match self.letter(*id).await {
                Ok(Letter { discard_refused: refused, .. }) if work == DISCARD => refused,
                Ok(Letter { requeue_refused: refused, .. }) => refused,
                Err(Exit::Conflict(why) | Exit::Failed(why)) => Some(why),
                Err(exit) => return Err(exit),
            };
            is_refused |= refused.is_some();
            let told =
                refused.map_or_else(|| format!("would be {}", work.1), |why| format!("refused: {why}"));
            self.say(&id.to_string(), &json!({ "id": id.to_string(), "done": false, "told": told }))?;
        }
        if is_refused { Err(Exit::Found) } else { Ok(()) }
    }

    async fn by_filter(&self, args: &BulkArgs, work: (&str, &str)) -> Result<(), Exit> {
        let filter =
            args.filter.told().map_err(|faults| Exit::Misconfigured { command: self.command, faults })?;
        let told = |preview: bool| {
            json!({
                "action": work.0,
                "filter": filter,
                "all": args.all && args.filter.is_all(),
                "canary": args.canary,
                "reason": args.reason,
                "preview": preview,
            })
        };
        let Begun { preview, .. } = reach::read(&self.reach.post("/v1/operations", &told(true)).await?)?;
        self.tell(&preview, work)?;
        if args.dry_run || preview.would_go == 0 {
            return if preview.refused.is_empty() { Ok(()) } else { Err(Exit::Found) };
        }
        if !args.yes {
            asked_to_go_on(preview.would_go, work.1).map_err(|what| match what {
                Some(what) => self.wrong("--yes", what),
                None => Exit::Failed("nothing was done".to_owned()),
            })?;
        }
        // Before it is begun, so that a signal never finds it without a way to stop.
        let signals = Signals::listen();
        let signals =
            signals.map_err(|error| Exit::Failed(format!("signals cannot be listened for: {error}")))?;
        let begun: Begun = reach::read(&self.reach.post("/v1/operations", &told(false)).await?)?;
        match begun.operation {
            Some(operation) => self.watch(operation, &begun.preview, signals, work).await,
            None => out::line(format_args!("0 {}", work.1)),
        }
    }

    /// What would happen.
    fn tell(&self, found: &Preview, work: (&str, &str)) -> Result<(), Exit> {
        let Preview { matched, would_go, queues, errors, refused } = found;
        if self.reach.json {
            let refused = refused.iter().map(|Refused { queue, reason, count, told }| {
                json!({ "queue": queue, "reason": reason, "count": count, "told": told })
            });
            return out::line(json!({ "preflight": {
                "matched": matched,
                "would_go": would_go,
                "queues": queues,
                "errors": errors,
                "refused": refused.collect::<Vec<Value>>(),
            } }));
        }
        let mut text = format!("{would_go} of {matched} dead letters would be {}\n", work.1);
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

    /// Looks at it until it has ended. It runs at the server: whoever is not told any more has not stopped it.
    async fn watch(
        &self,
        mut operation: Operation,
        found: &Preview,
        mut signals: Signals,
        work: (&str, &str),
    ) -> Result<(), Exit> {
        let id = operation.id;
        out::aside(&format!("bulk {id}; Ctrl-C stops it, and so does: ichido dead stop {id}\n"));
        let target = format!("/v1/operations/{id}");
        let mut shown: Option<Far> = None;
        let mut is_stopped = false;
        while GOES_ON.contains(&operation.state.as_str()) {
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                () = signals.next(), if !is_stopped => {
                    is_stopped = true;
                    match self.reach.post(&format!("{target}/stop"), &json!({})).await {
                        // It may have ended meanwhile.
                        Ok(_) | Err(Exit::Conflict(_)) => {}
                        Err(exit) => return Err(exit),
                    }
                }
            }
            operation = reach::read(&self.reach.get(&target).await?)?;
            if operation.progress.is_some() && operation.progress != shown {
                shown = operation.progress.take();
                self.show_progress(shown.as_ref(), work)?;
            }
        }
        if !self.reach.json && std::io::stderr().is_terminal() {
            out::aside("\n");
        }
        self.end(&operation, found, work)
    }

    fn show_progress(&self, far: Option<&Far>, work: (&str, &str)) -> Result<(), Exit> {
        let Some(Far { moved, of, watched }) = far else { return Ok(()) };
        if self.reach.json {
            let watched = watched
                .as_ref()
                .map(|seen| json!({ "waiting": seen.waiting, "well": seen.well, "ill": seen.ill }));
            return out::line(json!({ "progress": { "moved": moved, "of": of, "watched": watched } }));
        }
        let watched = watched.as_ref().map(|Watched { waiting, well, ill }| {
            format!("; watching: {well} sent, {ill} failed, {waiting} under way")
        });
        let line = format!("{moved} of {of} {}{}", work.1, watched.unwrap_or_default());
        if std::io::stderr().is_terminal() {
            out::aside(&format!("\r\u{1b}[2K{line}"));
        } else {
            out::aside(&format!("{line}\n"));
        }
        Ok(())
    }

    fn end(&self, operation: &Operation, found: &Preview, work: (&str, &str)) -> Result<(), Exit> {
        let Operation { id, state, detail, .. } = operation;
        if self.reach.json {
            out::line(
                json!({ "report": { "operation": id.to_string(), "ended": state, "detail": detail } }),
            )?;
        } else {
            out::line(format_args!("{} of many: {state}: {detail}", work.0))?;
        }
        match state.as_str() {
            "ended" if found.refused.is_empty() => Ok(()),
            "ended" => Err(Exit::Found),
            "stopped" => Err(Exit::Cut("it was stopped; run it again to go on".to_owned())),
            "halted" => Err(Exit::Failed("the canary halted; look at why before you go on".to_owned())),
            _ => Err(Exit::Failed("it could not go on; run it again to go on with the rest".to_owned())),
        }
    }

    pub(super) async fn stop(&self, operation: Uuid) -> Result<(), Exit> {
        let asked = self.reach.post(&format!("/v1/operations/{operation}/stop"), &json!({})).await;
        match asked {
            Ok(_) if self.reach.json => {
                out::line(json!({ "operation": operation.to_string(), "asked": true }))
            }
            Ok(_) => out::line("asked; it stops before its next batch, if it still runs"),
            // As on the store, where an end is no conflict.
            Err(Exit::Conflict(why)) => Err(Exit::Failed(why)),
            Err(exit) => Err(exit),
        }
    }

    pub(super) async fn bulks(&self) -> Result<(), Exit> {
        let Operations { operations } = reach::read(&self.reach.get("/v1/operations").await?)?;
        if self.reach.json {
            return operations.into_iter().try_for_each(|bulk| {
                out::line(json!({
                    "begun": bulk.begun_at,
                    "id": bulk.id.to_string(),
                    "what": bulk.action,
                    "who": bulk.by,
                    "state": bulk.state,
                    "detail": bulk.detail,
                }))
            });
        }
        if operations.is_empty() {
            return out::line("nothing was done to many letters at once");
        }
        let rows = operations
            .into_iter()
            .map(|bulk| [bulk.begun_at, bulk.id.to_string(), bulk.action, bulk.by, bulk.state, bulk.detail]);
        out::say(&table(["BEGUN", "ID", "WHAT", "WHO", "STATE", "DETAIL"], rows))
    }
}
