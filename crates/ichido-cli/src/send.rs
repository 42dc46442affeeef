//! `ichido send`: enqueues one or many messages, for experiments and scripts.
//!
//! Guarantee: a message reported as `new` or `same` is durable and exists once under its key, however often it was
//! sent and with either transport: through a running server or on the store. For the rest, the output states what is
//! known and guesses nothing. Keys and bodies are never shown.
//!
//! `line` parses a line of NDJSON, `sender` has the two transports, `bulk` sends many lines, `outcome` formats
//! results, and `offline` queues messages in a file first.
// Spec: D1, D11.

mod bulk;
mod line;
mod lines;
mod offline;
mod outcome;
mod sender;
mod settings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::settings::ConfigErrors;
use ichido_core::time::Timestamp;
use ichido_server::accept::MAX_REQUEST_BYTES;
use ichido_server::body_key;
use ichido_server::schedule::{parse_delay, parse_priority, parse_run_at};
use tokio::io::{AsyncReadExt as _, BufReader};

use crate::bar::Bar;
use crate::exit::Exit;
use crate::out;
use crate::target::TargetArgs;
use bulk::BulkSend;
use line::LineMessage;
use lines::LineReader;
use outcome::SendOutcome;
use settings::Settings;

/// The maximum number of messages in flight.
const MAX_PARALLEL: u16 = 256;
/// The value of `--ndjson` for standard input.
const STDIN: &str = "-";

const AFTER_HELP: &str = "\
One message: its body is an argument, or read from standard input. Prints `new` or `same`, and the message's id. The same key with the same body is the \
same message; with another body it is refused.

Many: each line of --ndjson is {\"key\":…,\"body\":…}, and the body is sent byte for byte as written. A line can have its own \
\"priority\", and \"delay\" or \"run_at\"; the flags apply to the others. With --key-from the line itself is the \
body, and the key is read from it: a string or a whole number. Blank lines are skipped. Each line has one result, in the order of the \
lines: new, same, refused (with the reason), unsent or unknown (no outcome). Several lines are in flight at once, so the order is \
approximate; --parallel 1 keeps it. Sending the same lines again is always safe: no message is enqueued twice.

Offline: with --offline-queue each message is written to a file first, and reported as `queued` once it is on disk. The entries are then \
sent to the server one after the other, in order: new, same, refused, failed (after 3 attempts) or held (sent once, longer ago than the \
server keeps keys). The last result of a message is final. After any interruption run the command again, with the same messages or \
none: each is enqueued once. The file contains the bodies in plain text and no token; manage it with `ichido offline`.

Network errors, 5xx, 408 and 429 are retried automatically, up to 3 attempts with the same key, honouring Retry-After. The token is read \
from ICHIDO_TOKEN.

Exit code: 0 if every message is enqueued, 1 if one was refused, failed or is held, 2 for a usage or configuration error, 3 if the server or \
store cannot be reached (entries wait in the offline queue) or the command was stopped, and 4 if the key was used for another body.

Examples:
  echo '{\"symbol\":\"ACME\",\"intent\":\"buy\",\"qty\":\"10\"}' | ichido send orders --key order-1
  echo '{\"to\":\"ann@example.com\"}' | ichido send mail --key reminder-7 --delay 2h --priority 1
  ichido send orders --ndjson orders.ndjson --key-from /order_id
  ichido send orders --ndjson orders.ndjson --offline-queue orders.queue --server http://127.0.0.1:4180";

/// Arguments of `ichido send`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Queue to send to
    #[arg(value_name = "QUEUE")]
    queue: String,

    /// Body of the message [default: standard input]
    #[arg(value_name = "BODY", requires = "key")]
    body: Option<String>,

    /// Idempotency key; reuse it when you repeat the action
    #[arg(long, value_name = "KEY", required_unless_present_any = ["ndjson", "offline_queue"], conflicts_with = "ndjson")]
    key: Option<String>,

    /// File with one message per line; - is standard input
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,

    /// JSON pointer to each line's key, such as /id
    #[arg(long, value_name = "POINTER", requires = "ndjson", conflicts_with = "key")]
    key_from: Option<String>,

    /// Maximum number of lines in flight
    #[arg(long, value_name = "COUNT", default_value_t = 16, requires = "ndjson", conflicts_with = "offline_queue", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_PARALLEL)))]
    parallel: u16,

    /// Offline queue file for unaccepted messages; created if missing
    #[arg(long, value_name = "FILE")]
    offline_queue: Option<PathBuf>,

    /// How long the server remembers keys; older entries are held [default: 72h]
    #[arg(long, value_name = "TIME", requires = "offline_queue")]
    keeps_keys_for: Option<String>,

    /// Identity that owns the key [default: local, or the token's]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,

    /// Media type of the bodies
    #[arg(long, value_name = "TYPE", default_value = "application/json")]
    content_type: String,

    /// Priority: 0 is sent first, 255 last [default: 2]
    #[arg(long, value_name = "NUMBER", value_parser = parse_priority)]
    priority: Option<u8>,

    /// Delay before the first attempt, such as 30s or 2h
    #[arg(long, value_name = "TIME", value_parser = parse_delay, conflicts_with = "run_at")]
    delay: Option<Duration>,

    /// Earliest first attempt, in UTC, such as 2026-11-15T03:00:00Z
    #[arg(long, value_name = "MOMENT", value_parser = parse_run_at)]
    run_at: Option<Timestamp>,

    #[command(flatten)]
    target: TargetArgs,

    /// Print one JSON object per result
    #[arg(long)]
    json: bool,
}

