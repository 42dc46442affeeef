//! An example's script as a process.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::complaints::complaints;
use crate::folder::TempFolder;

/// The program under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_ichido");

/// An example with its page and the requirements that it shows.
#[derive(Clone, Copy)]
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    /// The index of the block on its page that the script prints, from 0.
    pub(crate) block: usize,
    pub(crate) page: &'static str,
    pub(crate) requirements: &'static [&'static str],
}

/// The exit code and output of a script.
pub(crate) struct ScriptOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Example {
    /// Returns the output that its page shows.
    pub(crate) fn shown(&self) -> &'static str {
        let block = self.page.split("```text\n").nth(1 + self.block).expect("what it prints");
        block.split("\n```").next().expect("it ends").trim()
    }

    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(self.name).join(self.script)
    }

    /// Returns the text of its script.
    pub(crate) fn source(&self) -> String {
        std::fs::read_to_string(self.path()).expect("a script")
    }

    /// Returns the command for its script, with its files in a folder and a clean environment.
    pub(crate) fn command(&self, program: &Path, folder: &TempFolder, store: Option<&str>) -> Command {
        let mut command = Command::new(self.path());
        for (name, _) in std::env::vars_os() {
            if ["ICHIDO", "OUTBOX_"].iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
                command.env_remove(name);
            }
        }
        command.env("ICHIDO", program).env("TMPDIR", folder.path()).current_dir(folder.path());
        if let Some(store) = store {
            command.env("ICHIDO_STORE", store);
        }
        command
    }

    /// Runs the script to its end.
    pub(crate) fn run(&self, program: &Path, folder: &TempFolder, store: Option<&str>) -> ScriptOutput {
        let output = self.command(program, folder, store).output().expect("a shell");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        ScriptOutput {
            code: output.status.code(),
            out: text(output.stdout),
            err: complaints(&text(output.stderr)),
        }
    }
}

/// Returns the processes that were started with this folder.
pub(crate) fn processes(folder: &TempFolder) -> Vec<PathBuf> {
    let wanted = format!("TMPDIR={}", folder.path().display());
    let is_of_it = |process: &PathBuf| {
        // A process that has ended, or belongs to another user, cannot be read.
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let processes =
        std::fs::read_dir("/proc").expect("the processes").map(|entry| entry.expect("one").path());
    processes.filter(is_of_it).collect()
}

pub(crate) fn assert_nothing_is_left(folder: &TempFolder) {
    assert_eq!(processes(folder), Vec::<PathBuf>::new());
    let files = std::fs::read_dir(folder.path()).expect("it is there");
    assert_eq!(files.map(|file| file.expect("a file").path()).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}
