//! Tests that change their whole process, each in its own process.
//!
//! Such a test has two parts: a child, which is ignored and does nothing in another process, and the test, which starts it.
//!
//! Guarantee: a child that does not exist, or does not pass, fails the test.

use std::process::Command;

/// Set for a child.
const VARIABLE: &str = "ICHIDO_OWN_PROCESS";

/// Whether this process is a child.
pub fn is_own() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// A child in its own process, by its full name.
pub fn command(child: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", child, "--nocapture"]).env(VARIABLE, "yes");
    command
}

/// Runs a child to its end. It must exist and pass.
#[track_caller]
pub fn assert_passes(child: &str) {
    let output = command(child).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("test result: ok. 1 passed"), "{child}:\n{said}");
}
