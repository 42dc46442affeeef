//! Measures how close a batch of calls comes to a model's rate limit, beside other clients.
//!
//! All ask the same questions of a server that imitates Bedrock, allows a fixed rate and refuses the rest without a
//! retry hint. The server counts the calls; only the number of answered items is taken from the contender.

mod adaptive;
mod by_hand;
mod load;
mod ours;
mod table;

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use load::{ContenderRun, LlmLoad};

/// The default interval.
// Spec: B5.
const INTERVAL: Duration = Duration::from_millis(2_500);

/// Asks a throttled model many questions, in four ways, and prints how each fared.
#[derive(Parser)]
#[command(name = "ichido-bench-llm")]
struct Arguments {
    /// How many questions each contender asks.
    #[arg(long, default_value = "2000")]
    items: NonZeroU32,
    /// How many calls a second the model allows.
    #[arg(long, default_value = "50")]
    rate: NonZeroU32,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { items, rate } = Arguments::parse();
    let all = all(LlmLoad { items, rate }).await;
    print!("{}", table::text(&all));
    // A contender that answers less than was asked did not do the work that is measured.
    if all.iter().all(|ran| ran.unanswered() == 0) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the contenders one after the other, each with its own provider.
async fn all(load: LlmLoad) -> Vec<ContenderRun> {
    vec![
        load.measure("ichido", ours::run).await,
        load.measure("each item waits 2.5 s, then exponential retry", |task| by_hand::run(task, INTERVAL))
            .await,
        load.measure("exponential retry", |task| by_hand::run(task, Duration::ZERO)).await,
        load.measure("the AWS SDK's adaptive mode", adaptive::run).await,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few and fast enough that the SDK's own backoff does not make this the slowest test.
    #[tokio::test]
    async fn every_contender_gets_one_answer_per_item() {
        let number = |number| NonZeroU32::new(number).expect("not zero");
        for ran in all(LlmLoad { items: number(30), rate: number(200) }).await {
            assert_eq!(ran.answered, 30, "{}", ran.contender);
            assert_eq!(ran.seen.completed, 30, "{} had some calls completed twice", ran.contender);
            assert_eq!(ran.seen.requests, ran.seen.completed + ran.seen.throttled, "{}", ran.contender);
        }
    }
}
