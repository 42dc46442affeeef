//! The servers that a test run shares, so no test process starts its own.
//!
//! Guarantee: they stop when this is dropped or when the run dies in any way.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Child;

use crate::command_line::CommandLine;

/// Programs, built with the tests, that start a server and exit when their input closes; and the variables that pass
/// their output to tests, as `ichido_store::testing::postgres` and `nats_for_tests` name them.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("shared_postgres", &["ICHIDO_TEST_POSTGRES", "ICHIDO_TEST_TEMPLATE", "ICHIDO_TEST_NEW_FILES"]),
    ("shared_nats", &["ICHIDO_TEST_NATS"]),
];

/// Linux's file system in memory.
const MEMORY: &str = "/dev/shm";
/// Space for the write-ahead log and for the databases of concurrent tests. A container often has 64 MiB.
const MEMORY_MIN_MIB: u64 = 4096;

/// PostgreSQL, with a migrated template database, and NATS.
#[derive(Default)]
pub(super) struct Servers {
    programs: Vec<Child>,
    /// Environment variables that lead to them.
    pub(super) env: Vec<(String, String)>,
    /// Environment variables for test processes: the same, and where to keep their files.
    pub(super) tests_env: Vec<(String, String)>,
}

impl Servers {
    pub(super) fn start(root: &Path) -> Result<Self, String> {
        let mut servers = Self::default();
        let mut memory = Vec::new();
        if has_room_in_memory(root) {
            memory.push(("TMPDIR".to_owned(), MEMORY.to_owned()));
        }
        for (name, variables) in PROGRAMS {
            let program = crate::built(root).join("examples").join(name);
            let line = CommandLine::new(&program.to_string_lossy(), &[]).envs(&memory);
            let mut child = line.spawn_piped(root)?;
            let out = child.stdout.take().ok_or_else(|| format!("{name} has no output"))?;
            servers.programs.push(child);
            let mut lines = BufReader::new(out).lines().map_while(Result::ok);
            for variable in variables {
                let value =
                    lines.next().ok_or_else(|| format!("{name} did not start; see its message above"))?;
                servers.env.push(((*variable).to_owned(), value));
            }
        }
        if !may_execute_in_memory(root) {
            memory.clear();
        }
        servers.tests_env = [servers.env.as_slice(), &memory].concat();
        Ok(servers)
    }
}

/// Returns whether the servers and the tests can keep their files in memory.
///
/// A test's PostgreSQL database has about four hundred files, and creating and removing them on disk takes longer than
/// most tests; so does each sync of an SQLite file. What is synced, and when, is the same there: a killed process
/// cannot lose what it wrote on a disk either, and the suite about syncs counts the calls.
fn has_room_in_memory(root: &Path) -> bool {
    let df = CommandLine::new("df", &["--output=avail", "--block-size=1M", MEMORY]).answer(root);
    df.and_then(|answer| mebibytes(&answer)).is_some_and(|free| MEMORY_MIN_MIB <= free)
}

/// Returns whether a program may be in memory. Some tests write scripts and run them, and a container often forbids that
/// there.
fn may_execute_in_memory(root: &Path) -> bool {
    let script = "script=$(mktemp -p \"$1\") && echo exit >\"$script\" && chmod +x \"$script\" && \"$script\"; \
                  ran=$?; rm -f \"$script\"; exit $ran";
    CommandLine::new("sh", &["-c", script, "sh", MEMORY]).answer(root).is_some()
}

/// Returns the number under the heading of `df`.
fn mebibytes(answer: &str) -> Option<u64> {
    answer.lines().last()?.trim().parse().ok()
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.programs {
            drop(child.stdin.take());
            // The process is already gone if this fails.
            _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_parsed_from_df() {
        assert_eq!(mebibytes(" Avail\n 23894\n"), Some(23_894));
        assert_eq!(mebibytes("df: no such file"), None);
        assert_eq!(mebibytes(""), None);
    }
}
