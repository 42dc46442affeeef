//! A temporary folder, and the binary run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ichido_boundary::{STARTING, rules};
use serde_json::Value;

pub(crate) struct CheckFolder(PathBuf);

/// The exit code and output of a run.
#[derive(Debug)]
pub(crate) struct CheckOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn fresh() -> CheckFolder {
    let folder = std::env::temp_dir().join(format!("ichido-check-{}", uuid::Uuid::now_v7().simple()));
    std::fs::create_dir(&folder).expect("a temporary folder can be made");
    CheckFolder(folder)
}

/// Creates a folder with the starting set.
pub(crate) fn starting() -> CheckFolder {
    let folder = fresh();
    for (name, text) in STARTING {
        folder.write(name, text);
    }
    folder
}

impl CheckFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and its parent folders.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it can be made");
        std::fs::write(path, bytes).expect("it can be written");
    }

    /// Sets the value at a JSON pointer in a file; `null` for a whole file removes it.
    pub(crate) fn put(&self, name: &str, pointer: &str, text: &str) {
        let path = self.0.join(name);
        let value: Value = serde_json::from_str(text).expect("it is JSON");
        if (pointer, &value) == ("", &Value::Null) {
            return std::fs::remove_file(path).expect("it is there");
        }
        let file = std::fs::read(&path).expect("it is readable");
        let mut file: Value = serde_json::from_slice(&file).expect("it is JSON");
        match pointer.rsplit_once('/') {
            None => file = value,
            Some((holder, member)) => {
                let holder = file.pointer_mut(holder).expect("it leads somewhere");
                holder[member.replace("~1", "/").replace("~0", "~")] = value;
            }
        }
        self.write(name, serde_json::to_string_pretty(&file).expect("a value has a text"));
    }

    /// Returns the sorted names of its files.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it is readable");
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort_unstable();
        names
    }

    /// Returns a command that runs the binary in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
        command.arg("check").args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    /// Runs `ichido check` in the folder.
    pub(crate) fn check(&self, arguments: &[&str]) -> CheckOutput {
        end(&mut self.command(arguments))
    }
}

/// Returns the output for this many files, in complete chains, without findings.
pub(crate) fn clean(files: usize) -> String {
    format!("{} rules: no findings\n", judged(files) + &format!(", {}", rules().count()))
}

/// Returns the start of the last line for this many files in complete chains.
pub(crate) fn judged(files: usize) -> String {
    let ways = if files == 4 { String::new() } else { format!("{} hop chains; ", files / 4) };
    format!("{files} files ({ways}browser_to_bff, bff_to_gateway, gateway_to_adapter, adapter)")
}

pub(crate) fn end(command: &mut Command) -> CheckOutput {
    let output = command.output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("it says text");
    CheckOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl CheckOutput {
    /// Checks the exit code and that standard error is empty.
    #[track_caller]
    pub(crate) fn quietly(self, code: i32) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(code), ""), "{}", self.out);
        self.out
    }

    /// Checks that it failed with code 2 and no output; returns the error.
    #[track_caller]
    pub(crate) fn refused(self) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{}", self.err);
        self.err
    }
}

impl Drop for CheckFolder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
