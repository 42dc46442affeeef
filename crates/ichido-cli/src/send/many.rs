//! Many messages, one a line.
//!
//! Guarantee: each line is on its own, and has one result, in the order of the lines. A bounded number is under way at once. A line that is
//! refused, or that the server fails at, holds up no other; a server or store that is not reached, that fails at several in a row, or that refuses
//! all, ends it, and so does a signal. What was sent before may be sent again: it stands under its key once.

use std::collections::VecDeque;
use std::fmt;

use ichido::worker::Queue;
use ichido_core::verdict::Effect;
use ichido_server::body_key;
use tokio::io::AsyncBufRead;
use tokio::task::JoinHandle;

use super::bar::Bar;
use super::came::{About, Came, Refused};
use super::line::{self, Item, KeyFrom, LineError};
use super::lines::{Line, Lines};
use super::sender::Sender;
use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;

/// What is to be known wherever it ended before its end.
pub(super) const SAFE: &str = "sending the same lines again is safe: what stands is not put in twice";

/// How many lines in a row may be left without an outcome. One that no server bears is that line's fault; so many are the server's.
pub(super) const LOST_IN_A_ROW_MAX: u32 = 3;

/// Puts the messages of lines in.
pub(super) struct Many {
    pub(super) sender: Sender,
    pub(super) key_from: KeyFrom,
    /// The most that are under way at once.
    pub(super) parallel: usize,
    pub(super) json: bool,
    /// The queue as the configuration has it, if there is one.
    pub(super) queue: Option<Queue>,
}

/// What came of how many.
#[derive(Default)]
pub(super) struct Counts {
    new: u64,
    same: u64,
    refused: u64,
    unknown: u64,
    /// How many of the last ones had no outcome.
    lost_in_a_row: u32,
    /// How much of the input that was.
    pub(super) bytes: u64,
}

/// `3 new, 1 same, 0 refused`
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} new, {} same, {} refused", self.new, self.same, self.refused)?;
        if 0 < self.unknown {
            write!(f, ", {} without an outcome", self.unknown)?;
        }
        Ok(())
    }
}

impl Counts {
    fn add(&mut self, came: &Came, bytes: u64) {
        self.bytes = bytes;
        self.lost_in_a_row = if matches!(came, Came::Unknown { .. }) { self.lost_in_a_row + 1 } else { 0 };
        match came {
            Came::New { .. } => self.new += 1,
            Came::Same { .. } => self.same += 1,
            Came::Refused(_) => self.refused += 1,
            Came::Unknown { .. } => self.unknown += 1,
        }
    }
}

/// A line that is under way.
struct Sending {
    number: u64,
    bytes: u64,
    task: JoinHandle<Came>,
}

/// Why no more lines are read.
enum Stop {
    /// There are none.
    End,
    /// Whatever follows would fare as this line did.
    Failed { number: u64, came: Came },
    /// Somebody said so.
    Told,
    /// They cannot be read.
    Unreadable(std::io::Error),
}

impl Many {
    /// Sends them all.
    pub(super) async fn run<R: AsyncBufRead + Unpin>(
        &self,
        mut lines: Lines<R>,
        bar: &Bar,
    ) -> Result<(), Exit> {
        let mut signals = Signals::listen()
            .map_err(|error| Exit::Failed(format!("signals cannot be listened to: {error}")))?;
        let mut counts = Counts::default();
        let mut under_way: VecDeque<Sending> = VecDeque::with_capacity(self.parallel);
        let mut stop: Option<Stop> = None;
        let mut warned = false;
        while stop.is_none() || !under_way.is_empty() {
            let has_room = stop.is_none() && under_way.len() < self.parallel;
            tokio::select! {
                biased;
                () = signals.next() => match stop {
                    Some(Stop::Told) => break,
                    _ => stop = Some(Stop::Told),
                },
                (number, bytes, came) = first(&mut under_way), if !under_way.is_empty() => {
                    under_way.pop_front();
                    counts.add(&came, bytes);
                    let text = if self.json { came.json(Some(number)) } else { came.text(Some(number)) };
                    bar.line(&text, &counts)?;
                    if stop.as_ref().is_none_or(|stop| matches!(stop, Stop::End)) && is_for_all(&came, &counts) {
                        stop = Some(Stop::Failed { number, came });
                    }
                }
                line = lines.next(), if has_room => match line {
                    Ok(Some(line)) => under_way.push_back(self.send(line, &mut warned)),
                    Ok(None) => stop = Some(Stop::End),
                    Err(error) => stop = Some(Stop::Unreadable(error)),
                },
            }
        }
        bar.end();
        ended(stop.unwrap_or(Stop::End), &counts)
    }

