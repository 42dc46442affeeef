//! Long runs that CI has no time for: the benchmarks and the long form of the crash tests.
//!
//! Guarantee: nothing here decides whether a change may land; it shows a person how fast and how stable things are.

use std::num::NonZeroU32;
use std::path::Path;

use crate::chore::BenchDatabase;
use crate::command_line::CommandLine;

/// How often a process is killed on each database.
const KILLS: &str = "500";
/// How often a process with transactional handlers is killed on each database.
const TX_KILLS: &str = "1000";
/// How many finished messages exist when query plans are read.
const PLANS_HISTORY: &str = "1000000";
/// The peer that the worker is measured beside.
const PEER: &str = "bench/peers/graphile/Cargo.toml";
/// How many messages the storm delivers, on each database and with each kind of broker.
const STORM_MESSAGES: &str = "20000";
/// How often nodes fail, and the database fails over.
const MACHINES_ROUNDS: &str = "20";
/// How many orders, payments and faxes the demo sends after its story: about five minutes of them.
const DEMO_SENT: &str = "240";
/// How often a batch of questions to a model is killed.
const JUDGE_KILLS: &str = "200";
/// How often the bookmarks service is killed on each database.
const BOOKMARKS_KILLS: &str = "500";
/// How often an offline queue is killed, as a library and as a command.
const QUEUE_KILLS: &str = "200";
/// How often each example runs on each database.
const EXAMPLES_ROUNDS: &str = "10";

/// Measures a part beside the least work for the same result, on both databases or on one.
///
/// The worker is also measured beside a peer on PostgreSQL, which is a separate crate. Accepting over HTTP is measured
/// on the program.
pub fn bench(root: &Path, part: &str, database: Option<BenchDatabase>) -> Result<(), String> {
    if part == "outbox" && database != Some(BenchDatabase::Sqlite) {
        CommandLine::cargo(&["build", "--release", "--locked", "--manifest-path", PEER]).run(root)?;
    }
    if part == "serve" {
        CommandLine::cargo(&["build", "--release", "--package", "ichido-cli"]).run(root)?;
    }
    let line = CommandLine::cargo(&["run", "--release", "--package", "ichido-bench", "--", part]);
    line.and(&database.map(BenchDatabase::word).into_iter().collect::<Vec<_>>()).run(root)
}

/// Measures a batch of calls to a throttled model; a separate crate, so the others need not build AWS's SDK.
pub fn bench_llm(root: &Path, items: Option<NonZeroU32>, rate: Option<NonZeroU32>) -> Result<(), String> {
    let given = [("--items", items), ("--rate", rate)];
    let options = given.iter().filter_map(|(name, count)| Some([(*name).to_owned(), (*count)?.to_string()]));
    let options: Vec<String> = options.flatten().collect();
    CommandLine::cargo(&["run", "--release", "--package", "ichido-bench-llm", "--"])
        .and(&options.iter().map(String::as_str).collect::<Vec<_>>())
        .run(root)
}

/// Runs the long forms of the crash tests, the transactional handlers, the storm, the machines, the demo, the examples, the
/// bookmarks, the batches of questions and the offline queues.
pub fn soak(root: &Path) -> Result<(), String> {
    for (package, suite, (name, value)) in [
        ("ichido-store", "crash::", ("ICHIDO_CRASH_KILLS", KILLS)),
        ("ichido", "worker::tx::kills", ("ICHIDO_TX_KILLS", TX_KILLS)),
        ("ichido-store", "plans::", ("ICHIDO_PLANS_HISTORY", PLANS_HISTORY)),
        ("ichido-cli", "outbox::storm", ("ICHIDO_STORM_MESSAGES", STORM_MESSAGES)),
        ("ichido-cli", "machines::", ("ICHIDO_MACHINES_ROUNDS", MACHINES_ROUNDS)),
        ("ichido-cli", "demo::", ("ICHIDO_DEMO_SENT", DEMO_SENT)),
        ("ichido-cli", "examples::", ("ICHIDO_EXAMPLES_ROUNDS", EXAMPLES_ROUNDS)),
        ("bookmarks", "kill::", ("BOOKMARKS_KILLS", BOOKMARKS_KILLS)),
        ("ichido-cli", "judge::crashing", ("ICHIDO_JUDGE_KILLS", JUDGE_KILLS)),
        ("ichido-client", "offline::crash", ("ICHIDO_QUEUE_KILLS", QUEUE_KILLS)),
        ("ichido-cli", "offline::crash", ("ICHIDO_QUEUE_KILLS", QUEUE_KILLS)),
    ] {
        // One test at a time: each has its own processes and database.
        let features: &[&str] = if package == "ichido-client" { &["--features", "queue"] } else { &[] };
        CommandLine::cargo(&["test", "--package", package, "--test", "it", suite])
            .and(features)
            .and(&["--", "--test-threads=1"])
            .env(name, value)
            .run(root)?;
    }
    Ok(())
}
