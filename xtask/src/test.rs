//! The one test command: everything CI checks.
//!
//! Guarantee: it succeeds only if every step ran and succeeded. It names each failed step and says how to run it alone.
//! CI runs this and nothing else, so a pass here is a pass there.
//!
//! First everything is compiled while the tools are installed. Then the tests run beside the browser's tests and the
//! docs. Many tests have time limits, and more compilers beside them would make them fail on a busy machine.

mod binaries;
mod history;
mod runner;
mod servers;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use self::binaries::{build, linted};
use self::runner::Tests;
use self::servers::Servers;
use crate::command_line::CommandLine;
use crate::fuzz_api::{self, FuzzLength};
use crate::packages::{BEDROCK, BENCH, all_but, usual};
use crate::tidy::arrows;
use crate::{js, rustdoc, tools};

/// Feature sets that users may build a library with and that no other step compiles.
const FEATURES_ALONE: [&[&str]; 4] = [
    &["--package", "ichido"],
    &["--package", "ichido", "--no-default-features"],
    &["--package", "ichido-client", "--no-default-features"],
    &["--package", "ichido-store"],
];
/// Cargo's target folder for what is compiled and not run.
const CHECKED_FOLDER: &str = "target/checked";

/// How much to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What CI checks: everything but AWS and licences, unless a change concerns them.
    Usual,
    /// Everything.
    All,
    /// Format, lints, and the tests of changed crates, without process suites and slow suites.
    Quick,
}

/// Runs the steps and prints how long each took.
pub fn run(root: &Path, scope: Scope) -> Result<(), String> {
    let run = TestRun { root, ran: Mutex::new(Vec::new()) };
    let start = now();
    let outcome = if scope == Scope::Quick { run.quick() } else { run.all(scope == Scope::All) };
    let ran = run.ran.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("\n{}", table(&ran, now().duration_since(start)));
    outcome
}

struct TestRun<'a> {
    root: &'a Path,
    ran: Mutex<Vec<TimedStep>>,
}

/// A completed step, and how long it took.
struct TimedStep {
    name: &'static str,
    took: Duration,
}

/// What to check in addition to the usual.
struct Lanes {
    bedrock: bool,
    bench: bool,
    deny: bool,
    fuzz: bool,
    /// Checks that no change triggers: they cost minutes and find little.
    rest: bool,
}

