//! `ichido dead`: lists, requeues, discards, replaces and decides dead and parked letters.
//!
//! Guarantee: this module decides nothing. Every command is a request to the API, and means the same at a server and
//! on the store. A letter is requeued only if its queue allows it and the effect cannot happen twice. A bulk
//! operation first shows what would happen and asks for confirmation. The audit trail records each step and who took
//! it. A request is shown only on demand.
// Spec: A11, D17, E3, E4, F2.

mod bulk;
mod edit;
mod filter;
mod letter;
mod operation;
mod show;
mod steps;

use std::collections::BTreeSet;

use clap::Subcommand;
use ichido_core::settings::ConfigErrors;
use uuid::Uuid;

use crate::api_client::{ApiClient, ConnectArgs};
use crate::exit::Exit;
use edit::Edit;
use filter::DeadLetterFilter;
pub(crate) use filter::moment;
use steps::LetterAction;
pub(crate) use steps::MessageDecision;

const AFTER_HELP: &str = "\
A dead letter was given up: its error cannot be mended by trying again, or its tries are spent. A parked one may have taken effect,
and nobody knows: find out, then `decide`. Both are kept until a person is done with them.

Exit code: 0 when all was done, 1 when something was refused or a canary halted, 2 when nothing was tried, 3 when it was stopped
or the server or store was not reached, and 4 when another one moves letters of the same queue.

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
    #[command(flatten)]
    connect: ConnectArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List letters, the last to become one first
    List {
        #[command(flatten)]
        filter: DeadLetterFilter,
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
    Requeue(steps::Args),
    /// Say that dead letters need no more attention; they are kept, and listed by --discarded
    Discard(steps::Args),
    /// Make a new message from a dead one, with another request and a new key; the two point to each other
    Edit(Edit),
    /// Say what you found out about letters whose effect is unknown
    Decide {
        /// What you found out
        #[arg(value_enum)]
        finding: MessageDecision,
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
    /// Checks the flags before anything is opened.
    fn check(&self) -> Result<(), ConfigErrors> {
        match self {
            Self::List { filter, .. } => filter.query().map(drop),
            Self::Requeue(args) => args.check(LetterAction::Requeue),
            Self::Discard(args) => args.check(LetterAction::Discard),
            Self::Show { .. } | Self::Edit(_) | Self::Decide { .. } | Self::Stop { .. } | Self::Bulks => {
                Ok(())
            }
        }
    }
}

/// The `dead` commands on one API client.
struct DeadLetters {
    api: ApiClient,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Args { command, connect } = args;
    command.check()?;
    let dead = DeadLetters { api: ApiClient::open(connect).await? };
    let ended = dead.run(command).await;
    dead.api.close().await;
    ended
}

impl DeadLetters {
    async fn run(&self, command: Command) -> Result<(), Exit> {
        match command {
            Command::List { filter, limit, after } => self.list(&filter, limit, after).await,
            Command::Show { id, request } => self.show(id, request).await,
            Command::Requeue(args) => self.step(args, LetterAction::Requeue).await,
            Command::Discard(args) => self.step(args, LetterAction::Discard).await,
            Command::Edit(edit) => self.edit(edit).await,
            Command::Decide { finding, ids, reason } => {
                self.decide(finding, &deduplicated(ids), reason).await
            }
            Command::Stop { operation } => self.stop(operation).await,
            Command::Bulks => self.bulks().await,
        }
    }
}

/// Removes repeated ids, keeping the order.
fn deduplicated(mut ids: Vec<Uuid>) -> Vec<Uuid> {
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    ids
}