/// Enqueues messages.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    match (&args.key, &args.ndjson) {
        _ if args.offline_queue.is_some() => offline::run(&args).await,
        (_, Some(file)) => send_many(&args, file).await,
        (Some(key), None) => send_one(&args, key).await,
        // The command line requires one of them.
        (None, None) => {
            Err(Exit::invalid("--key", "is required; pass --key, or use --ndjson to send many messages"))
        }
    }
}

async fn send_one(args: &Args, key: &str) -> Result<(), Exit> {
    let body = read_body(args).await?;
    let mut faults = ConfigErrors::default();
    let key = faults.check("--key", IdempotencyKey::parse(key));
    if let Some(key) = &key {
        faults.check("--key", body_key::agrees(key, &body));
    }
    // All errors are reported at once.
    let settings = Settings::resolve(args).await.map_err(|more| faults.join(more)).ok();
    let (key, settings) = faults.or(key.zip(settings))?;
    if let Some(warning) =
        settings.queue_config().and_then(|queue| body_key::warning(&queue.name, queue.outbound_key, &body))
    {
        out::eprint(&warning);
    }
    let schedule = settings.schedule;
    let outcome = settings.sender(args).await?.enqueue(LineMessage { key, body, schedule }).await;
    let has_id = matches!(outcome, SendOutcome::New { .. } | SendOutcome::Same { .. });
    // Errors go to standard error; with `--json` they are on standard output too.
    if args.json || has_id {
        let line = if args.json { outcome.to_json(None, None) } else { outcome.render("") };
        let output = out::write(format!("{line}\n").as_bytes());
        output.map_err(|error| Exit::Failed(format!("{line}; cannot write to standard output: {error}")))?;
    }
    outcome.into_result()
}

async fn send_many(args: &Args, file: &Path) -> Result<(), Exit> {
    let settings = Settings::resolve(args).await?;
    // Opened before the store, so a missing file is reported before anything is created.
    let (lines, bytes) = open_lines(file).await?;
    let bulk = BulkSend {
        sender: settings.sender(args).await?,
        key_from: settings.key_from.clone(),
        parallel: usize::from(args.parallel),
        json: args.json,
        queue: settings.queue_config().cloned(),
    };
    let template = if bytes.is_some() { "{bar:30} {percent:>3}% {msg}" } else { "{spinner} {msg}" };
    bulk.run(lines, Bar::new(bytes, template)).await
}

/// Opens the lines of a file or of standard input.
///
/// Also returns their length in bytes, if it is known: a pipe has none.
async fn open_lines(path: &Path) -> Result<(LineReader, Option<u64>), Exit> {
    if path.as_os_str() == STDIN {
        return Ok((LineReader::new(BufReader::new(tokio::io::stdin())), None));
    }
    let unreadable = |error| Exit::invalid("--ndjson", format!("cannot read {}: {error}", path.display()));
    let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
    let metadata = file.metadata().await.map_err(unreadable)?;
    if metadata.is_dir() {
        let what = format!("{} is a folder; pass a file, or - for standard input", path.display());
        return Err(Exit::invalid("--ndjson", what));
    }
    Ok((LineReader::new(BufReader::new(file)), metadata.is_file().then_some(metadata.len())))
}

async fn read_body(args: &Args) -> Result<Vec<u8>, Exit> {
    let mut body = args.body.clone().unwrap_or_default().into_bytes();
    if args.body.is_none() {
        // One more byte than allowed, to detect a body that is too long.
        let most = MAX_REQUEST_BYTES as u64 + 1;
        let read = tokio::io::stdin().take(most).read_to_end(&mut body).await;
        read.map_err(|error| Exit::Failed(format!("cannot read standard input: {error}")))?;
    }
    if MAX_REQUEST_BYTES < body.len() {
        return Err(Exit::Failed(format!("the body has more than {MAX_REQUEST_BYTES} bytes")));
    }
    Ok(body)
}