impl TestRun<'_> {
    fn quick(&self) -> Result<(), String> {
        let root = self.root;
        let packages = arrows::packages(root)?;
        let changed = history::changed_crates(root, &packages)?;
        let mut chosen = history::with_users(changed.clone(), &packages);
        chosen.retain(|package| !BEDROCK.contains(&package.as_str()));
        println!("crates to test: {}", chosen.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
        self.format()?;
        // The same build as in the full run, so neither recompiles the other's work. Only changed crates are built.
        let with_bench = changed.contains(BENCH);
        let binaries = self.step("build", || build(root, &usual(with_bench)))?;
        let binaries: Vec<_> =
            binaries.into_iter().filter(|binary| chosen.contains(&binary.package)).collect();
        let servers = self.step("servers", || Servers::start(root))?;
        let keep =
            |package: &str, test: Option<&str>| runner::is_quick(package, test, changed.contains(package));
        let at_once = runner::AT_ONCE_IF_QUICK;
        let tests =
            Tests { name: "tests", binaries: &binaries, keep: &keep, env: &servers.tests_env, at_once };
        self.step("tests", || tests.run(root))
    }

    fn all(&self, everything: bool) -> Result<(), String> {
        let root = self.root;
        self.format()?;
        let lanes = Lanes {
            bedrock: everything || history::BEDROCK.is_due(root) || history::aws_changed(root),
            bench: everything || history::BENCH.is_due(root),
            deny: everything || history::dependencies_changed(root),
            fuzz: everything || history::FUZZ.is_due(root),
            rest: everything,
        };
        let binaries = std::thread::scope(|scope| {
            let tools = scope.spawn(|| self.step("tools", || tools::ensure(root)));
            let checked = scope.spawn(|| self.checked(&lanes));
            let built = self.step("build", || build(root, &usual(lanes.bench)));
            both(both(joined(tools), joined(checked)), built)
        })?;
        let binaries = binaries.1;
        let servers = self.step("servers", || Servers::start(root))?;
        std::thread::scope(|scope| {
            let web = scope.spawn(|| self.web(&servers));
            let docs = scope.spawn(|| self.line("docs", &documented(root).envs(&servers.env).nice()));
            let at_once = runner::AT_ONCE;
            let tests = Tests {
                name: "tests",
                binaries: &binaries,
                keep: &|_, _| true,
                env: &servers.tests_env,
                at_once,
            };
            let tests = self.step("tests", || tests.run(root));
            both(both(tests, joined(web)), joined(docs))
        })?;
        // Not beside the tests: it replaces the `ichido` that they start.
        if lanes.bedrock { self.step("bedrock", || self.bedrock(&servers)) } else { Ok(()) }
    }

    fn format(&self) -> Result<(), String> {
        self.step("format", || CommandLine::cargo(&["fmt", "--all", "--check"]).run(self.root))
    }

    /// Runs the steps that start the built programs.
    fn web(&self, servers: &Servers) -> Result<(), String> {
        self.step("js", || js::run(self.root, &servers.env))?;
        self.step("fuzz-api", || fuzz_api::run(self.root, FuzzLength::Short))
    }

    /// Compiles what is not run. It has its own target folder, so cargo lets it run beside the build.
    fn checked(&self, lanes: &Lanes) -> Result<(), String> {
        let root = self.root;
        let cargo =
            |arguments: &[&str]| CommandLine::cargo(arguments).env("CARGO_TARGET_DIR", CHECKED_FOLDER);
        if lanes.rest {
            for features in FEATURES_ALONE {
                self.line("features", &cargo(&["check", "--locked"]).and(features))?;
            }
            let doc =
                cargo(&["doc", "--locked", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings");
            self.line("all docs", &doc)?;
        }
        if lanes.fuzz {
            // Nothing is linked, so libFuzzer itself need not be compiled.
            let check = cargo(&["check", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
            self.line("fuzz", &check.env("CUSTOM_LIBFUZZER_PATH", "/unused/libfuzzer.a"))?;
        }
        if lanes.deny {
            let deny = self.step("cargo-deny", || tools::deny::ensure(root))?;
            let checks = ["check", "--hide-inclusion-graph", "licenses", "bans", "sources"];
            self.line("deny", &deny.and(&checks))?;
        }
        Ok(())
    }

    /// Lints, builds and tests the crates that compile AWS's SDK.
    fn bedrock(&self, servers: &Servers) -> Result<(), String> {
        let chosen = with_aws();
        same_features(self.root)?;
        let binaries = build(self.root, &chosen)?;
        // The other tests have run without the feature.
        let keep = |package: &str, test: Option<&str>| {
            BEDROCK.contains(&package) || test.is_some_and(|test| test.starts_with("judge_bedrock::"))
        };
        let at_once = runner::AT_ONCE;
        Tests { name: "bedrock", binaries: &binaries, keep: &keep, env: &servers.tests_env, at_once }
            .run(self.root)?;
        // Selected by path: selecting the crate would rebuild its dependencies with only its features.
        let examples = linted(&["test", "--doc"], &chosen).and(&["--", "ichido-bedrock/src"]);
        let (printed, outcome) = examples.run_captured(self.root);
        outcome.map_err(|error| format!("{printed}\n{error}"))
    }

    /// Runs a step that is one command.
    fn line(&self, name: &'static str, line: &CommandLine) -> Result<(), String> {
        self.step(name, || {
            let (printed, outcome) = line.run_captured(self.root);
            println!("\n== {name}\n{printed}");
            outcome.map_err(|error| format!("{error}\nTo run it alone:\n\n  {line}"))
        })
    }

    fn step<T>(&self, name: &'static str, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let start = now();
        let outcome = work();
        let took = now().duration_since(start);
        println!("\n== {name}: {:.0} s", took.as_secs_f64());
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).push(TimedStep { name, took });
        outcome.map_err(|error| format!("step `{name}`: {error}"))
    }
}

/// Builds the pages of every library and runs the examples in them.
fn documented(root: &Path) -> CommandLine {
    // This program as the build has made it, in place of the one that is running.
    let us = crate::built(root).join("xtask").display().to_string();
    // Not cargo's own folder: pages built despite warnings must not count as checked.
    let pages = root.join("target/checked-pages").display().to_string();
    let line = linted(&["test", "--doc"], &usual(false));
    line.env("RUSTDOC", &us).env(rustdoc::FOLDER_VARIABLE, &pages)
}

/// Returns the arguments that select all crates of a usual run, with AWS's SDK.
fn with_aws() -> Vec<String> {
    [all_but(&[BENCH]), vec!["--features".to_owned(), "ichido-cli/bedrock".to_owned()]].concat()
}

/// Fails if the build with AWS's SDK enables other features of a crate than the usual build: all of our crates would be
/// recompiled.
fn same_features(root: &Path) -> Result<(), String> {
    let features = |chosen: &[String]| {
        let line = CommandLine::cargo(&["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"])
            .and_all(chosen);
        let (printed, outcome) = line.run_captured(root);
        let lines = printed.lines().map(|line| line.trim_end_matches(" (*)").to_owned());
        outcome.map(|()| lines.collect::<BTreeSet<String>>()).map_err(|error| format!("{printed}\n{error}"))
    };
    let (usual, with_aws) = (features(&usual(false))?, features(&with_aws())?);
    let differ = usual.difference(&with_aws).filter(|package| !package.starts_with("ichido-cli "));
    let differ: Vec<&str> = differ.map(String::as_str).collect();
    if differ.is_empty() {
        return Ok(());
    }
    Err(format!(
        "these crates have other features in the build with AWS's SDK; enable the same ones in xtask/Cargo.toml: {}",
        differ.join("; ")
    ))
}

/// Returns both results, or all errors.
fn both<A, B>(one: Result<A, String>, other: Result<B, String>) -> Result<(A, B), String> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) => Err(format!("{one}\n\n{other}")),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("a step panicked; see its message above".to_owned()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a step took is for a person; nothing is decided by it"
)]
fn now() -> Instant {
    Instant::now()
}

/// Renders a row for each step, in the order in which they ended. Steps overlap, so the total is less than their sum.
fn table(ran: &[TimedStep], took: Duration) -> String {
    let total = TimedStep { name: "total", took };
    let rows = ran.iter().chain([&total]);
    let rows: Vec<String> =
        rows.map(|step| format!("{:<10}{:>7.1} s", step.name, step.took.as_secs_f64())).collect();
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_step_and_the_total() {
        let ran = [
            TimedStep { name: "format", took: Duration::from_millis(440) },
            TimedStep { name: "build", took: Duration::from_secs(12) },
        ];
        let total = Duration::from_secs(12);
        assert_eq!(table(&ran, total), "format        0.4 s\nbuild        12.0 s\ntotal        12.0 s");
    }

    #[test]
    fn a_failed_step_is_timed_and_named() {
        let run = TestRun { root: Path::new("."), ran: Mutex::new(Vec::new()) };
        let outcome: Result<(), String> = run.step("build", || Err("no".to_owned()));
        assert_eq!(outcome, Err("step `build`: no".to_owned()));
        assert_eq!(run.ran.into_inner().expect("no panic").len(), 1);
    }

    #[test]
    fn all_failures_of_parallel_steps_are_reported() {
        let failed = |what: &str| -> Result<(), String> { Err(what.to_owned()) };
        assert_eq!(both(failed("a"), failed("b")).map(drop), failed("a\n\nb"));
        assert_eq!(both(Ok(1), failed("b")).map(drop), failed("b"));
        assert_eq!(both(Ok(1), Ok(2)), Ok((1, 2)));
    }
}
