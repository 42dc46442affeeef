//! Writes to a terminal that shows a progress bar.
//!
//! Guarantee: what is written through here, log lines too, stands on lines of its own.

use std::io::{self, Write};
use std::sync::Mutex;

use ichido_core::sync::lock;
use indicatif::ProgressBar;

/// The bar that is on the terminal.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Says which bar is on the terminal.
pub(crate) fn show(bar: Option<ProgressBar>) {
    *lock(&SHOWN) = bar;
}

/// Writes something with the bar out of the way.
pub(crate) fn write<T>(write: impl FnOnce() -> T) -> T {
    let shown = lock(&SHOWN).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Standard error for the log.
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
