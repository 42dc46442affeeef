//! `ichido send --offline-queue FILE`: stores messages in a file, and sends them from there.
//!
//! Guarantee: a message reported as `queued` is on disk. Messages are sent in order, under their keys, until the
//! server has accepted or the queue has marked them. If the command is killed and run again, with or without the same
//! messages, each exists once at the server. The last report about a message holds.

mod input;
mod sending;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ichido_client::queue::{
    AcceptOutcome, DrainOutcome, EntryId, Event, EventKind, OfflineQueue, QueueError, SendSettings, State,
};
use ichido_client::{Action, Client};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::Args;
use super::bulk::line_label;
use super::outcome::{RefusalScope, SendCounts, SendOutcome, SendRefusal};
use super::sender::{SendTransport, Sender, is_about, outcome_of_answer, refusal};
use super::settings::Settings;
use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use input::{Batches, Input, NumberedMessage};

/// Stores messages in the file, and sends its entries.
pub(super) async fn run(args: &Args) -> Result<(), Exit> {
    let settings = Settings::resolve(args).await?;
    let sender = settings.sender(args).await?;
    let (Some(file), SendTransport::Server { url, client }) = (&args.offline_queue, sender.transport.clone())
    else {
        // The settings allow nothing else.
        return Err(Exit::invalid("--offline-queue", "requires a running server, not a store"));
    };
    let input = Input::open(args).await?;
    let queue = OfflineQueue::open(file).await;
    let queue = queue.map_err(|error| Exit::Failed(format!("{}: {error}", file.display())))?;
    let destination = url.trim_end_matches('/').to_owned();
    let terms = SendSettings {
        keeps_keys_for: settings.keeps_keys_for,
        proof: Some(is_about),
        ..SendSettings::default()
    };
    let offline = Offline {
        file,
        queue: &queue,
        destination: &destination,
        sender: &sender,
        json: args.json,
        is_one: args.key.is_some(),
    };
    let ended = offline.run(input, &settings, client, terms).await;
    queue.close().await;
    ended
}

struct Offline<'a> {
    file: &'a Path,
    queue: &'a OfflineQueue,
    destination: &'a str,
    sender: &'a Sender,
    json: bool,
    /// Whether there is one message, which has no line number.
    is_one: bool,
}

/// The state of a run.
struct OfflineRun {
    counts: SendCounts,
    /// Whether the only message's key was used for another body.
    has_key_conflict: bool,
    /// The last error from the server.
    last_error: Option<String>,
    /// The line numbers of each entry in this run.
    lines: HashMap<EntryId, Vec<u64>>,
    /// Why sending stops, if every further entry would fail the same way.
    ends: Option<Exit>,
    is_interrupted: bool,
}

