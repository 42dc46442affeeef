//! The messages to store in the file.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::settings::ConfigErrors;
use ichido_server::body_key;
use ichido_server::schedule::Schedule;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::super::line::{KeyFrom, LineMessage};
use super::super::lines::LineReader;
use super::super::outcome::SendRefusal;
use super::super::{Args, bulk, open_lines, read_body};
use crate::exit::Exit;

/// The maximum number of lines in a batch, which share one wait for the disk.
const MAX_BATCH_LINES: usize = 64;
/// The size at which a batch takes no further line.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// How long to wait for data in a pipe.
///
/// A program that pipes a message has it ready.
const PIPE_WAIT: Duration = Duration::from_secs(1);

/// The source of messages: a single one, and lines. With neither, only the entries in the file are sent.
pub(super) struct Input {
    pub(super) first: Vec<NumberedMessage>,
    pub(super) lines: LineReader,
}

/// A message with its line number, or why it is refused.
pub(super) struct NumberedMessage {
    pub(super) number: u64,
    pub(super) item: Result<LineMessage, SendRefusal>,
}

impl Input {
    /// Opened before the queue, so a missing file is reported before anything is created.
    pub(super) async fn open(args: &Args) -> Result<Self, Exit> {
        let mut input = Self { first: Vec::new(), lines: LineReader::new(tokio::io::empty()) };
        match (&args.key, &args.ndjson) {
            (_, Some(file)) => (input.lines, _) = open_lines(file).await?,
            (Some(key), None) => input.first.push(read_one(args, key).await?),
            (None, None) => ensure_no_piped_input().await?,
        }
        Ok(input)
    }
}

/// Fails if a message is piped in without a key.
///
/// The user must not think that it was queued.
async fn ensure_no_piped_input() -> Result<(), Exit> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    let mut first = [0];
    match timeout(PIPE_WAIT, tokio::io::stdin().read(&mut first)).await {
        Ok(Ok(1..)) => Err(Exit::invalid(
            "--key",
            "standard input has data, but no key was given; pass --key, or --ndjson - for many messages; to send only waiting entries, close \
             the input (</dev/null)",
        )),
        // The input has ended, cannot be read, or nothing is written to it.
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn read_one(args: &Args, key: &str) -> Result<NumberedMessage, Exit> {
    let body = read_body(args).await?;
    let mut faults = ConfigErrors::default();
    let key = faults.check("--key", IdempotencyKey::parse(key));
    if let Some(key) = &key {
        faults.check("--key", body_key::agrees(key, &body));
    }
    let schedule = Schedule::default();
    Ok(NumberedMessage { number: 1, item: Ok(LineMessage { key: faults.or(key)?, body, schedule }) })
}

/// Groups lines that arrive together into batches. Cancelling the wait loses no line.
pub(super) struct Batches {
    lines: LineReader,
    /// Lines that were read but not returned yet.
    pending: Vec<NumberedMessage>,
    bytes: usize,
    /// Why the input has ended.
    end: Option<io::Result<()>>,
}

impl Batches {
    pub(super) fn new(lines: LineReader) -> Self {
        Self { lines, pending: Vec::new(), bytes: 0, end: None }
    }

    /// Returns the next line and those available with it; empty at the end.
    pub(super) async fn next(&mut self, key_from: &KeyFrom) -> io::Result<Vec<NumberedMessage>> {
        while self.end.is_none() && self.pending.len() < MAX_BATCH_LINES && self.bytes < MAX_BATCH_BYTES {
            let is_first = self.pending.is_empty();
            let line = tokio::select! {
                biased;
                line = self.lines.next() => line,
                // A person who types, or a program that waits for each result, is not kept waiting.
                () = std::future::ready(()), if !is_first => break,
            };
            match line {
                Ok(Some(line)) => {
                    self.bytes += line.text.as_ref().map_or(0, Vec::len);
                    self.pending.push(NumberedMessage {
                        number: line.number,
                        item: bulk::parse_line(line.text, key_from),
                    });
                }
                Ok(None) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
        self.bytes = 0;
        match (self.pending.is_empty(), self.end.take()) {
            (true, Some(Err(error))) => Err(error),
            (_, end) => {
                self.end = end;
                Ok(std::mem::take(&mut self.pending))
            }
        }
    }
}
