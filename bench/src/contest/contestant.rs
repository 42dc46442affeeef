//! The contestants: ours, the least SQL for the same work, and the peers, each at one version.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::protocol::Part;

/// Where `cargo xtask bench` installs the peers, from the repository's root.
const INSTALLED: &str = "target/peers";

/// A library or program that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// How it is started.
    pub(crate) program: Program,
    /// Messages that it drains. Slow contestants get fewer, so a round of all takes minutes: a rate hardly depends on it.
    pub(crate) messages: usize,
    /// Counts its messages that wait or run, on PostgreSQL. The least SQL has none: its parts have tables of their own.
    pub(crate) unfinished: Option<&'static str>,
    /// What is left of a message that was run.
    pub(crate) keeps: &'static str,
    /// The settings of its drain.
    pub(crate) settings: &'static str,
}

/// How a contestant is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// This program, on PostgreSQL.
    Ours,
    /// This program: the least SQL.
    Floor,
    /// A binary of `bench/peers/rust`.
    Rust(&'static str),
    /// A script of `bench/peers/npm`.
    Node(&'static str),
    /// A script of `bench/peers/python`.
    Python(&'static str),
}

/// All contestants, in the order of a round.
pub(crate) const CONTESTANTS: [Contestant; 10] = [
    Contestant {
        name: "Ichido",
        version: env!("CARGO_PKG_VERSION"),
        program: Program::Ours,
        messages: 100_000,
        unfinished: Some(
            "SELECT (SELECT count(*) FROM ichido.messages) - (SELECT count(*) FROM ichido.events WHERE to_state = 'sent')",
        ),
        keeps: "the message and its history",
        settings: "1 worker, parallelism 1,000, batches of 1,000, 8 connections",
    },
    Contestant {
        name: "graphile_worker",
        version: "0.14.1",
        program: Program::Rust("graphile"),
        messages: 100_000,
        unfinished: Some("SELECT count(*) FROM graphile_worker._private_jobs"),
        keeps: "nothing",
        settings: "as in its own benchmark: concurrency 500, local queues of 5,000, completions batched for 5 ms; but 2 local queues, 20 connections",
    },
    Contestant {
        name: "riverqueue",
        version: "0.5.0",
        program: Program::Rust("riverqueue"),
        messages: 100_000,
        unfinished: Some("SELECT count(*) FROM river_job WHERE state <> 'completed'"),
        keeps: "the job, for 24 hours",
        settings: "as in its own benchmark: 2,000 workers, fetch cooldown 2 ms, polled every 20 ms; 20 connections",
    },
    Contestant {
        name: "awa",
        version: "0.6.9",
        program: Program::Rust("awa"),
        messages: 50_000,
        // Its view of all jobs takes minutes for thousands of completed ones.
        unfinished: Some(
            "SELECT (SELECT count(*) FROM awa.ready_entries WHERE queue = 'orders') \
             - (SELECT count(*) FROM awa.done_entries WHERE queue = 'orders') \
             - (SELECT coalesce(sum(completed_count), 0)::bigint FROM awa.receipt_completion_batches WHERE queue = 'orders')",
        ),
        keeps: "the job, in its partitions until pruned",
        settings: "its queue storage, 1,024 workers, 2 claimers of 512 at a time, polled every 50 ms, 20 connections",
    },
    Contestant {
        name: "apalis",
        version: "1.0.0",
        program: Program::Rust("apalis"),
        messages: 50_000,
        unfinished: Some("SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'"),
        keeps: "the job",
        settings: "batches of 5,000, no task locks, notifications, 20 connections",
    },
    Contestant {
        name: "graphile-worker",
        version: "0.18.0",
        program: Program::Node("graphile-worker.js"),
        messages: 30_000,
        unfinished: Some("SELECT count(*) FROM graphile_worker._private_jobs"),
        keeps: "nothing",
        settings: "as in its own benchmark: concurrency 24, completions batched, 25 connections; but a local queue of 5,000",
    },
    Contestant {
        name: "pg-boss",
        version: "12.35.0",
        program: Program::Node("pg-boss.js"),
        messages: 30_000,
        unfinished: Some("SELECT count(*) FROM pgboss.job WHERE state < 'completed'"),
        keeps: "the job, for 7 days",
        settings: "batches of 5,000, fetched again at once while they are full, 2 workers, 20 connections",
    },
    Contestant {
        name: "procrastinate",
        version: "3.10.0",
        program: Program::Python("procrastinate_peer.py"),
        messages: 2_000,
        unfinished: Some("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"),
        keeps: "the job and its events",
        settings: "concurrency 30, 20 connections",
    },
    Contestant {
        name: "pgqueuer",
        version: "1.6.0",
        program: Program::Python("pgqueuer_peer.py"),
        messages: 20_000,
        unfinished: Some("SELECT count(*) FROM pgqueuer"),
        keeps: "a log line for each job",
        settings: "asyncpg and uvloop as in its own benchmark, batches of 500",
    },
    Contestant {
        name: "least SQL",
        version: "",
        program: Program::Floor,
        messages: 100_000,
        unfinished: None,
        keeps: "the payload",
        settings: "2 clients, batches of 1,000, one lease row a batch; no retries, keys or timeouts",
    },
];

impl Contestant {
    /// Returns this program as a contestant.
    pub(crate) fn this(role: &str) -> Command {
        with(Command::new(std::env::current_exe().expect("this program")), role)
    }

    /// Returns the command that runs a program, without its task.
    pub(crate) fn command_of(program: Program) -> Command {
        let (installed, source) = (root().join(INSTALLED), root().join("bench/peers"));
        match program {
            Program::Ours => Self::this("contest-ours"),
            Program::Floor => Self::this("contest-floor"),
            Program::Rust(binary) => Command::new(installed.join("rust/release").join(binary)),
            Program::Node(script) => {
                let npm = installed.join("npm");
                // The peers need a newer Node than Debian has; npm installs it beside them where it can.
                let own = npm.join("node_modules/.bin/node");
                let node = if own.exists() { own } else { PathBuf::from("node") };
                with(Command::new(node), npm.join(script))
            }
            Program::Python(script) => {
                with(Command::new(installed.join("python/bin/python")), source.join("python").join(script))
            }
        }
    }

    /// Returns whether it takes part.
    pub(crate) fn does(&self, part: Part) -> bool {
        part != Part::Serve && (self.program != Program::Floor || part != Part::Pickup)
    }

    /// Returns the language of its users.
    pub(crate) fn language(&self) -> &'static str {
        match self.program {
            Program::Ours | Program::Rust(_) => "Rust",
            Program::Floor => "SQL",
            Program::Node(_) => "Node",
            Program::Python(_) => "Python",
        }
    }

    /// Returns whether it is measured for comparison, and not ours or the floor.
    pub(crate) fn is_peer(&self) -> bool {
        !matches!(self.program, Program::Ours | Program::Floor)
    }
}

fn with(mut command: Command, argument: impl AsRef<std::ffi::OsStr>) -> Command {
    command.arg(argument);
    command
}

/// Returns the repository's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of the repository").to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how the manifest of its kind pins a peer.
    fn pinned(contestant: &Contestant) -> (&'static str, String) {
        let Contestant { name, version, .. } = contestant;
        match contestant.program {
            Program::Rust(_) => ("rust/Cargo.toml", format!("={version}\"")),
            Program::Node(_) => ("npm/package.json", format!("\"{name}\": \"{version}\"")),
            Program::Python(_) => ("python/requirements.txt", format!("{name}=={version}\n")),
            Program::Ours | Program::Floor => panic!("not a peer"),
        }
    }

    #[test]
    fn each_peer_is_pinned_to_its_version() {
        for contestant in CONTESTANTS.iter().filter(|contestant| contestant.is_peer()) {
            let (file, line) = pinned(contestant);
            let path = root().join("bench/peers").join(file);
            let text = std::fs::read_to_string(&path).expect("a manifest");
            assert!(text.contains(&line), "{} has no {line}", path.display());
            assert!(text.contains(contestant.name), "{} has no {}", path.display(), contestant.name);
        }
    }
}
