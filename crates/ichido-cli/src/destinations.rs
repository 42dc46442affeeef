//! `ichido destinations`: how fast destinations are called, which are paused, and the end of a pause (SPEC D6).
//!
//! Guarantee: a command is a request to the API, and means the same at a server and straight on the store. Who ended a pause is in the audit
//! trail.

use clap::Subcommand;
use ichido_core::text::table;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::out;
use crate::reach::{self, Reach};

const EXAMPLES: &str = "\
Examples:
  ichido destinations list
  ichido destinations resume broker --server http://127.0.0.1:4180";

/// Arguments of `ichido destinations`.
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
    /// List destinations: calls a second, until when each is paused, and whether it counts as down
    List,
    /// End the pause that a destination asked for; one call asks it first
    Resume {
        /// Its name
        destination: String,
    },
}

#[derive(Deserialize)]
struct Destinations {
    destinations: Vec<Value>,
}

#[derive(Deserialize)]
struct Destination {
    name: String,
    kind: String,
    address: String,
    rate: Option<f64>,
    slowed: bool,
    paused_until: Option<String>,
    circuit: String,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Args { command, reach } = args;
    match command {
        Command::List => list(&Reach::open("destinations list", reach).await?).await,
        Command::Resume { destination } => resume(reach, &destination).await,
    }
}

async fn list(reach: &Reach) -> Result<(), Exit> {
    let Destinations { destinations } = reach::read(&reach.get("/v1/destinations").await?)?;
    if reach.json {
        return destinations.into_iter().try_for_each(out::line);
    }
    if destinations.is_empty() {
        return out::line("there are no destinations; they are in the configuration, so pass --config");
    }
    let rows = destinations.into_iter().map(|one| reach::shape(one).map(row));
    let rows = rows.collect::<Result<Vec<_>, Exit>>()?;
    out::say(&table(HEAD, rows.into_iter()))
}

const HEAD: [&str; 7] =
    ["DESTINATION", "KIND", "ADDRESS", "CALLS A SECOND", "SLOWED", "PAUSED UNTIL", "CIRCUIT"];

fn row(destination: Destination) -> [String; 7] {
    let Destination { name, kind, address, rate, slowed, paused_until, circuit } = destination;
    [
        name,
        kind,
        address,
        rate.map_or_else(|| "no limit".to_owned(), |rate| format!("{rate:.2}")),
        if slowed { "yes" } else { "no" }.to_owned(),
        paused_until.unwrap_or_else(|| "no".to_owned()),
        circuit,
    ]
}

async fn resume(args: reach::Whom, destination: &str) -> Result<(), Exit> {
    let reach = Reach::open("destinations resume", args).await?;
    let answer = reach.post(&format!("/v1/destinations/{}/resume", encoded(destination)), &json!({})).await?;
    if reach.json {
        return out::line(reach::read::<Value>(&answer)?);
    }
    let Destination { name, .. } = reach::read(&answer)?;
    out::line(format_args!(
        "{name} is not paused; one call asks it, and the others follow when that is accepted"
    ))
}

/// A name as one segment of a path: a destination may have any.
fn encoded(name: &str) -> String {
    let mut segment = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"_-".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            segment.push('%');
            let digits = [byte >> 4, byte & 0xf].map(|digit| char::from_digit(u32::from(digit), 16));
            segment.extend(digits.into_iter().flatten().map(|digit| digit.to_ascii_uppercase()));
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_of_a_path() {
        for (name, segment) in
            [("broker-1_b", "broker-1_b"), ("a/../b?c d", "a%2F%2E%2E%2Fb%3Fc%20d"), ("", "")]
        {
            assert_eq!(encoded(name), segment);
        }
    }
}
