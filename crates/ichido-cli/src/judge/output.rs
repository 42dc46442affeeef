//! Writes one judgement per line, in the order of the articles.
// Spec: B6, B11.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::out;
use ichido_server::part_file::PartFile;

/// The value of `--out` for standard output.
const STDOUT: &str = "-";

/// Where judgements are written.
pub(super) enum Output {
    Stdout,
    File(PartFile),
}

impl Output {
    /// Checks that the target can be written, before anything is paid for.
    ///
    /// `protected` are files that must not be overwritten.
    pub(super) fn open(target: &Path, protected: &[&Path]) -> Result<Self, String> {
        if target.as_os_str() == STDOUT {
            return Ok(Self::Stdout);
        }
        if target == Path::new("/dev/stdout") {
            return Err(format!("pass {STDOUT} for standard output"));
        }
        PartFile::create(target, protected).map(Self::File)
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
            Self::File(part) => part.finish(&text),
        }
    }
}
