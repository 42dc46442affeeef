//! The one test command: everything CI checks, in the order in which a person would want to know.
//!
//! Guarantee: it succeeds only when every step ran and succeeded. It stops at the first that fails, names
//! it, and says how to run it alone. CI runs this and nothing else, so green here is green there.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::fuzz_api::{self, Form};
use crate::js;
use crate::line::Line;
use crate::tools::{self, Tools};

/// What the command is not built with unless somebody wants it.
const FEATURES: &str = "ichido-cli/bedrock,ichido-cli/otlp";

/// Runs every step and prints how long each took.
pub fn run(root: &Path) -> Result<(), String> {
    let mut ran = Vec::new();
    let outcome = run_steps(root, &mut ran);
    println!("\n{}", table(&ran));
    if outcome.is_err() {
        println!(); // The complaint comes next, and is no row of the table.
    }
    outcome
}

/// A step that was run, and how long it took.
struct Ran {
    name: &'static str,
    took: Duration,
}

fn run_steps(root: &Path, ran: &mut Vec<Ran>) -> Result<(), String> {
    let tools = timed("tools", ran, || tools::ensure(root))?;
    for (name, line) in steps(root, &tools) {
        timed(name, ran, || line.run(root))
            .map_err(|error| format!("step `{name}`: {error}\nTo run it alone:\n\n  {line}"))?;
    }
    timed("js", ran, || js::run(root)).map_err(|error| format!("step `js`: {error}"))?;
    timed("fuzz-api", ran, || fuzz_api::run(root, Form::Short))
        .map_err(|error| format!("step `fuzz-api`: {error}\nTo run it alone:\n\n  cargo xtask fuzz-api"))
}

fn steps(root: &Path, tools: &Tools) -> Vec<(&'static str, Line)> {
    let mut steps = vec![
        ("format", Line::cargo(&["fmt", "--all", "--check"])),
        (
            "clippy",
            Line::cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--features",
                FEATURES,
                "--",
                "-D",
                "warnings",
            ]),
        ),
        // As users build it: in the steps around this one, what only tests switch on is there too, and hides what is missing.
        ("shipped", Line::cargo(&["check", "--package", "ichido-cli"])),
        // Unit, integration and doc tests; the rules of `tidy` are tests of this crate and run here too.
        ("tests", Line::cargo(&["test", "--workspace"])),
        // What is behind a feature: spans as a collector gets them, models on Bedrock. The whole workspace, so that nothing but the
        // command is built anew.
        (
            "features",
            Line::cargo(&[
                "test",
                "--workspace",
                "--features",
                FEATURES,
                "--test",
                "traces",
                "--test",
                "judge_bedrock",
            ]),
        ),
        ("docs", Line::cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings")),
        ("deny", tools.deny(&["check", "--hide-inclusion-graph", "licenses", "bans", "sources"])),
    ];
    if root.join("fuzz/Cargo.toml").exists() {
        // A workspace of its own, so none of the steps above has looked at it.
        steps.push(("fuzz", Line::cargo(&["check", "--manifest-path", "fuzz/Cargo.toml"])));
    }
    steps
}

fn timed<T>(
    name: &'static str,
    ran: &mut Vec<Ran>,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    println!("\n== {name}");
    let start = now();
    let outcome = work();
    ran.push(Ran { name, took: now().duration_since(start) });
    outcome
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a step took is for a person; nothing is decided by it"
)]
fn now() -> Instant {
    Instant::now()
}

fn table(ran: &[Ran]) -> String {
    let total = Ran { name: "total", took: ran.iter().map(|step| step.took).sum() };
    let rows = ran.iter().chain([&total]);
    let rows: Vec<String> =
        rows.map(|step| format!("{:<9}{:>7.1} s", step.name, step.took.as_secs_f64())).collect();
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_step_and_the_total() {
        let ran = [
            Ran { name: "format", took: Duration::from_millis(440) },
            Ran { name: "clippy", took: Duration::from_secs(12) },
        ];
        assert_eq!(table(&ran), "format       0.4 s\nclippy      12.0 s\ntotal       12.4 s");
    }

    #[test]
    fn a_step_that_fails_is_timed_too() {
        let mut ran = Vec::new();
        let outcome: Result<(), String> = timed("clippy", &mut ran, || Err("no".to_owned()));
        assert!(outcome.is_err());
        assert_eq!(ran.len(), 1);
    }
}
