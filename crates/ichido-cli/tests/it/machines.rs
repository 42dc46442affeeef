//! Several `ichido serve` on one PostgreSQL, as processes: nodes that die, stand still or lose the database, a database that
//! fails over, and a release that is rolled out (SPEC F4, F6).

mod database;
mod failover;
mod faulty_link;
mod load;
mod node;
mod three;
mod upgrade;

use std::time::Duration;

/// How often what befalls the machines does; the long form is asked for by this variable.
const ROUNDS: usize = 1;
const ROUNDS_VARIABLE: &str = "ICHIDO_MACHINES_ROUNDS";
/// The longest that one round of a test may take, beside several compilers.
const ROUND_MAX: Duration = Duration::from_mins(8);

fn rounds() -> usize {
    std::env::var(ROUNDS_VARIABLE).map_or(ROUNDS, |text| text.parse().expect("a number of rounds"))
}

/// A case that waits for ever has failed, and says so.
async fn in_time(rounds: usize, case: impl Future<Output = ()>) {
    let rounds = u32::try_from(rounds).expect("not so many");
    tokio::time::timeout(ROUND_MAX * rounds, case).await.expect("the case ends");
}
