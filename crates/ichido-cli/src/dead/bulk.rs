//! Many letters at once: told first, confirmed, as a canary, with progress, stoppable.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ichido::letters::{
    Bulk, BulkError, Canary, Ended, Policies, Preflight, Progress, Report, StopAsked, Work, ask_to_stop,
    limits,
};
use ichido_core::lifecycle::{Event, State};
use ichido_store::Store;
use ichido_store::letter::{LetterRow, LetterStepped};
use ichido_store::message::Note;
use ichido_store::message::limits::PAGE_MAX;
use serde_json::{Value, json};
use uuid::Uuid;

use super::filter::Filter;
use super::once_each;
use super::settings::{Settings, failed};
use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use crate::table::table;

/// Which letters, and how carefully.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Their ids; or name many by a filter
    #[arg(value_parser = crate::id::parse)]
    pub(super) ids: Vec<Uuid>,
    #[command(flatten)]
    pub(super) filter: Filter,
    /// All of them, where no filter is given
    #[arg(long)]
    pub(super) all: bool,
    /// Say what would happen, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    /// For a requeue: 1 % first, then 5 %, 25 % and the rest, each when those before were sent; halts when more than one in ten fail
    #[arg(long)]
    pub(super) canary: bool,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

pub(super) async fn requeue(settings: &Settings, args: Args) -> Result<(), Exit> {
    let policies = settings.policies()?;
    let canary = args.canary.then_some(Canary::DEFAULT);
    act(settings, args, &policies, Work::Requeue { canary }).await
}

pub(super) async fn discard(settings: &Settings, args: Args) -> Result<(), Exit> {
    if args.canary {
        return Err(settings.wrong("--canary", "is for a requeue; a discard sends nothing"));
    }
    if args.reason.is_none() {
        return Err(settings.wrong("--reason", "say why these letters need no more attention; it is kept"));
    }
    act(settings, args, &Policies::default(), Work::Discard).await
}

async fn act(settings: &Settings, mut args: Args, policies: &Policies, work: Work) -> Result<(), Exit> {
    args.ids = once_each(args.ids);
    if args.filter.is_of_parked() {
        let what = "a parked letter is decided, not requeued or discarded: ichido dead decide";
        return Err(settings.wrong("--parked", what));
    }
    let narrowed = args.all || !args.filter.is_all();
    match (args.ids.is_empty(), narrowed) {
        (true, false) => {
            let what = "name letters by their ids, by a filter such as --queue, or by --all";
            return Err(settings.wrong("ID", what));
        }
        (false, true) => {
            let what = "name letters by their ids or by a filter, not by both";
            return Err(settings.wrong("ID", what));
        }
        _ => (),
    }
    let store = settings.open().await?;
    if !args.ids.is_empty() {
        return by_id(settings, &store, &args, policies, work).await;
    }
    let now = store.now().await.map_err(failed("the store cannot be read"))?;
    let filter = args.filter.read(now);
    let filter = filter.map_err(|faults| Exit::Misconfigured { command: settings.command, faults })?;
    let bulk =
        Bulk { store: &store, policies, work, filter, actor: settings.by.clone(), reason: args.reason };
    let found = bulk.preflight().await.map_err(failed("the letters cannot be read"))?;
    tell(settings, &found, work)?;
    if args.dry_run || found.would_go == 0 {
        return if found.refused.is_empty() { Ok(()) } else { Err(Exit::Found) };
    }
    if !args.yes {
        confirm(settings, found.would_go, work)?;
    }
    go(settings, &bulk, &found).await
}

/// What would happen.
fn tell(settings: &Settings, found: &Preflight, work: Work) -> Result<(), Exit> {
    if settings.json {
        let refused = found.refused.iter().map(|((queue, reason), count)| {
            json!({ "queue": queue, "reason": reason.as_str(), "count": count, "told": reason.to_string() })
        });
        return out::line(json!({ "preflight": {
            "matched": found.matched,
            "would_go": found.would_go,
            "queues": found.queues,
            "errors": found.errors,
            "refused": refused.collect::<Vec<Value>>(),
        } }));
    }
    let Preflight { matched, would_go, .. } = found;
    let mut text = format!("{would_go} of {matched} dead letters would be {}\n", done(work));
    let counted = |counts: &std::collections::BTreeMap<String, u64>| {
        let row = |(name, count): (&String, &u64)| {
            [if name.is_empty() { "(none)" } else { name }.to_owned(), count.to_string()]
        };
        counts.iter().map(row).collect::<Vec<_>>()
    };
    if 0 < *would_go {
        for (name, counts) in [("QUEUE", &found.queues), ("ERROR", &found.errors)] {
            text.push('\n');
            text += &table([name, "LETTERS"], counted(counts).into_iter());
        }
    }
    if !found.refused.is_empty() {
        let row = |((queue, reason), count): (&(String, ichido::letters::Refusal), &u64)| {
            [queue.clone(), count.to_string(), reason.to_string()]
        };
        text.push('\n');
        text += &table(["REFUSED OF", "LETTERS", "WHY"], found.refused.iter().map(row));
    }
    out::say(&text)
}