impl Offline<'_> {
    async fn run(
        &self,
        input: Input,
        settings: &Settings,
        client: Arc<Client>,
        terms: SendSettings,
    ) -> Result<(), Exit> {
        let mut signals = Signals::listen()?;
        let (read_all, is_all_read) = watch::channel(false);
        let stop = watch::Sender::new(false);
        let (event_sender, mut events) = mpsc::unbounded_channel();
        let mut sending = self.start(client, terms, is_all_read, stop.clone(), event_sender).await?;
        let mut run = OfflineRun {
            counts: SendCounts::offline(),
            has_key_conflict: false,
            last_error: None,
            lines: HashMap::new(),
            ends: None,
            is_interrupted: false,
        };
        self.accept_batch(input.first, &mut run).await?;
        let mut batches = Batches::new(input.lines);
        let (mut is_reading, mut is_sending) = (true, sending.is_some());
        while is_reading || is_sending {
            tokio::select! {
                biased;
                () = signals.next() => {
                    // A second signal does not wait for the attempt in flight, which is marked in the file.
                    if run.is_interrupted {
                        break;
                    }
                    run.is_interrupted = true;
                    is_reading = false;
                    stop.send_replace(true);
                }
                event = events.recv(), if is_sending => match event {
                    Some(event) => {
                        self.report_event(&event, &mut run)?;
                        if run.ends.is_some() {
                            is_reading = false;
                            stop.send_replace(true);
                        }
                    }
                    None => is_sending = false,
                },
                batch = batches.next(&settings.key_from), if is_reading => match batch {
                    Ok(batch) if batch.is_empty() => is_reading = false,
                    Ok(batch) => self.accept_batch(batch, &mut run).await?,
                    Err(error) => {
                        run.ends = Some(Exit::Failed(format!("cannot read further lines: {error}")));
                        is_reading = false;
                    }
                },
            }
            if !is_reading {
                read_all.send_replace(true);
            }
        }
        let outcome = match sending.as_mut() {
            None => None,
            Some(_) if is_sending => Some(DrainOutcome::Stopped),
            Some(task) => Some(self.join_sender(task).await?),
        };
        self.finish(run, outcome).await
    }

    /// Starts the sender as a task; returns `None` if another process is sending.
    async fn start(
        &self,
        client: Arc<Client>,
        terms: SendSettings,
        is_all_read: watch::Receiver<bool>,
        stop: watch::Sender<bool>,
        event_sender: mpsc::UnboundedSender<Event>,
    ) -> Result<Option<JoinHandle<Result<DrainOutcome, QueueError>>>, Exit> {
        match self.queue.sender(self.destination, client, terms).await {
            Ok(sender) => Ok(Some(tokio::spawn(sending::send_all(sender, is_all_read, stop, event_sender)))),
            Err(QueueError::SenderBusy) => Ok(None),
            Err(QueueError::Settings(_)) => Err(Exit::invalid(
                "--keeps-keys-for",
                "must be longer than the timeout of an attempt, 30s; servers keep keys for 72h by default",
            )),
            Err(error) => Err(self.failed(&error)),
        }
    }

    async fn join_sender(
        &self,
        task: &mut JoinHandle<Result<DrainOutcome, QueueError>>,
    ) -> Result<DrainOutcome, Exit> {
        let ended = task.await.map_err(|error| Exit::Failed(format!("sending failed: {error}")))?;
        ended.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &QueueError) -> Exit {
        Exit::Failed(format!("{}: {error}", self.file.display()))
    }

    /// Stores a batch in the file at once, and reports each message as queued.
    async fn accept_batch(&self, batch: Vec<NumberedMessage>, run: &mut OfflineRun) -> Result<(), Exit> {
        let mut actions: Vec<Action> = Vec::new();
        let mut numbers = Vec::new();
        let mut results: Vec<(u64, Option<EntryId>, SendOutcome)> = Vec::new();
        for NumberedMessage { number, item } in batch {
            let action = item.and_then(|item| {
                let action = self.sender.action(item);
                action.map_err(|error| SendRefusal::message("request_invalid", error.to_string()))
            });
            match action {
                Ok(action) => {
                    actions.push(action);
                    numbers.push(number);
                }
                Err(why) => results.push((number, None, SendOutcome::Refused(why))),
            }
        }
        let accepted = self.queue.accept(self.destination, &actions).await;
        let accepted = accepted.map_err(|error| self.not_accepted(&error, &numbers))?;
        for (number, accepted) in numbers.into_iter().zip(accepted) {
            let (id, outcome) = outcome_of_accepted(accepted);
            if matches!(outcome, SendOutcome::Queued) {
                run.lines.entry(id).or_default().push(number);
            }
            results.push((number, Some(id), outcome));
        }
        // In the order of the lines.
        results.sort_by_key(|(number, _, _)| *number);
        for (number, id, outcome) in results {
            self.report(Some(number), id, &outcome, run)?;
        }
        Ok(())
    }

    fn not_accepted(&self, error: &QueueError, numbers: &[u64]) -> Exit {
        let from = match numbers.first() {
            Some(number) if !self.is_one => format!(" from line {number} on"),
            _ => String::new(),
        };
        Exit::Failed(format!(
            "{}: {error}; nothing was queued{from}, earlier messages stay queued",
            self.file.display()
        ))
    }

    fn report_event(&self, event: &Event, run: &mut OfflineRun) -> Result<(), Exit> {
        let outcome = match &event.kind {
            EventKind::Sent { answer } => outcome_of_answer(answer, &event.key),
            EventKind::Failed { refused: Some(answer), .. } => SendOutcome::Refused(refusal(answer)),
            EventKind::Failed { reason, refused: None } => SendOutcome::Failed(reason.clone()),
            EventKind::Held { reason } => SendOutcome::Held(reason.clone()),
            // A waiting message was reported as queued, and still is.
            EventKind::Waits { reason, .. } | EventKind::Offline { reason, .. } => {
                run.last_error = Some(reason.text.clone());
                return Ok(());
            }
            EventKind::InFlight { .. } => return Ok(()),
        };
        let numbers = run.lines.remove(&event.entry).unwrap_or_default();
        self.report(numbers.first().copied(), Some(event.entry), &outcome, run)?;
        // The same action on further lines is the same message.
        for number in numbers.iter().skip(1) {
            self.report(Some(*number), Some(event.entry), &outcome.for_repeated_line(), run)?;
        }
        let scope = outcome.refusal_scope();
        if scope == Some(RefusalScope::All) || run.counts.is_lost_in_a_row() {
            let why = format!("{}; no further entry was sent", outcome.render(""));
            run.ends = Some(if scope.is_some() { Exit::Failed(why) } else { Exit::Unreachable(why) });
        }
        Ok(())
    }

    fn report(
        &self,
        number: Option<u64>,
        id: Option<EntryId>,
        outcome: &SendOutcome,
        run: &mut OfflineRun,
    ) -> Result<(), Exit> {
        run.counts.add(outcome);
        if self.is_one && number.is_some() {
            run.has_key_conflict |= outcome.refusal_scope() == Some(RefusalScope::Key);
        }
        if self.json {
            return out::print_line(outcome.to_json(number.filter(|_| !self.is_one), id));
        }
        out::print_line(outcome.render(&match (number, id) {
            (Some(number), _) if !self.is_one => line_label(number),
            (None, Some(id)) => format!(" entry {id}"),
            _ => String::new(),
        }))
    }

    /// Determines the command's result from the contents of the file.
    async fn finish(&self, run: OfflineRun, outcome: Option<DrainOutcome>) -> Result<(), Exit> {
        let counts = self.queue.counts().await.map_err(|error| self.failed(&error))?;
        let of = |states: &[State]| -> u64 {
            let ours = counts.iter().filter(|count| count.destination == self.destination);
            ours.filter(|count| states.contains(&count.state)).map(|count| count.entries).sum()
        };
        let (waiting, marked) = (of(&[State::Waiting, State::Sending]), of(&[State::Failed, State::Held]));
        let file = self.file.display();
        let elsewhere: u64 = counts
            .iter()
            .filter(|count| count.destination != self.destination)
            .map(|count| count.entries)
            .sum();
        if 0 < elsewhere {
            out::eprint(&format!(
                "ichido: {elsewhere} more entries in {file} are for other servers; run `ichido offline list` to see them\n"
            ));
        }
        let output = run.counts.to_string();
        let left = format!(
            "{output}; {waiting} wait in {file}; run the command again, with the same messages or none: no message is enqueued twice"
        );
        if run.is_interrupted {
            return Err(Exit::Interrupted(format!("stopped after {left}")));
        }
        if let Some(end) = run.ends {
            return Err(match end {
                Exit::Failed(why) => Exit::Failed(format!("{why}; {left}")),
                Exit::Unreachable(why) => Exit::Unreachable(format!("{why}; {left}")),
                end => end,
            });
        }
        if 0 < waiting {
            let why = match (outcome, run.last_error) {
                (None, _) => "another process is sending from this file".to_owned(),
                (Some(DrainOutcome::Waits(wait)), _) => {
                    format!("the server asks to retry after {} s", wait.as_secs())
                }
                (_, Some(trouble)) => format!("the server cannot be reached: {trouble}"),
                (_, None) => "the server cannot be reached".to_owned(),
            };
            return Err(Exit::Unreachable(format!("{}; {left}", ichido_core::text::visible(&why))));
        }
        if run.has_key_conflict {
            return Err(Exit::Conflict(format!(
                "{output}; the key was used for another body; use a new key for a new action"
            )));
        }
        out::eprint(&format!("ichido: {output}\n"));
        if 0 < marked {
            out::eprint(&format!(
                "ichido: {marked} entries in {file} failed or are held; run `ichido offline list {file}` to see why\n"
            ));
        }
        // The results name the failed lines.
        if marked == 0 && run.counts.is_success() { Ok(()) } else { Err(Exit::Findings) }
    }
}

/// Returns the outcome of storing a message in the file.
fn outcome_of_accepted(accepted: AcceptOutcome) -> (EntryId, SendOutcome) {
    match accepted {
        AcceptOutcome::Same { id, state: State::Failed, reason: Some(reason) } => {
            (id, SendOutcome::Failed(reason))
        }
        AcceptOutcome::Same { id, state: State::Held, reason: Some(reason) } => {
            (id, SendOutcome::Held(reason))
        }
        AcceptOutcome::New { id } | AcceptOutcome::Same { id, .. } => (id, SendOutcome::Queued),
        AcceptOutcome::Conflict { id } => {
            let detail = format!(
                "entry {id} of the file uses the key for another body; use a new key for a new action"
            );
            let code = Some("key_conflict".to_owned());
            (id, SendOutcome::Refused(SendRefusal { code, detail, scope: RefusalScope::Key }))
        }
    }
}
