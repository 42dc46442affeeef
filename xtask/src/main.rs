//! The chores of this repository.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let steps: [&[&str]; 3] = [
        &["fmt", "--all", "--check"],
        &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        &["test", "--workspace"],
    ];
    for step in steps {
        let status = Command::new("cargo").args(step).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("xtask: `cargo {}` failed", step.join(" "));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
