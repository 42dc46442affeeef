//! `ichido queues`: shows the state of the queues, and pauses or resumes their delivery.
//!
//! Guarantee: a command is a request to the API, and means the same at a server and on the store. The audit trail
//! records who paused a queue.
// Spec: E3, E4.

use clap::Subcommand;
use ichido_core::text::table::Column;
use ichido_server::accept;
use ichido_server::serve::views::{Counts, Queue};
use serde_json::json;

use crate::api_client::{ApiArgs, ApiClient, ConnectArgs, List};
use crate::exit::Exit;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ichido queues list
  ichido queues pause orders --server http://127.0.0.1:4180
  ichido queues resume orders";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List queues with message counts, oldest message and pause
    List,
    /// Pause delivery on all nodes; messages are still accepted
    Pause {
        /// Name of the queue
        queue: String,
    },
    /// Resume delivery on all nodes
    Resume {
        /// Name of the queue
        queue: String,
    },
}

/// Runs the command.
pub(crate) async fn run(args: ApiArgs<Command>) -> Result<(), Exit> {
    match args.command {
        Command::List => {
            let list = List { none: "no queues", ..List::new("/v1/queues", "queues", HEAD) };
            ApiClient::open(args.connect).await?.list(list, row).await
        }
        Command::Pause { queue } => set(args.connect, &queue, "pause").await,
        Command::Resume { queue } => set(args.connect, &queue, "resume").await,
    }
}

const HEAD: [Column; 11] = [
    Column::text("QUEUE"),
    Column::text("QUEUED"),
    Column::text("SENDING"),
    Column::text("FAILED"),
    Column::text("PARKED"),
    Column::text("SENT"),
    Column::text("DEAD"),
    Column::text("CANCELLED").spare(),
    Column::past("OLDEST"),
    Column::past("PAUSED"),
    Column::free("BY").spare(),
];

fn row(queue: Queue) -> [String; 11] {
    // A producer may not see the counts of its queues.
    let count = |of: fn(&Counts) -> i64| {
        queue.counts.as_ref().map(|counts| of(counts).to_string()).unwrap_or_default()
    };
    // Retries and delayed messages wait for their time.
    let has_later = queue.counts.as_ref().is_some_and(|counts| 0 < counts.queued + counts.failed);
    let later = if has_later { "not due yet" } else { "" };
    [
        queue.name,
        count(|counts| counts.queued),
        count(|counts| counts.sending),
        count(|counts| counts.failed),
        count(|counts| counts.parked),
        count(|counts| counts.sent),
        count(|counts| counts.dead),
        count(|counts| counts.cancelled),
        queue.oldest_waiting_at.unwrap_or_else(|| later.to_owned()),
        if queue.paused { queue.paused_at.unwrap_or_else(|| "yes".to_owned()) } else { "no".to_owned() },
        queue.paused_by.unwrap_or_default(),
    ]
}

async fn set(connect: ConnectArgs, queue: &str, step: &str) -> Result<(), Exit> {
    let name = accept::queue_name(queue).map_err(|what| Exit::invalid("QUEUE", what))?;
    let api = ApiClient::open(connect).await?;
    let before: Vec<Queue> = api.items("/v1/queues", "queues").await?;
    let was_paused = before.iter().any(|queue| queue.name == name.as_str() && queue.paused);
    // A queue name contains no character that has a meaning in a path.
    let answer = api.post(&format!("/v1/queues/{}/{step}", name.as_str()), &json!({})).await?;
    api.print(&answer, |Queue { name, paused, .. }| match (was_paused, paused) {
        (false, true) => format!("paused {name}; it accepts messages, but sends none until it is resumed"),
        (true, true) => format!("{name} was already paused; it sends no messages until it is resumed"),
        (true, false) => format!("resumed {name}; workers send its messages again"),
        (false, false) => format!("{name} was not paused; nothing was changed"),
    })
}