const fn done(work: Work) -> &'static str {
    match work {
        Work::Requeue { .. } => "requeued",
        Work::Discard => "discarded",
    }
}

fn confirm(settings: &Settings, count: u64, work: Work) -> Result<(), Exit> {
    asked_to_go_on(count, done(work)).map_err(|what| match what {
        Some(what) => settings.wrong("--yes", what),
        None => Exit::Failed("nothing was done".to_owned()),
    })
}

/// Asks who sits before it; nobody does where standard input is no terminal, and then this says what to do.
pub(super) fn asked_to_go_on(count: u64, done: &str) -> Result<(), Option<String>> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Some(format!("{count} letters would be {done}; say so by --yes")));
    }
    out::aside(&format!("type {count} to go on: "));
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    if read.is_err() || answer.trim() != count.to_string() { Err(None) } else { Ok(()) }
}

async fn go(settings: &Settings, bulk: &Bulk<'_>, found: &Preflight) -> Result<(), Exit> {
    let stopped = Arc::new(AtomicBool::new(false));
    let signals = Signals::listen();
    let mut signals =
        signals.map_err(|error| Exit::Failed(format!("signals cannot be listened for: {error}")))?;
    let told = Arc::clone(&stopped);
    let listening = tokio::spawn(async move {
        signals.next().await;
        told.store(true, Ordering::SeqCst);
    });
    let mut begun = false;
    let mut said = Ok(());
    let progress = |progress: Progress| {
        if !begun {
            begun = true;
            let id = progress.operation;
            out::aside(&format!("bulk {id}; Ctrl-C stops it, and so does: ichido dead stop {id}\n"));
        }
        // What cannot be said does not stop what is done; it is told at the end.
        let shown = show(settings, &progress, bulk.work);
        if said.is_ok() {
            said = shown;
        }
    };
    let ended = bulk.run(found, || stopped.load(Ordering::SeqCst), progress).await;
    listening.abort();
    if !settings.json && std::io::stderr().is_terminal() {
        out::aside("\n");
    }
    match ended {
        Ok(report) => end(settings, bulk.work, &report).and(said),
        Err(BulkError::Taken { by }) => Err(Exit::Conflict(format!(
            "the bulk {by} works on letters of the same queue, and two would count each other's; nothing was done; wait for it, or: ichido \
             dead stop {by}; one whose process was killed is given up after {} s",
            limits::LEASE.as_secs()
        ))),
        Err(BulkError::Broke { error, report }) => {
            say(settings, bulk.work, &report)?;
            let told = "it could not go on; run it again to go on with the rest";
            Err(failed(told)(error))
        }
    }
}

/// How far it is: over and over on one line of a terminal, else a line each.
fn show(settings: &Settings, progress: &Progress, work: Work) -> Result<(), Exit> {
    let Progress { of, moved, watched, .. } = progress;
    if settings.json {
        let watched =
            watched.map(|seen| json!({ "waiting": seen.waiting, "well": seen.well, "ill": seen.ill }));
        return out::line(json!({ "progress": { "moved": moved, "of": of, "watched": watched } }));
    }
    let mut line = format!("{moved} of {of} {}", done(work));
    if let Some(seen) = watched {
        // A string takes all that is written to it.
        _ = write!(line, "; watching: {} sent, {} failed, {} under way", seen.well, seen.ill, seen.waiting);
    }
    if std::io::stderr().is_terminal() {
        out::aside(&format!("\r\u{1b}[2K{line}"));
    } else {
        out::aside(&format!("{line}\n"));
    }
    Ok(())
}

