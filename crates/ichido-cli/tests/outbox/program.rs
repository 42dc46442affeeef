//! The binary under test.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a command that has ended left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The binary in a folder, with nothing of the environment that it would listen to.
pub(crate) fn ichido(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    command
        .current_dir(folder)
        .env_remove("ICHIDO_STORE")
        .env_remove("ICHIDO_CONFIG")
        .env_remove("ICHIDO_LOG");
    command
}

/// Runs it to its end, with something to read.
pub(crate) fn run(folder: &Path, arguments: &[&str], input: &str) -> Ended {
    let mut command = ichido(folder);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    // It may end without reading, which is as good.
    drop(child.stdin.take().expect("piped").write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}
