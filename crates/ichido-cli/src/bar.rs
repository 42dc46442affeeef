//! A progress bar for a person at a terminal.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::Exit;
use crate::{beside, out};

/// A progress bar on standard error, if that is a terminal, until it is dropped.
///
/// The bar has no colours, so `NO_COLOR` has nothing to switch off.
pub(crate) struct Bar {
    shown: Option<ProgressBar>,
    /// Whether results go to a terminal too, where the bar makes room.
    shares_terminal: bool,
}

impl Bar {
    /// Creates a bar. `length` is the total amount of work, if it is known.
    pub(crate) fn new(length: Option<u64>, template: &str) -> Self {
        let shown = io::stderr().is_terminal().then(|| {
            let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
            // An invalid template leaves the default style.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            beside::show(Some(bar.clone()));
            bar
        });
        Self { shown, shares_terminal: io::stdout().is_terminal() }
    }

    /// Prints a result.
    pub(crate) fn print_line(&self, text: &str) -> Result<(), Exit> {
        match &self.shown {
            Some(bar) if self.shares_terminal => bar.suspend(|| out::print_line(text)),
            _ => out::print_line(text),
        }
    }

    /// Shows the progress.
    pub(crate) fn set(&self, length: Option<u64>, position: u64, message: String) {
        if let Some(bar) = &self.shown {
            if let Some(length) = length {
                bar.set_length(length);
            }
            bar.set_position(position);
            bar.set_message(message);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.shown {
            beside::show(None);
            bar.finish_and_clear();
        }
    }
}
