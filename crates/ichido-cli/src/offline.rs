//! `ichido offline`: manages the entries of an offline queue file.
//!
//! Guarantee: listing changes nothing and creates no file. A decision is on disk when it is reported. These commands
//! send nothing; `ichido send` does.
// Spec: A13.

mod list;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use ichido_client::queue::{EntryFilter, EntryId, MAX_PAGE, OfflineQueue, QueueError, State};
use serde_json::json;

use crate::exit::Exit;
use crate::out;

const AFTER_HELP: &str = "\
FILE is the offline queue of `ichido send --offline-queue FILE`. Delivered entries are removed from it. An entry is waiting, sending, failed \
(refused by the server, or out of attempts) or held: it was sent so long ago that the server may have forgotten its key, so a retry could \
take effect twice. Check on the server whether it took effect, then release or discard it.

These commands send nothing. `ichido send QUEUE --offline-queue FILE --server URL` sends waiting entries.

Examples:
  ichido offline list orders.queue
  ichido offline retry orders.queue 7
  ichido offline retry orders.queue --all
  ichido offline release orders.queue 8
  ichido offline discard orders.queue 9";

/// Arguments of `ichido offline`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List entries, oldest first
    List(list::Args),
    /// Retry failed entries with the same key; attempts restart at 0
    Retry {
        /// Offline queue file
        file: PathBuf,
        /// Ids of the entries
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<i64>,
        /// Retry all failed entries
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
    /// Send held entries again, although their keys may be forgotten
    Release(Entries),
    /// Remove entries, whether or not they took effect
    Discard(Entries),
}

#[derive(Debug, clap::Args)]
struct Entries {
    /// Offline queue file
    file: PathBuf,
    /// Ids of the entries
    #[arg(value_name = "ID", required = true)]
    ids: Vec<i64>,
}

/// The decision about an entry.
#[derive(Clone, Copy)]
enum EntryAction {
    Retry,
    Release,
    Discard,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Args { command, json } = args;
    let (file, ids, action) = match command {
        Command::List(args) => return list::run(&open(&args.file).await?, &args, json).await,
        Command::Retry { file, ids, .. } => (file, ids, EntryAction::Retry),
        Command::Release(Entries { file, ids }) => (file, ids, EntryAction::Release),
        Command::Discard(Entries { file, ids }) => (file, ids, EntryAction::Discard),
    };
    let queue = open(&file).await?;
    // The command line requires ids, except for `retry --all`.
    let ids = if ids.is_empty() {
        failed(&queue, &file).await?
    } else {
        ids.into_iter().map(EntryId::new).collect()
    };
    decide(&queue, &file, &ids, action, json).await
}

/// Opens an existing queue. A missing or foreign file is a typing error.
async fn open(file: &Path) -> Result<OfflineQueue, Exit> {
    OfflineQueue::open_existing(file).await.map_err(|error| match error {
        QueueError::NotAQueue | QueueError::Unusable(_) => {
            Exit::invalid(file.display().to_string(), error.to_string())
        }
        error => queue_failure(file, &error),
    })
}

fn queue_failure(file: &Path, error: &QueueError) -> Exit {
    let text = format!("{}: {error}", file.display());
    if matches!(error, QueueError::Busy) { Exit::Unreachable(text) } else { Exit::Failed(text) }
}

async fn failed(queue: &OfflineQueue, file: &Path) -> Result<Vec<EntryId>, Exit> {
    let mut filter = EntryFilter { state: Some(State::Failed), ..EntryFilter::default() };
    let mut ids = Vec::new();
    loop {
        let page = queue.list(&filter, MAX_PAGE).await.map_err(|error| queue_failure(file, &error))?;
        let Some(last) = page.last() else {
            return Ok(ids);
        };
        filter.after = Some(last.id);
        ids.extend(page.iter().map(|entry| entry.id));
    }
}

async fn decide(
    queue: &OfflineQueue,
    file: &Path,
    ids: &[EntryId],
    action: EntryAction,
    json: bool,
) -> Result<(), Exit> {
    let mut is_refused = false;
    for id in ids {
        let (decided, text) = match action {
            EntryAction::Retry => (queue.retry(*id).await, "waiting for a retry"),
            EntryAction::Release => (queue.release(*id).await, "released, waiting to be sent again"),
            EntryAction::Discard => (queue.discard(*id).await, "discarded"),
        };
        let (is_done, text) = match decided {
            Ok(()) => (true, text.to_owned()),
            Err(error @ (QueueError::UnknownEntry(_) | QueueError::WrongState { .. })) => {
                (false, format!("refused: {error}"))
            }
            Err(error) => return Err(queue_failure(file, &error)),
        };
        is_refused |= !is_done;
        let object = json!({ "entry": id.get(), "decided": is_done, "result": text });
        out::print_either(json, object, format_args!("{id}: {text}"))?;
    }
    if ids.is_empty() && !json {
        out::print_line("no failed entries")?;
    }
    if is_refused { Err(Exit::Findings) } else { Ok(()) }
}
