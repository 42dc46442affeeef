//! Several `ichido serve` processes on one PostgreSQL.
//!
//! Nodes die, stall or lose the database; the database fails over; a release is rolled out.
// Spec: F4, F6.

mod database;
mod failover;
mod faulty_link;
mod load;
mod node;
mod three;
mod upgrade;

use std::time::Duration;

/// How often the failures are repeated; the variable sets more rounds.
const ROUNDS: usize = 1;
const ROUNDS_VARIABLE: &str = "ICHIDO_MACHINES_ROUNDS";
/// The time limit of one round, beside several compilers.
const MAX_ROUND: Duration = Duration::from_mins(8);

fn rounds() -> usize {
    std::env::var(ROUNDS_VARIABLE).map_or(ROUNDS, |text| text.parse().expect("a number of rounds"))
}

/// Fails a test that never ends.
async fn in_time(rounds: usize, case: impl Future<Output = ()>) {
    let rounds = u32::try_from(rounds).expect("not so many");
    tokio::time::timeout(MAX_ROUND * rounds, case).await.expect("the case ends");
}
