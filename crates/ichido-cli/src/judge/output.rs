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
    File(Beside),
}

/// A file under a name of its own, until it is whole; it is removed unless it becomes so.
pub(super) struct Beside {
    place: PathBuf,
    name: PathBuf,
    file: File,
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It is gone where it has got its place.
        _ = std::fs::remove_file(&self.name);
    }
}

impl Output {
    /// Makes sure that it can be written, before anything is paid for. `others` are files that must not be written over.
    pub(super) fn open(place: &Path, others: &[&Path]) -> Result<Self, String> {
        if place.as_os_str() == STDOUT {
            return Ok(Self::Stdout);
        }
        let shown = place.display();
        // Where a link leads, and not the link itself.
        let place = if place.exists() {
            place.canonicalize().map_err(|error| format!("{shown}: {error}"))?
        } else {
            place.to_owned()
        };
        if place.exists() && !place.is_file() {
            return Err(format!("{shown} is no file; name one, or - for standard output"));
        }
        let is_same = |other: &&Path| other.canonicalize().is_ok_and(|other| other == place);
        if let Some(other) = others.iter().find(|other| is_same(other)) {
            return Err(format!("{shown} is {}, which would be lost; name another file", other.display()));
        }
        let Some(name) = place.file_name() else { return Err(format!("{shown} names no file")) };
        let mut beside = name.to_owned();
        beside.push(format!(".{:08x}.part", fastrand::u32(..)));
        let name = place.with_file_name(beside);
        // Nobody else's, even if somebody guessed the name.
        let file = OpenOptions::new().write(true).create_new(true).open(&name);
        let file = file.map_err(|error| {
            format!("{shown} cannot be written: {error}; its folder must be there and yours")
        })?;
        Ok(Self::File(Beside { place, name, file }))
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
            Self::File(mut beside) => {
                beside.file.write_all(text.as_bytes())?;
                beside.file.sync_all()?;
                std::fs::rename(&beside.name, &beside.place)
            }
        }
    }
}
