//! `ichido messages`: messages are found, looked at, withdrawn, sent again and decided, one at a time (SPEC D17, E3, E4, F2).
//!
//! Guarantee: a command is a request to the API, and means the same at a server and straight on the store. A request's bytes are shown only
//! when they are asked for; what others wrote cannot steer the terminal.

mod list;
mod look;

use clap::Subcommand;
use ichido_server::serve::shown::MessageFacts;
use serde_json::json;
use uuid::Uuid;

use crate::dead::Finding;
use crate::exit::Exit;
use crate::reach::{Asked, Reach};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ichido messages list --queue orders --state failed --from 2h
  ichido messages list --field /symbol --value ACME --server http://127.0.0.1:4180
  ichido messages show 01995b1c-…
  ichido messages request 01995b1c-… > request.json
  ichido messages cancel 01995b1c-… --reason \"ordered twice by phone\"
  ichido messages decide done 01995b1c-… --reason \"the broker has it\"

Many dead messages at once are looked after by `ichido dead`.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List messages, the newest first
    List(Box<list::Args>),
    /// Show a message as it stands
    Show(Id),
    /// List all that happened to a message
    Events(Id),
    /// Write the request of a message to standard output, byte for byte
    Request(Id),
    /// Withdraw a message that waits to be sent
    Cancel(Step),
    /// Send a dead message again, where its queue allows it; the count of tries begins at 0
    Requeue(Step),
    /// Say what you found out about a message whose effect is unknown
    Decide {
        /// What you found out
        #[arg(value_enum)]
        finding: Finding,
        #[command(flatten)]
        step: Step,
    },
}

/// Which message.
#[derive(Debug, clap::Args)]
pub(crate) struct Id {
    /// Its id
    #[arg(value_parser = crate::id::parse)]
    id: Uuid,
}

/// Which message, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Step {
    #[command(flatten)]
    which: Id,
    /// Why, or how you know; kept in its history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Does as it is told.
pub(crate) async fn run(args: Asked<Command>) -> Result<(), Exit> {
    // What is wrong with the flags is found before anything is opened.
    let query = match &args.command {
        Command::List(args) => args.query()?,
        _ => Vec::new(),
    };
    let reach = Reach::open(args.whom).await?;
    match args.command {
        Command::List(args) => list::run(&reach, query, *args).await,
        Command::Show(Id { id }) => look::show(&reach, id).await,
        Command::Events(Id { id }) => look::events(&reach, id).await,
        Command::Request(Id { id }) => look::request(&reach, id).await,
        Command::Cancel(step) => change(&reach, "cancel", &step, None).await,
        Command::Requeue(step) => change(&reach, "requeue", &step, None).await,
        Command::Decide { finding, step } => change(&reach, "decide", &step, Some(finding)).await,
    }
}

/// Takes a step, and says how the message stands then.
async fn change(reach: &Reach, word: &str, step: &Step, finding: Option<Finding>) -> Result<(), Exit> {
    let Step { which: Id { id }, reason } = step;
    let mut told = json!({ "reason": reason });
    if let Some(finding) = finding {
        told["decision"] = finding.decision().into();
    }
    let answer = reach.post(&format!("/v1/messages/{id}/{word}"), &told).await?;
    reach.say(&answer, |message: MessageFacts| {
        format!("{id} is {}, its effect {}", message.status, look::words(&message.effect))
    })
}
