//! `ichido messages`: finds, shows, cancels, requeues and decides messages one at a time.
//!
//! Guarantee: a command is a request to the API, and means the same at a server and on the store. A request's bytes
//! are shown only on demand; untrusted text cannot control the terminal.
// Spec: D17, E3, E4, F2.

mod list;
mod show;

use clap::Subcommand;
use ichido_server::serve::views::MessageFacts;
use serde_json::json;

use crate::api_client::{ApiArgs, ApiClient, format};
use crate::dead::OperatorDecision;
use crate::exit::Exit;
use crate::id::find_message;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ichido messages list --queue orders --state failed --from 2h
  ichido messages list --field /symbol --value ACME --server http://127.0.0.1:4180
  ichido messages show 01995b1c
  ichido messages request 01995b1c-… > request.json
  ichido messages retry 01995b1c
  ichido messages cancel 01995b1c-… --reason \"ordered twice by phone\"
  ichido messages decide done 01995b1c-… --reason \"the broker has it\"

For many dead letters at once, use `ichido dead`.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List messages, newest first
    List(Box<list::Args>),
    /// Show the current state of a message
    Show(IdArgs),
    /// List the events of a message
    Events(IdArgs),
    /// Print the request of a message, byte for byte
    Request(IdArgs),
    /// Cancel a message; one in flight is asked to stop
    Cancel(StepArgs),
    /// Retry a failed message now, or requeue a dead letter
    #[command(visible_alias = "retry")]
    Requeue(StepArgs),
    /// Decide a message whose effect is unknown
    Decide {
        /// What happened
        #[arg(value_enum)]
        finding: OperatorDecision,
        #[command(flatten)]
        step: StepArgs,
    },
}

/// Selects a message.
#[derive(Debug, clap::Args)]
pub(crate) struct IdArgs {
    /// Id of the message, its first digits, or its key
    id: String,
}

/// Selects a message, with a reason.
#[derive(Debug, clap::Args)]
pub(crate) struct StepArgs {
    #[command(flatten)]
    which: IdArgs,
    /// Reason, for the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(args: ApiArgs<Command>) -> Result<(), Exit> {
    // Errors in the flags are reported before anything is opened.
    let query = match &args.command {
        Command::List(args) => args.query()?,
        _ => Vec::new(),
    };
    let api = ApiClient::open(args.connect).await?;
    match args.command {
        Command::List(args) => list::run(&api, query, *args).await,
        Command::Show(IdArgs { id }) => show::show(&api, find_message(&api, &id).await?).await,
        Command::Events(IdArgs { id }) => show::events(&api, find_message(&api, &id).await?).await,
        Command::Request(IdArgs { id }) => show::request(&api, find_message(&api, &id).await?).await,
        Command::Cancel(step) => change(&api, "cancel", &step, None).await,
        Command::Requeue(step) => change(&api, "requeue", &step, None).await,
        Command::Decide { finding, step } => change(&api, "decide", &step, Some(finding)).await,
    }
}

/// Takes a step and prints the message's new state.
async fn change(
    api: &ApiClient,
    word: &str,
    step: &StepArgs,
    finding: Option<OperatorDecision>,
) -> Result<(), Exit> {
    let StepArgs { which: IdArgs { id }, reason } = step;
    let id = find_message(api, id).await?;
    let mut body = json!({ "reason": reason });
    if let Some(finding) = finding {
        body["decision"] = finding.as_str().into();
    }
    let answer = api.post(&format!("/v1/messages/{id}/{word}"), &body).await?;
    api.print(&answer, |message: MessageFacts| match finding {
        Some(finding) => format!("{id}: {}", finding.describe(&message.status)),
        // The attempts of a dead letter restart at 0; those of a failed message count.
        None if word == "requeue" && message.attempts == 0 => format!("{id}: requeued"),
        None if word == "requeue" => {
            format!("{id}: due now; attempt {} of {} is next", message.attempts + 1, message.max_attempts)
        }
        None if message.status == "sending" => format!("{id}: asked to stop; see ichido messages show {id}"),
        None => format!("{id}: {}; its effect is {}", message.status, format::effect(&message.effect)),
    })
}
