//! `ichido destinations`: shows how fast destinations are called and which are paused, pauses them, and ends pauses.
//!
//! Guarantee: a command is a request to the API, and means the same at a server and on the store. The audit trail
//! records who paused or resumed a destination.
// Spec: D6.

use clap::Subcommand;
use ichido_core::text::table::Column;
use ichido_core::text::{percent_encoded, visible};
use ichido_server::serve::views::Destination;
use serde_json::json;

use crate::api_client::{ApiArgs, ApiClient, List};
use crate::exit::Exit;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ichido destinations list
  ichido destinations resume broker --server http://127.0.0.1:4180";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List destinations with pace, pause and circuit state
    List,
    /// Pause a destination: no worker calls it
    Pause {
        /// Name of the destination
        destination: String,
    },
    /// Resume a paused destination
    Resume {
        /// Name of the destination
        destination: String,
    },
}

/// Runs the command.
pub(crate) async fn run(args: ApiArgs<Command>) -> Result<(), Exit> {
    let api = ApiClient::open(args.connect).await?;
    match args.command {
        Command::List => {
            let none = "no destinations; they come from the configuration, so pass --config";
            api.list(List { none, ..List::new("/v1/destinations", "destinations", HEAD) }, row).await
        }
        Command::Pause { destination } => {
            let answer = api.post(&target(&destination, "pause"), &json!({})).await?;
            api.print(&answer, |one: Destination| format!("paused {}; resume it later", visible(&one.name)))
        }
        Command::Resume { destination } => {
            let before: Vec<Destination> = api.items("/v1/destinations", "destinations").await?;
            let was = |is: fn(&Destination) -> bool| before.iter().any(|it| it.name == destination && is(it));
            let answer = api.post(&target(&destination, "resume"), &json!({})).await?;
            api.print(&answer, |Destination { name, .. }| match visible(&name) {
                name if was(|one| one.paused_until.is_some()) => {
                    format!("resumed {name}; one call probes it first")
                }
                name if was(|one| one.paused) => format!("resumed {name}; workers call it again"),
                name => format!("{name} was not paused; nothing was changed"),
            })
        }
    }
}

const HEAD: [Column; 7] = [
    Column::text("DESTINATION"),
    Column::text("KIND").spare(),
    Column::free("ADDRESS"),
    Column::text("CALLS/S"),
    Column::text("SLOWED"),
    Column::next("PAUSED UNTIL"),
    Column::state("CIRCUIT"),
];

fn row(destination: Destination) -> [String; 7] {
    let Destination { name, kind, address, rate, slowed, paused, paused_until, circuit, .. } = destination;
    [
        name,
        kind,
        address,
        rate.map_or_else(|| "no limit".to_owned(), |rate| format!("{rate:.2}")),
        if slowed { "yes" } else { "no" }.to_owned(),
        paused.then(|| "resumed".to_owned()).or(paused_until).unwrap_or_else(|| "no".to_owned()),
        circuit,
    ]
}

/// Returns the path of an action. A destination may have any name, which is encoded as one segment.
fn target(name: &str, action: &str) -> String {
    format!("/v1/destinations/{}/{action}", percent_encoded(name, b"_-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_name_is_one_path_segment() {
        for (name, segment) in
            [("broker-1_b", "broker-1_b"), ("a/../b?c d", "a%2F%2E%2E%2Fb%3Fc%20d"), ("", "")]
        {
            assert_eq!(target(name, "pause"), format!("/v1/destinations/{segment}/pause"));
        }
    }
}
