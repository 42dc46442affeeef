//! Writes one judgement per line, in the order of the articles.
// Spec: B6, B11.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::out;

/// The value of `--out` for standard output.
const STDOUT: &str = "-";

/// Where judgements are written.
///
/// A file is written beside its target and then renamed, so nobody reads half of it.
pub(super) enum Output {
    Stdout,
    File(PartFile),
}

/// A temporary file, removed on drop unless it was renamed to its target.
pub(super) struct PartFile {
    target: PathBuf,
    name: PathBuf,
    file: File,
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        _ = std::fs::remove_file(&self.name);
    }
}

impl Output {
    /// Checks that the target can be written, before anything is paid for.
    ///
    /// `protected` are files that must not be overwritten.
    pub(super) fn open(target: &Path, protected: &[&Path]) -> Result<Self, String> {
        if target.as_os_str() == STDOUT {
            return Ok(Self::Stdout);
        }
        let shown = target.display();
        // The target of a link, not the link itself.
        let target = if target.exists() {
            target.canonicalize().map_err(|error| format!("{shown}: {error}"))?
        } else {
            target.to_owned()
        };
        if target.exists() && !target.is_file() {
            return Err(format!("{shown} is not a file; pass a file, or - for standard output"));
        }
        let is_same = |other: &&Path| other.canonicalize().is_ok_and(|other| other == target);
        if let Some(other) = protected.iter().find(|other| is_same(other)) {
            return Err(format!("{shown} would overwrite {}; pass another file", other.display()));
        }
        let Some(name) = target.file_name() else { return Err(format!("{shown} does not name a file")) };
        let mut part = name.to_owned();
        part.push(format!(".{:08x}.part", fastrand::u32(..)));
        let name = target.with_file_name(part);
        // Never an existing file, even if somebody guessed the name.
        let file = OpenOptions::new().write(true).create_new(true).open(&name);
        let file = file.map_err(|error| {
            format!("cannot write {shown}: {error}; its folder must exist and be writable")
        })?;
        Ok(Self::File(PartFile { target, name, file }))
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Writes all lines; they are on disk when this returns.
    pub(super) fn write(self, lines: &[Value]) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            text += &line.to_string();
            text.push('\n');
        }
        match self {
            Self::Stdout => out::write(text.as_bytes()),
            Self::File(mut part) => {
                part.file.write_all(text.as_bytes())?;
                part.file.sync_all()?;
                std::fs::rename(&part.name, &part.target)
            }
        }
    }
}
