//! A demo as a process, read line by line.

use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::complaints::complaints;
use crate::folder::TempFolder;

/// Returns the binary with an empty temporary folder and a clean environment.
pub(crate) fn ichido(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    for name in ["ICHIDO_STORE", "ICHIDO_CONFIG", "ICHIDO_LOG", "ICHIDO_SERVER", "ICHIDO_TOKEN"] {
        command.env_remove(name);
    }
    command.current_dir(folder).env("TMPDIR", folder);
    command
}

/// Runs a demo to its end; returns exit code, output and errors.
pub(crate) fn ended(folder: &TempFolder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = ichido(folder.path()).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), complaints(&text(output.stderr)))
}

/// Lists the files in a folder.
pub(crate) fn left(folder: &TempFolder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A running demo.
pub(crate) struct DemoProcess {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) output: String,
}

impl DemoProcess {
    pub(crate) fn start(folder: &TempFolder, flags: &[&str]) -> Self {
        let mut command = ichido(folder.path());
        let command = command.arg("demo").args(flags).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, output: String::new() }
    }

    /// Reads the next line.
    pub(crate) fn line(&mut self) -> String {
        let line = self.lines.next().unwrap_or_else(|| panic!("it has ended:\n{}", self.output)).unwrap();
        self.output += &line;
        self.output.push('\n');
        line
    }

    /// Reads until a line contains a text.
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for its end; returns exit code, all output and errors.
    pub(crate) fn wait(mut self) -> (Option<i32>, String, String) {
        for line in self.lines.by_ref() {
            self.output += &line.unwrap();
            self.output.push('\n');
        }
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.output), complaints(&err))
    }
}

impl Drop for DemoProcess {
    fn drop(&mut self) {
        // It may already have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
