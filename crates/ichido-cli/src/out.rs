//! Standard output, written the same way by every command.
//!
//! A reader that closes the pipe early (`ichido dead list | head -3`) is not an error: the rest is not wanted.

use std::io::{self, ErrorKind, Write as _};

use crate::exit::Exit;

/// Writes all bytes, unless the reader has gone away.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints bytes unchanged.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Exit> {
    write(bytes).map_err(|error| Exit::Failed(format!("cannot write to standard output: {error}")))
}

/// Prints text without adding a line break.
pub(crate) fn print(text: &str) -> Result<(), Exit> {
    print_bytes(text.as_bytes())
}

/// Prints a line.
pub(crate) fn print_line(text: impl std::fmt::Display) -> Result<(), Exit> {
    print(&format!("{text}\n"))
}

/// Prints text to standard error. Failing to write it does not stop the command.
pub(crate) fn eprint(text: &str) {
    _ = io::stderr().write_all(text.as_bytes());
}
