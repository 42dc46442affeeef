//! `ichido queues`: how the queues stand, and whether they are delivered (SPEC E3, E4).
//!
//! Guarantee: a command is a request to the API, and means the same at a server and straight on the store. Who paused a queue is in the audit.

use clap::Subcommand;
use ichido_core::settings::Faults;
use ichido_core::text::table;
use ichido_store::message::QueueName;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::out;
use crate::reach::{self, Reach};

const EXAMPLES: &str = "\
Examples:
  ichido queues list
  ichido queues pause orders --server http://127.0.0.1:4180
  ichido queues resume orders";

/// What `ichido queues` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    reach: reach::Whom,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List queues: how many messages are in each state, since when the oldest waits, and whether it is paused
    List,
    /// Stop the delivery of a queue's messages on all nodes; messages are still taken in
    Pause {
        /// Its name
        queue: String,
    },
    /// Go on with the delivery of a queue's messages
    Resume {
        /// Its name
        queue: String,
    },
}

#[derive(Deserialize)]
struct Queues {
    queues: Vec<Value>,
}

#[derive(Deserialize)]
struct Queue {
    name: String,
    paused: bool,
    paused_by: Option<String>,
    paused_at: Option<String>,
    counts: Option<Counts>,
    oldest_waiting_at: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    queued: u64,
    sending: u64,
    failed: u64,
    parked: u64,
    sent: u64,
    dead: u64,
    cancelled: u64,
}

/// Does as it is told.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Args { command, reach } = args;
    match command {
        Command::List => list(&Reach::open("queues list", reach).await?).await,
        Command::Pause { queue } => set("queues pause", reach, &queue, "pause").await,
        Command::Resume { queue } => set("queues resume", reach, &queue, "resume").await,
    }
}

async fn list(reach: &Reach) -> Result<(), Exit> {
    let Queues { queues } = reach::read(&reach.get("/v1/queues").await?)?;
    if reach.json {
        return queues.into_iter().try_for_each(out::line);
    }
    if queues.is_empty() {
        return out::line("there are no queues");
    }
    let rows =
        queues.into_iter().map(|queue| reach::shape(queue).map(row)).collect::<Result<Vec<_>, Exit>>()?;
    out::say(&table(HEAD, rows.into_iter()))
}

const HEAD: [&str; 10] = [
    "QUEUE",
    "QUEUED",
    "SENDING",
    "FAILED",
    "PARKED",
    "SENT",
    "DEAD",
    "CANCELLED",
    "OLDEST WAITS SINCE",
    "PAUSED",
];

fn row(queue: Queue) -> [String; 10] {
    // A producer is not told what is in its queues.
    let count = |of: fn(&Counts) -> u64| {
        queue.counts.as_ref().map(|counts| of(counts).to_string()).unwrap_or_default()
    };
    [
        queue.name,
        count(|counts| counts.queued),
        count(|counts| counts.sending),
        count(|counts| counts.failed),
        count(|counts| counts.parked),
        count(|counts| counts.sent),
        count(|counts| counts.dead),
        count(|counts| counts.cancelled),
        queue.oldest_waiting_at.unwrap_or_default(),
        if queue.paused { paused(queue.paused_by, queue.paused_at) } else { "no".to_owned() },
    ]
}

fn paused(by: Option<String>, at: Option<String>) -> String {
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let at = at.map(|at| format!(" since {at}")).unwrap_or_default();
    format!("yes{by}{at}")
}

async fn set(command: &'static str, args: reach::Whom, queue: &str, step: &str) -> Result<(), Exit> {
    let mut faults = Faults::default();
    let no_name = "is no queue's name: 1 to 128 letters, digits, `.`, `_`, `-` and `:`";
    let name = faults.check("QUEUE", QueueName::parse(queue).ok_or(no_name));
    let name = faults.or(name).map_err(|faults| Exit::Misconfigured { command, faults })?;
    let reach = Reach::open(command, args).await?;
    // A name has no character that a path would read otherwise.
    let answer = reach.post(&format!("/v1/queues/{}/{step}", name.as_str()), &json!({})).await?;
    if reach.json {
        return out::line(reach::read::<Value>(&answer)?);
    }
    let queue: Queue = reach::read(&answer)?;
    out::line(format_args!(
        "{} is {}",
        queue.name,
        if queue.paused { "paused" } else { "not paused; its messages go out" }
    ))
}
