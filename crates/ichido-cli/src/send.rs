//! `ichido send`: puts a message into the outbox, for trying and for scripts (SPEC D1, D11).
//!
//! Guarantee: when it ends with 0 the message is durable, and stands under its key once, however often it was put in. The key and
//! the body are shown nowhere.

use std::path::PathBuf;

use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use ichido_store::message::limits::REQUEST_BYTES_MAX;
use ichido_store::message::{Enqueued, NewMessage, QueueName};
use tokio::io::AsyncReadExt as _;

use crate::body_key;
use crate::config::{self, Config, FILE_NAME};
use crate::exit::Exit;
use crate::faults::Faults;
use crate::out;
use crate::store::open;

const AFTER_HELP: &str = "\
The body is read from standard input. Says `new` or `same`, and the message's id. The same key with another body is refused.

Exit code: 0 when the message stands, 1 when it was refused or could not be put in, and 2 when it makes no sense.

Example:
  echo '{\"symbol\":\"ACME\",\"intent\":\"buy\",\"qty\":\"10\"}' | ichido send orders --key order-1";

/// What `ichido send` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The queue to put it into
    #[arg(value_name = "QUEUE")]
    queue: String,

    /// The action's key: the same action again has the same key
    #[arg(long, value_name = "KEY")]
    key: String,

    /// For whom: the same key of another is another action
    #[arg(long, value_name = "NAME", default_value = "cli")]
    identity: String,

    /// The media type of the body
    #[arg(long, value_name = "TYPE", default_value = "application/json")]
    content_type: String,

    /// The configuration with the queue [default: ichido.toml, if it is there]
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    /// Where messages are kept: sqlite:FILE or postgres://… [default: as the configuration says]
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,
}

/// Puts a message in.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let misconfigured = |faults| Exit::Misconfigured { command: "send", faults };
    let body = body().await?;
    let config = configuration(&args).map_err(misconfigured)?;
    let (url, message) = resolve(&args, config.as_ref(), body).map_err(misconfigured)?;
    let queue = config.iter().flat_map(|config| &config.queues).find(|queue| queue.name == args.queue);
    if let Some(warning) = queue.and_then(|queue| body_key::warning(queue, &message.request)) {
        out::aside(&warning);
    }
    let store = open(&url).await?;
    let put = store.message_enqueue(message).await;
    let line = match put.map_err(|error| Exit::Failed(format!("the message cannot be put in: {error}")))? {
        Enqueued::New { id } => format!("new {id}"),
        Enqueued::Same { id } | Enqueued::SameContent { id } => format!("same {id}"),
        Enqueued::Different { id } => {
            return Err(Exit::Failed(format!(
                "refused: the key was used for another body, message {id}; a new action needs a new key"
            )));
        }
    };
    out::write(format!("{line}\n").as_bytes()).map_err(|error| {
        Exit::Failed(format!("the message stands, and standard output cannot be written: {error}"))
    })
}

async fn body() -> Result<Vec<u8>, Exit> {
    let mut body = Vec::new();
    // One byte more than is taken, so that what is too long can be told from what is not.
    let most = REQUEST_BYTES_MAX as u64 + 1;
    let read = tokio::io::stdin().take(most).read_to_end(&mut body).await;
    read.map_err(|error| Exit::Failed(format!("standard input cannot be read: {error}")))?;
    if REQUEST_BYTES_MAX < body.len() {
        return Err(Exit::Failed(format!("the body has more than {REQUEST_BYTES_MAX} bytes")));
    }
    Ok(body)
}

/// The configuration that was named, or the one that is there.
fn configuration(args: &Args) -> Result<Option<Config>, Faults> {
    match &args.config {
        Some(path) => config::load(path).map(Some),
        None if PathBuf::from(FILE_NAME).exists() => config::load(FILE_NAME.as_ref()).map(Some),
        None => Ok(None),
    }
}

fn resolve(args: &Args, config: Option<&Config>, body: Vec<u8>) -> Result<(String, NewMessage), Faults> {
    let mut faults = Faults::default();
    let url = args.store.clone().or_else(|| config.and_then(|config| config.store.url.clone()));
    if url.is_none() {
        faults.add("--store", "no store is given; say it here, by ICHIDO_STORE, or as url under [store]");
    }
    let queue = QueueName::parse(&args.queue);
    if queue.is_none() {
        faults.add(
            "QUEUE",
            format!("{:?} is no name of a queue; it has letters, digits, . _ - and :", args.queue),
        );
    }
    let known = config.map(|config| config.queues.iter().find(|known| known.name == args.queue));
    if let Some(None) = known {
        faults.add(
            "QUEUE",
            format!("the configuration has no [queues.{}]; nobody would take it out", args.queue),
        );
    }
    let key = faults.check("--key", IdempotencyKey::parse(&args.key));
    if let Some(key) = &key {
        faults.check("--key", body_key::agrees(key, &body));
    }
    let tries = known.flatten().map_or(Retry::OUTBOX.tries, |queue| queue.retry.tries);
    let built = (|| {
        let mut message = NewMessage::new(queue?, &args.identity, key?, body);
        message.content_type.clone_from(&args.content_type);
        message.tries_allowed = tries;
        Some((url?, message))
    })();
    faults.or(built)
}
