//! Standard output, the same way for every command.
//!
//! A reader who has seen enough and went away (`ichido dead list | head -3`) is no failure: what is left unsaid is not wanted.

use std::io::{self, ErrorKind, Write as _};

use crate::exit::Exit;

/// Writes all of it, as far as somebody reads.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says bytes as they are.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Exit> {
    write(bytes).map_err(|error| Exit::Failed(format!("standard output cannot be written: {error}")))
}

/// Says a text as it stands.
pub(crate) fn print(text: &str) -> Result<(), Exit> {
    print_bytes(text.as_bytes())
}

/// Says a line.
pub(crate) fn print_line(text: impl std::fmt::Display) -> Result<(), Exit> {
    print(&format!("{text}\n"))
}

/// Tells whoever watches, on standard error. Nobody may, and what is under way goes on.
pub(crate) fn eprint(text: &str) {
    _ = io::stderr().write_all(text.as_bytes());
}
