//! What is written: one judgement a line, in the order of the articles (SPEC B6, B11).

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::out;

/// How `--out` names standard output.
const STDOUT: &str = "-";

/// Where judgements go. A file is written beside its place and put there whole, so that nobody reads a half of it.
pub(super) enum Output {
    Stdout,
    File(PartFile),
}

/// A file under a name of its own, until it is whole; it is removed unless it becomes so.
pub(super) struct PartFile {
    target: PathBuf,
    name: PathBuf,
    file: File,
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // It is gone where it has got its place.
        _ = std::fs::remove_file(&self.name);
    }
}

impl Output {
    /// Makes sure that it can be written, before anything is paid for. `others` are files that must not be written over.
    pub(super) fn open(target: &Path, protected: &[&Path]) -> Result<Self, String> {
        if target.as_os_str() == STDOUT {
            return Ok(Self::Stdout);
        }
        let shown = target.display();
        // Where a link leads, and not the link itself.
        let target = if target.exists() {
            target.canonicalize().map_err(|error| format!("{shown}: {error}"))?
        } else {
            target.to_owned()
        };
        if target.exists() && !target.is_file() {
            return Err(format!("{shown} is no file; name one, or - for standard output"));
        }
        let is_same = |other: &&Path| other.canonicalize().is_ok_and(|other| other == target);
        if let Some(other) = protected.iter().find(|other| is_same(other)) {
            return Err(format!("{shown} is {}, which would be lost; name another file", other.display()));
        }
        let Some(name) = target.file_name() else { return Err(format!("{shown} names no file")) };
        let mut part = name.to_owned();
        part.push(format!(".{:08x}.part", fastrand::u32(..)));
        let name = target.with_file_name(part);
        // Nobody else's, even if somebody guessed the name.
        let file = OpenOptions::new().write(true).create_new(true).open(&name);
        let file = file.map_err(|error| {
            format!("{shown} cannot be written: {error}; its folder must be there and yours")
        })?;
        Ok(Self::File(PartFile { target, name, file }))
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Writes all of it, on the disk when this returns.
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
