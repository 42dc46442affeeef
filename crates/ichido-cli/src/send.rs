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

use ichido_core::key::IdempotencyKey;
use ichido_core::settings::ConfigErrors;
use ichido_server::accept::REQUEST_BYTES_MAX;
use ichido_server::body_key;
use tokio::io::{AsyncReadExt as _, BufReader};

use crate::bar::Bar;
use crate::exit::Exit;
use crate::out;
use bulk::BulkSend;
use lines::LineReader;
use outcome::SendOutcome;
use settings::Settings;

/// The maximum number of messages in flight.
const PARALLEL_MAX: u16 = 256;
/// The value of `--ndjson` for standard input.
const STDIN: &str = "-";

const AFTER_HELP: &str = "\
One message: its body is read from standard input. Says `new` or `same`, and the message's id. The same key with the same body is the \
same message, and with another body it is refused.

Many: each line of --ndjson is {\"key\":…,\"body\":…}, and the body is sent as it is written there, byte for byte. With --key-from the \
line itself is the body, and the key is taken out of it: a text, or a whole number. Blank lines are passed over. Each line has one result, \
in the order of the lines: new, same, refused (with the reason), unsent or unknown (where no outcome was learnt). Several are \
under way at once, so that they are accepted in about the order of the lines; --parallel 1 keeps it. Sending the same lines again, after \
an interruption or for no reason, is safe: what stands is not put in twice.

Offline: with --offline-queue each message is put into a file first, and said to be `queued` once it is on the disk. Then what is in the file \
is sent to the server in its order, one after the other: new, same, refused, failed (after 3 tries) or held (sent once, and longer ago than the \
server keeps keys). What was said last of a message holds. Run it again after any interruption, with the same messages or with none: each stands \
once at the server. The file holds the bodies as they are, and no token; `ichido offline` shows it and decides.

A server is asked again by itself after network errors, 5xx, 408 and 429, as it wishes (Retry-After), 3 times in all, always with the same \
key. Its token is read from ICHIDO_TOKEN.

Exit code: 0 when every message stands, 1 when any was refused, failed or is held, 2 when it makes no sense, 3 when the server or the store was \
not reached, so that some still wait in the offline queue, or when the command was told to stop, and 4 when the one key was used for another body.

Examples:
  echo '{\"symbol\":\"ACME\",\"intent\":\"buy\",\"qty\":\"10\"}' | ichido send orders --key order-1
  ichido send orders --ndjson orders.ndjson --key-from /order_id --server http://127.0.0.1:4180
  ichido send orders --ndjson orders.ndjson --offline-queue orders.queue --server http://127.0.0.1:4180";

const STORE_HELP: &str = "Where messages are kept: sqlite:FILE or postgres://… [env: ICHIDO_STORE] [default: as the configuration says]";

/// What `ichido send` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The queue to put it into
    #[arg(value_name = "QUEUE")]
    queue: String,

    /// The action's key: the same action again has the same key
    #[arg(long, value_name = "KEY", required_unless_present_any = ["ndjson", "offline_queue"], conflicts_with = "ndjson")]
    key: Option<String>,

    /// Many messages, one a line, from a file or (-) standard input
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,

    /// Where in each line its key is, such as /id; the line is the body then
    #[arg(long, value_name = "POINTER", requires = "ndjson")]
    key_from: Option<String>,

    /// How many lines may be under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 16, requires = "ndjson", conflicts_with = "offline_queue", value_parser = clap::value_parser!(u16).range(1..=i64::from(PARALLEL_MAX)))]
    parallel: u16,

    /// A file that keeps what the server has not taken yet; it is made if it is not there
    #[arg(long, value_name = "FILE")]
    offline_queue: Option<PathBuf>,

    /// How long the server remembers a key: what was sent longer ago is held [default: 72h]
    #[arg(long, value_name = "TIME", requires = "offline_queue")]
    keys_kept_for: Option<String>,

    /// For whom: the same key of another is another action [default: local, or whom the server takes the token for]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,

    /// The media type of the bodies
    #[arg(long, value_name = "TYPE", default_value = "application/json")]
    content_type: String,

    #[arg(long, value_name = "URL", help = "A running server to send to [env: ICHIDO_SERVER]")]
    server: Option<String>,

    /// The configuration with the queue, where there is no server [default: ichido.toml, if it is there]
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    #[arg(long, value_name = "URL", help = STORE_HELP)]
    store: Option<String>,

    /// One JSON object a result
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
        (None, None) => Err(Exit::invalid("--key", "give it, or many messages by --ndjson")),
    }
}

async fn send_one(args: &Args, key: &str) -> Result<(), Exit> {
    let body = read_body().await?;
    let mut faults = ConfigErrors::default();
    let key = faults.check("--key", IdempotencyKey::parse(key));
    if let Some(key) = &key {
        faults.check("--key", body_key::agrees(key, &body));
    }
    // All errors are reported at once.
    let settings = Settings::resolve(args).map_err(|more| faults.join(more)).ok();
    let (key, settings) = faults.or(key.zip(settings))?;
    if let Some(warning) =
        settings.queue_config().and_then(|queue| body_key::warning(&queue.name, queue.key, &body))
    {
        out::eprint(&warning);
    }
    let outcome = settings.sender(args).await?.enqueue(key, body).await;
    let has_id = matches!(outcome, SendOutcome::New { .. } | SendOutcome::Same { .. });
    // Errors go to standard error; with `--json` they are on standard output too.
    if args.json || has_id {
        let line = if args.json { outcome.to_json(None, None) } else { outcome.render("") };
        let output = out::write(format!("{line}\n").as_bytes());
        output.map_err(|error| {
            Exit::Failed(format!("{line}, and standard output cannot be written: {error}"))
        })?;
    }
    outcome.into_result()
}

async fn send_many(args: &Args, file: &Path) -> Result<(), Exit> {
    let settings = Settings::resolve(args)?;
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
    let unreadable = |error| Exit::invalid("--ndjson", format!("{} cannot be read: {error}", path.display()));
    let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
    let metadata = file.metadata().await.map_err(unreadable)?;
    if metadata.is_dir() {
        let what = format!("{} is a folder; name a file, or - for standard input", path.display());
        return Err(Exit::invalid("--ndjson", what));
    }
    Ok((LineReader::new(BufReader::new(file)), metadata.is_file().then_some(metadata.len())))
}

async fn read_body() -> Result<Vec<u8>, Exit> {
    let mut body = Vec::new();
    // One more byte than allowed, to detect a body that is too long.
    let most = REQUEST_BYTES_MAX as u64 + 1;
    let read = tokio::io::stdin().take(most).read_to_end(&mut body).await;
    read.map_err(|error| Exit::Failed(format!("standard input cannot be read: {error}")))?;
    if REQUEST_BYTES_MAX < body.len() {
        return Err(Exit::Failed(format!("the body has more than {REQUEST_BYTES_MAX} bytes")));
    }
    Ok(body)
}