fn end(settings: &Settings, work: Work, report: &Report) -> Result<(), Exit> {
    say(settings, work, report)?;
    match &report.ended {
        Ended::Done if report.refused.is_empty() => Ok(()),
        Ended::Done | Ended::Failed => Err(Exit::Found),
        Ended::Halted { watched } => Err(Exit::Failed(format!(
            "the canary halted: {} of those watched failed, {} were sent, {} had not ended; look at why before you go on",
            watched.ill, watched.well, watched.waiting
        ))),
        Ended::Stopped { by: Some(by) } => {
            Err(Exit::Cut(format!("it was stopped by {by}; run it again to go on")))
        }
        Ended::Stopped { by: None } => Err(Exit::Cut("it was stopped; run it again to go on".to_owned())),
        Ended::Abandoned => Err(Exit::Cut(
            "it was not heard of for so long that another one took its letters over; run it again to go on"
                .to_owned(),
        )),
    }
}

fn say(settings: &Settings, work: Work, report: &Report) -> Result<(), Exit> {
    let Report { operation, moved, refused, gone, ended } = report;
    if settings.json {
        let ended = match ended {
            Ended::Done => "ended",
            Ended::Stopped { .. } => "stopped",
            Ended::Halted { .. } => "halted",
            Ended::Abandoned => "abandoned",
            Ended::Failed => "failed",
        };
        let refused: Value = refused.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        return out::line(
            json!({ "report": { "operation": operation.to_string(), "moved": moved, "gone": gone, "refused": refused, "ended": ended } }),
        );
    }
    out::line(format_args!("{moved} {}", done(work)))?;
    if 0 < *gone {
        out::line(format_args!("{gone} were taken by somebody else meanwhile"))?;
    }
    refused.iter().try_for_each(|(reason, count)| out::line(format_args!("{count} refused: {reason}")))
}

/// A few letters by their names: each is answered.
async fn by_id(
    settings: &Settings,
    store: &Store,
    args: &Args,
    policies: &Policies,
    work: Work,
) -> Result<(), Exit> {
    if args.canary {
        return Err(settings.wrong("--canary", "is for many letters by a filter"));
    }
    let most = PAGE_MAX as usize;
    if most < args.ids.len() {
        return Err(settings.wrong("ID", format!("these are {}; at most {most} at once", args.ids.len())));
    }
    let cannot = failed("the letters cannot be read");
    let found = store.letter_find(&args.ids).await.map_err(&cannot)?;
    let now = store.now().await.map_err(&cannot)?;
    let judged =
        |letter: &LetterRow| work.judge(policies, letter, now).map_err(|refusal| refusal.to_string());
    let note = Note { actor: Some(settings.by.clone()), excerpt: args.reason.clone(), ..Note::default() };
    let event = |letter: &LetterRow, now| match work {
        Work::Requeue { .. } => policies.event(letter, now),
        Work::Discard => Event::Discarded,
    };
    let stepped = if args.dry_run {
        None
    } else {
        Some(store.letters_step(&args.ids, event, &note).await.map_err(failed("nothing was done"))?)
    };
    let mut refused = false;
    for (index, id) in args.ids.iter().enumerate() {
        let letter = found.iter().find(|letter| letter.id == *id);
        let told = match (stepped.as_ref().map(|stepped| stepped[index]), letter.map(&judged)) {
            (Some(LetterStepped::Now(State::Queued { .. } | State::Dead { .. })), _) => {
                Ok(done(work).to_owned())
            }
            (None, Some(Ok(()))) => Ok(format!("would be {}", done(work))),
            (_, Some(Err(why))) => Err(why),
            (Some(LetterStepped::Refused(why)), _) => Err(why.to_string()),
            _ => Err("it is no dead letter, or none any more".to_owned()),
        };
        refused |= told.is_err();
        let (is_done, told) = match told {
            Ok(told) => (true, told),
            Err(why) => (false, format!("refused: {why}")),
        };
        if settings.json {
            out::line(json!({ "id": id.to_string(), "done": is_done && !args.dry_run, "told": told }))?;
        } else {
            out::line(format_args!("{id}: {told}"))?;
        }
    }
    if refused { Err(Exit::Found) } else { Ok(()) }
}

pub(super) async fn stop(settings: &Settings, operation: Uuid) -> Result<(), Exit> {
    let store = settings.open().await?;
    let asked = ask_to_stop(&store, operation, &settings.by).await;
    match asked.map_err(failed("it could not be asked to stop"))? {
        StopAsked::Asked if settings.json => {
            out::line(json!({ "operation": operation.to_string(), "asked": true }))
        }
        StopAsked::Asked => out::line("asked; it stops before its next batch, if it still runs"),
        StopAsked::Over => Err(Exit::Failed(format!("{operation} has ended, or its process is gone"))),
        StopAsked::Unknown => Err(Exit::Failed(format!(
            "there is no bulk {operation}; `ichido dead bulks` lists those that there are"
        ))),
    }
}
