//! Long runs that CI has no time for: the long form of the crash tests and of the dashboard's browser tests.
//!
//! Guarantee: nothing here decides whether a change may land; it shows a person how stable things are.

use std::path::Path;

use crate::command_line::CommandLine;
use crate::{bench, js};

/// How often a process is killed on each database.
const KILLS: &str = "500";
/// How often a process with transactional handlers is killed on each database.
const TX_KILLS: &str = "1000";
/// How many finished messages exist when query plans are read.
const PLANS_HISTORY: &str = "1000000";
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
/// How often our own services are probed, on each database. None may be accused.
const PROBE_RUNS: &str = "100";
/// How often each example runs on each database.
const EXAMPLES_ROUNDS: &str = "10";

/// Runs the long forms of the crash tests, the transactional handlers, the storm, the machines, the demo, the examples, the
/// bookmarks, the batches of questions and the offline queues, measures the dashboard with a long history, and visits every page of it
/// in every form.
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
        ("ichido", "once::probe", ("ICHIDO_PROBE_RUNS", PROBE_RUNS)),
        ("ichido-cli", "probe::ours", ("ICHIDO_PROBE_RUNS", PROBE_RUNS)),
        ("bookmarks", "api::probe", ("ICHIDO_PROBE_RUNS", PROBE_RUNS)),
    ] {
        // One test at a time: each has its own processes and database.
        let features: &[&str] = if package == "ichido-client" { &["--features", "queue"] } else { &[] };
        CommandLine::cargo(&["test", "--package", package, "--test", "it", suite])
            .and(features)
            .and(&["--", "--test-threads=1"])
            .env(name, value)
            .run(root)?;
    }
    bench::part(root, "dashboard", None)?;
    js::soak(root)
}
