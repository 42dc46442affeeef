//! `ichido dead`: letters that wait for a person are looked at, sent again, closed, replaced and decided (SPEC A11, D17, E3, E4, F2).
//!
//! Guarantee: nothing is sent again that its queue does not allow or that could be done twice. What touches many letters says first what
//! would happen and asks; each step is in the audit with who took it. A request is shown only when it is asked for.

mod bulk;
mod bulks;
mod filter;
mod look;
mod one;
mod served;
mod settings;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Subcommand;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::exit::Exit;
use crate::faults::Faults;
use crate::reach::Address;
pub(crate) use bulks::{ToldBulk, bulk as told_bulk, bulks as told_bulks};
use filter::Filter;
pub(crate) use filter::moment;
pub(crate) use one::{Finding, decided};
use settings::Settings;
pub(crate) use settings::policies;

const AFTER_HELP: &str = "\
A dead letter was given up: its error cannot be mended by trying again, or its tries are spent. A parked one may have taken effect,
and nobody knows: find out, then `decide`. Both are kept until a person is done with them.

Exit code: 0 when all was done, 1 when something was refused or a canary halted, 2 when nothing was tried, 3 when it was stopped
or the server or store was not reached, and 4 when another one moves letters of the same queue, or it stands against how things are at a
server.

Examples:
  ichido dead list --queue orders --from 2h
  ichido dead show 01995b1c-…
  ichido dead requeue --queue orders --error BROKER_5XX --dry-run
  ichido dead requeue --queue orders --error BROKER_5XX --canary --yes
  ichido dead discard 01995b1c-… --reason \"test data\"
  ichido dead show 01995b1c-… --request > request.json
  ichido dead edit 01995b1c-… --request request.json
  ichido dead list --server http://127.0.0.1:4180
  ichido dead decide not-done 01995b1c-… --reason \"no such order at the broker\"";

/// What `ichido dead` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help = "A running server to ask, its token from ICHIDO_TOKEN [env: ICHIDO_SERVER]"
    )]
    server: Option<String>,
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help = "Where messages are kept: sqlite:FILE or postgres://…; wins over the configuration [env: ICHIDO_STORE]"
    )]
    store: Option<String>,
    /// The configuration, which says which queues allow a requeue and what their destinations promise
    #[arg(long, global = true, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,
    /// Who you are, for the audit; a server goes by the token
    #[arg(long, global = true, value_name = "NAME", env = "USER", default_value = "unknown")]
    by: String,
    /// JSON for programs, one object a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List letters, the last to become one first
    List {
        #[command(flatten)]
        filter: Filter,
        /// At most so many
        #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Go on after the last one of the page before, as its end says
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
    },
    /// Show all of one letter, with its history
    Show {
        /// Its id
        #[arg(value_parser = crate::id::parse)]
        id: Uuid,
        /// Write its request to standard output, and nothing else
        #[arg(long)]
        request: bool,
    },
    /// Send dead letters again, by id or by filter; the count of tries begins at 0
    Requeue(bulk::Args),
    /// Say that dead letters need no more attention; they are kept, and listed by --discarded
    Discard(bulk::Args),
    /// Make a new message from a dead one, with another request and a new key; the two point to each other
    Edit {
        /// The dead one's id
        #[arg(value_parser = crate::id::parse)]
        id: Uuid,
        /// The file of the new request; - is standard input
        #[arg(long, value_name = "FILE")]
        request: PathBuf,
        /// The new key; left out, one is made
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// Make it though the dead one took effect, so that it is done once more
        #[arg(long)]
        yes: bool,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Say what you found out about letters whose effect is unknown
    Decide {
        /// What you found out
        #[arg(value_enum)]
        finding: Finding,
        /// Their ids
        #[arg(required = true, value_parser = crate::id::parse)]
        ids: Vec<Uuid>,
        /// How you know
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Ask a requeue or discard of many that runs elsewhere to stop
    Stop {
        /// Its id, as it said when it began, and as `bulks` lists it
        #[arg(value_parser = crate::id::parse)]
        operation: Uuid,
    },
    /// List what was done to many letters at once, by whom, and how it ended
    Bulks,
}

impl Command {
    const fn name(&self) -> &'static str {
        match self {
            Self::List { .. } => "dead list",
            Self::Show { .. } => "dead show",
            Self::Requeue(_) => "dead requeue",
            Self::Discard(_) => "dead discard",
            Self::Edit { .. } => "dead edit",
            Self::Decide { .. } => "dead decide",
            Self::Stop { .. } => "dead stop",
            Self::Bulks => "dead bulks",
        }
    }
}

/// Does as it is told.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Args { command, server, store, config, by, json } = args;
    let name = command.name();
    let mut faults = Faults::default();
    let address = Address::given(server.as_deref(), store.as_deref(), &mut faults);
    let address = faults.or(Some(address)).map_err(|faults| Exit::Misconfigured { command: name, faults })?;
    let store = match address {
        Address::Server(url) => return served::run(url, by, json, command).await,
        Address::Store(url) => Some(url),
        Address::None => None,
    };
    let settings = Settings::read(name, store, config, by, json)?;
    match command {
        Command::List { filter, limit, after } => {
            look::list(&settings, &filter, limit, after.as_deref()).await
        }
        Command::Show { id, request } => look::show(&settings, id, request).await,
        Command::Requeue(args) => bulk::requeue(&settings, args).await,
        Command::Discard(args) => bulk::discard(&settings, args).await,
        Command::Edit { id, request, key, yes, reason } => {
            one::edit(&settings, id, one::Edit { request, key, yes, reason }).await
        }
        Command::Decide { finding, ids, reason } => {
            one::decide(&settings, finding, &once_each(ids), reason).await
        }
        Command::Stop { operation } => bulk::stop(&settings, operation).await,
        Command::Bulks => look::bulks(&settings).await,
    }
}

/// A letter that is named twice is meant once.
fn once_each(mut ids: Vec<Uuid>) -> Vec<Uuid> {
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    ids
}

/// Where a page ends: `2026-11-15T03:12:00Z,01995b1c-…`.
fn cursor((since, id): (Timestamp, Uuid)) -> String {
    format!("{since},{id}")
}

fn parse_cursor(text: &str) -> Option<(Timestamp, Uuid)> {
    let (since, id) = text.split_once(',')?;
    Some((Timestamp::parse(since)?, id.parse().ok()?))
}