    /// Puts a line on its way.
    fn send(&self, line: Line, warned: &mut bool) -> Sending {
        let Line { number, text, bytes } = line;
        let task = match item(text, &self.key_from) {
            Ok(item) => {
                self.warn(&item, warned);
                let sender = self.sender.clone();
                tokio::spawn(async move { sender.put(item.key, item.body).await })
            }
            Err(refused) => tokio::spawn(std::future::ready(Came::Refused(refused))),
        };
        Sending { number, bytes, task }
    }

    /// Once is enough: the lines are of one kind.
    fn warn(&self, item: &Item, warned: &mut bool) {
        let warning =
            self.queue.as_ref().and_then(|queue| body_key::warning(&queue.name, queue.key, &item.body));
        if let Some(warning) = warning.filter(|_| !*warned) {
            *warned = true;
            out::aside(&warning);
        }
    }
}

/// What a line asks for, or why it is not taken.
pub(super) fn item(text: Option<Vec<u8>>, key_from: &KeyFrom) -> Result<Item, Refused> {
    let refused = |error: LineError| Refused::message(error.code(), error.to_string());
    let text = text.ok_or(LineError::TooLong).map_err(refused)?;
    let item = line::parse(&text, key_from).map_err(refused)?;
    if body_key::agrees(&item.key, &item.body).is_err() {
        let detail = "the body's idempotency_key is another key than the line's; make them the same, or take it out of the body";
        return Err(Refused::message("key_disagrees", detail));
    }
    Ok(item)
}

/// What came of the line that is first in order.
async fn first(under_way: &mut VecDeque<Sending>) -> (u64, u64, Came) {
    let Some(Sending { number, bytes, task }) = under_way.front_mut() else {
        return std::future::pending().await;
    };
    let came = task.await.unwrap_or_else(|error| Came::Unknown {
        effect: Effect::Unknown,
        detail: format!("the line was broken off: {error}"),
    });
    (*number, *bytes, came)
}

/// Whether the next line would fare the same.
fn is_for_all(came: &Came, counts: &Counts) -> bool {
    match came {
        Came::New { .. } | Came::Same { .. } => false,
        Came::Refused(refused) => refused.about == About::All,
        // Nobody was reached, or wants to be: it says nothing of this line.
        Came::Unknown { effect: Effect::NotDone, .. } => true,
        Came::Unknown { .. } => LOST_IN_A_ROW_MAX <= counts.lost_in_a_row,
    }
}

fn told(counts: &Counts) -> Exit {
    Exit::Cut(format!("told to stop after {counts}; {SAFE}"))
}

fn ended(stop: Stop, counts: &Counts) -> Result<(), Exit> {
    match stop {
        Stop::End if 0 < counts.unknown => {
            Err(Exit::Unreachable(format!("not every line has an outcome: {counts}; {SAFE}")))
        }
        Stop::End => {
            out::aside(&format!("ichido: {counts}\n"));
            // The results have said which ones.
            if counts.refused == 0 { Ok(()) } else { Err(Exit::Found) }
        }
        Stop::Failed { number, came } => {
            let why = format!("{}; no further line was sent after {counts}; {SAFE}", came.text(Some(number)));
            Err(if matches!(came, Came::Unknown { .. }) { Exit::Unreachable(why) } else { Exit::Failed(why) })
        }
        Stop::Told => Err(told(counts)),
        Stop::Unreadable(error) => {
            Err(Exit::Failed(format!("the lines cannot be read further: {error}; after {counts}; {SAFE}")))
        }
    }
}
