//! The binary under test.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct SendOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl SendOutput {
    /// Returns the lines of its output.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.out.lines().collect()
    }
}

/// Returns `ichido send orders` in a folder, with a clean environment.
pub(crate) fn send(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    for name in ["SERVER", "TOKEN", "STORE", "CONFIG", "LOG"] {
        command.env_remove(format!("ICHIDO_{name}"));
    }
    command.current_dir(folder).args(["send", "orders"]);
    command
}

/// Runs it to its end, with standard input.
pub(crate) fn run(mut command: Command, input: &str) -> SendOutput {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    // It may end without reading.
    drop(child.stdin.take().expect("piped").write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    SendOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}
