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

use clap::Subcommand;
use ichido_core::settings::ConfigErrors;
use uuid::Uuid;

use crate::api_client::{ApiClient, ConnectArgs};
use crate::exit::Exit;
use crate::id::find_message;
use edit::Edit;
use filter::DeadLetterFilter;
pub(crate) use filter::moment;
use steps::LetterAction;
pub(crate) use steps::OperatorDecision;

const AFTER_HELP: &str = "\
A dead letter is not retried: its error is permanent, or its attempts are used up. A parked message may have taken effect: find out
whether it did, then `decide`. `requeue --parked` releases it once the guarantee of its destination makes that safe. Both are kept until
somebody settles them.

Exit code: 0 on success, 1 if some messages were refused or the canary halted, 2 for a usage or configuration error, 3 if the command
was stopped or the server or store cannot be reached, and 4 if nothing was changed because all messages were refused or another bulk
operation is running on the same queue.

Examples:
  ichido dead list --queue orders --from 2h
  ichido dead show 01995b1c
  ichido dead requeue --queue orders --error BROKER_5XX --dry-run
  ichido dead requeue --queue orders --error BROKER_5XX --canary --yes
  ichido dead discard 01995b1c-… --reason \"test data\"
  ichido dead show 01995b1c-… --request > request.json
  ichido dead edit 01995b1c-… --request request.json
  ichido dead list --server http://127.0.0.1:4180
  ichido dead decide not-done 01995b1c-… --reason \"no such order at the broker\"
  ichido dead decide not-done --queue orders --error BROKER_5XX --dry-run
  ichido dead requeue --parked --queue orders --dry-run";

/// Arguments of `ichido dead`.
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
    /// List dead letters, newest first
    List {
        #[command(flatten)]
        filter: DeadLetterFilter,
        /// Maximum number of dead letters
        #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Cursor printed after the previous page
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
    },
    /// Show one dead letter with its history
    Show {
        /// Id of the message, its first digits, or its key
        id: String,
        /// Print only its request
        #[arg(long)]
        request: bool,
    },
    /// Requeue letters by id or filter; attempts restart at 0
    Requeue(steps::Args),
    /// Discard dead letters; `list --discarded` still shows them
    Discard(steps::Args),
    /// Replace a dead letter with a new request and key
    Edit(Edit),
    /// Decide parked messages by id or filter
    #[command(mut_arg("parked", |flag| flag.help("Parked messages: the default")))]
    Decide {
        /// What happened
        #[arg(value_enum)]
        finding: OperatorDecision,
        /// Dead letters of unknown effect instead
        #[arg(long, conflicts_with = "parked")]
        dead: bool,
        #[command(flatten)]
        args: steps::Args,
    },
    /// Stop a bulk operation that runs elsewhere
    Stop {
        /// Id of the operation, as `operations` lists it
        #[arg(value_parser = crate::id::parse)]
        operation: Uuid,
    },
    /// List bulk operations with their outcome
    Operations,
}

impl Command {
    /// Checks the flags before anything is opened.
    fn check(&self) -> Result<(), ConfigErrors> {
        match self {
            Self::List { filter, .. } => filter.query().map(drop),
            Self::Requeue(args) => args.check(LetterAction::Requeue),
            Self::Discard(args) => args.check(LetterAction::Discard),
            Self::Decide { finding, args, .. } => args.check(LetterAction::Decide(*finding)),
            Self::Show { .. } | Self::Edit(_) | Self::Stop { .. } | Self::Operations => Ok(()),
        }
    }
}

/// The `dead` commands on one API client.
struct DeadLetters {
    api: ApiClient,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Args { mut command, connect } = args;
    if let Command::Decide { dead, args, .. } = &mut command {
        args.filter.dead = *dead;
    }
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
            Command::Show { id, request } => self.show(find_message(&self.api, &id).await?, request).await,
            Command::Requeue(args) => self.step(args, LetterAction::Requeue).await,
            Command::Discard(args) => self.step(args, LetterAction::Discard).await,
            Command::Edit(edit) => self.edit(edit).await,
            Command::Decide { finding, args, .. } => self.step(args, LetterAction::Decide(finding)).await,
            Command::Stop { operation } => self.stop(operation).await,
            Command::Operations => self.operations().await,
        }
    }
}
