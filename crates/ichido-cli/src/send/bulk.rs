//! Sends many messages, one per line.
//!
//! Guarantee: each line is independent and has one result, in input order. The number of lines in flight is bounded.
//! A line that is refused, or that the server fails at, does not hold up others. The command stops on a signal, if
//! the server or store cannot be reached, fails several times in a row, or refuses everything. Lines may be sent
//! again: each message exists once under its key.

use std::collections::VecDeque;

use ichido::worker::QueueConfig;
use ichido_core::verdict::Effect;
use ichido_server::body_key;
use tokio::task::JoinHandle;

use super::line::{self, KeyFrom, LineError, LineMessage};
use super::lines::{InputLine, LineReader};
use super::outcome::{RefusalScope, SendCounts, SendOutcome, SendRefusal};
use super::sender::Sender;
use crate::bar::Bar;
use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;

/// The hint for every early end.
const SAFE: &str = "sending the same lines again is safe: no message is enqueued twice";

/// Enqueues the messages of an NDJSON input.
pub(super) struct BulkSend {
    pub(super) sender: Sender,
    pub(super) key_from: KeyFrom,
    /// The maximum number of lines in flight.
    pub(super) parallel: usize,
    pub(super) json: bool,
    /// The queue's configuration, if there is one.
    pub(super) queue: Option<QueueConfig>,
}

/// A line in flight.
struct PendingLine {
    number: u64,
    bytes: u64,
    task: JoinHandle<SendOutcome>,
}

/// Why no more lines are read.
enum StopReason {
    /// The input has ended.
    End,
    /// Every further line would fail like this one.
    Failed { number: u64, outcome: SendOutcome },
    /// A signal arrived.
    Interrupted,
    /// The input cannot be read.
    Unreadable(std::io::Error),
}

impl BulkSend {
    /// Sends all lines.
    pub(super) async fn run(&self, mut lines: LineReader, bar: Bar) -> Result<(), Exit> {
        let mut signals = Signals::listen()?;
        let mut counts = SendCounts::default();
        let mut in_flight: VecDeque<PendingLine> = VecDeque::with_capacity(self.parallel);
        let mut stop: Option<StopReason> = None;
        let mut warned = false;
        while stop.is_none() || !in_flight.is_empty() {
            let has_room = stop.is_none() && in_flight.len() < self.parallel;
            tokio::select! {
                biased;
                () = signals.next() => match stop {
                    Some(StopReason::Interrupted) => break,
                    _ => stop = Some(StopReason::Interrupted),
                },
                (number, bytes, outcome) = first_outcome(&mut in_flight), if !in_flight.is_empty() => {
                    in_flight.pop_front();
                    counts.add(&outcome);
                    bar.print_line(&if self.json { outcome.to_json(Some(number), None) } else { outcome.render(&line_label(number)) })?;
                    bar.set(None, bytes, counts.to_string());
                    if stop.as_ref().is_none_or(|stop| matches!(stop, StopReason::End)) && affects_all(&outcome, &counts) {
                        stop = Some(StopReason::Failed { number, outcome });
                    }
                }
                line = lines.next(), if has_room => match line {
                    Ok(Some(line)) => in_flight.push_back(self.send(line, &mut warned)),
                    Ok(None) => stop = Some(StopReason::End),
                    Err(error) => stop = Some(StopReason::Unreadable(error)),
                },
            }
        }
        drop(bar);
        finish(stop.unwrap_or(StopReason::End), &counts)
    }

    /// Starts sending a line.
    fn send(&self, line: InputLine, warned: &mut bool) -> PendingLine {
        let InputLine { number, text, bytes } = line;
        let task = match parse_line(text, &self.key_from) {
            Ok(item) => {
                self.warn(&item, warned);
                let sender = self.sender.clone();
                tokio::spawn(async move { sender.enqueue(item).await })
            }
            Err(refused) => tokio::spawn(std::future::ready(SendOutcome::Refused(refused))),
        };
        PendingLine { number, bytes, task }
    }

    /// Warns once: all lines are of one kind.
    fn warn(&self, item: &LineMessage, warned: &mut bool) {
        let warning = self
            .queue
            .as_ref()
            .and_then(|queue| body_key::warning(&queue.name, queue.outbound_key, &item.body));
        if let Some(warning) = warning.filter(|_| !*warned) {
            *warned = true;
            out::eprint(&warning);
        }
    }
}

/// Parses a line, or returns why it is refused.
pub(super) fn parse_line(text: Option<Vec<u8>>, key_from: &KeyFrom) -> Result<LineMessage, SendRefusal> {
    let refused = |error: LineError| SendRefusal::message(error.code(), error.to_string());
    let text = text.ok_or(LineError::TooLong).map_err(refused)?;
    let item = line::parse(&text, key_from).map_err(refused)?;
    if body_key::agrees(&item.key, &item.body).is_err() {
        let detail = "the body's idempotency_key differs from the line's key; make them equal, or remove it from the body";
        return Err(SendRefusal::message("key_mismatch", detail));
    }
    Ok(item)
}

/// Waits for the outcome of the oldest line in flight.
async fn first_outcome(in_flight: &mut VecDeque<PendingLine>) -> (u64, u64, SendOutcome) {
    let Some(PendingLine { number, bytes, task }) = in_flight.front_mut() else {
        return std::future::pending().await;
    };
    let outcome = task.await.unwrap_or_else(|error| SendOutcome::Unknown {
        effect: Effect::Unknown,
        detail: format!("sending the line failed: {error}"),
    });
    (*number, *bytes, outcome)
}

/// Returns whether the next line would fail the same way.
fn affects_all(outcome: &SendOutcome, counts: &SendCounts) -> bool {
    match outcome {
        SendOutcome::Refused(refused) => refused.scope == RefusalScope::All,
        // The server was not reached or is overloaded, which says nothing about this line.
        SendOutcome::Unknown { effect: Effect::NotDone, .. } => true,
        _ => counts.is_lost_in_a_row(),
    }
}

/// Labels a result with its line, after a leading space.
pub(super) fn line_label(number: u64) -> String {
    format!(" line {number}")
}

fn finish(stop: StopReason, counts: &SendCounts) -> Result<(), Exit> {
    match stop {
        StopReason::End if 0 < counts.unknown => {
            Err(Exit::Unreachable(format!("some lines have no outcome: {counts}; {SAFE}")))
        }
        StopReason::End => {
            out::eprint(&format!("ichido: {counts}\n"));
            // The results name the failed lines.
            if counts.is_success() { Ok(()) } else { Err(Exit::Findings) }
        }
        StopReason::Failed { number, outcome } => {
            let why = format!(
                "{}; no further line was sent after {counts}; {SAFE}",
                outcome.render(&line_label(number))
            );
            Err(if matches!(outcome, SendOutcome::Unknown { .. }) {
                Exit::Unreachable(why)
            } else {
                Exit::Failed(why)
            })
        }
        StopReason::Interrupted => Err(Exit::Interrupted(format!("stopped after {counts}; {SAFE}"))),
        StopReason::Unreadable(error) => {
            Err(Exit::Failed(format!("cannot read further lines: {error}; after {counts}; {SAFE}")))
        }
    }
}
