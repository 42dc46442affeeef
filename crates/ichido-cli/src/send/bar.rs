//! How far it is, for a person at a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

use super::many::Counts;
use crate::exit::Exit;
use crate::out;

/// A bar on standard error, where that is a terminal. It has no colours, so that there are none to switch off (`NO_COLOR`).
pub(super) struct Bar {
    shown: Option<ProgressBar>,
    /// Whether results go to a terminal, and have to pass the bar.
    shares_terminal: bool,
}

impl Bar {
    /// `bytes` is how much there is to be read, if that is known.
    pub(super) fn new(bytes: Option<u64>) -> Self {
        let shown = std::io::stderr().is_terminal().then(|| {
            let (bar, template) = match bytes {
                Some(bytes) => (ProgressBar::new(bytes), "{bar:30} {percent:>3}% {msg}"),
                None => (ProgressBar::no_length(), "{spinner} {msg}"),
            };
            // A template that could not be read would leave the usual one.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Self { shown, shares_terminal: std::io::stdout().is_terminal() }
    }

    /// Says a result, and how far it is.
    pub(super) fn line(&self, text: &str, counts: &Counts) -> Result<(), Exit> {
        let Some(bar) = &self.shown else {
            return out::line(text);
        };
        let said = if self.shares_terminal { bar.suspend(|| out::line(text)) } else { out::line(text) };
        bar.set_position(counts.bytes);
        bar.set_message(counts.to_string());
        said
    }

    /// Takes it away.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}
