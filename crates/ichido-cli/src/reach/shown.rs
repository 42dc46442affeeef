//! What the API shows of a message's errors and history, as commands read it and say it.

use std::fmt::Write as _;

use ichido_core::text::visible;
use serde::Deserialize;

/// The most of an error's text in a table.
const ERROR_CHARS_MAX: usize = 60;

#[derive(Deserialize)]
pub(crate) struct LastError {
    pub(crate) code: String,
    pub(crate) text: Option<String>,
}

/// One thing that happened to a message.
#[derive(Deserialize)]
pub(crate) struct Event {
    pub(crate) at: String,
    pub(crate) kind: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) tries: u32,
    pub(crate) effect: String,
    pub(crate) error_code: Option<String>,
    pub(crate) error_text: Option<String>,
    pub(crate) status: Option<u16>,
    pub(crate) receipt: Option<String>,
    pub(crate) actor: Option<String>,
}

impl LastError {
    /// For a table.
    pub(crate) fn cut(&self) -> String {
        error(Some(&self.code), self.text.as_deref())
    }

    pub(crate) fn in_full(&self) -> String {
        error_in_full(Some(&self.code), self.text.as_deref())
    }
}

/// `BAD_REQUEST: no such symbol`, cut where it is long.
pub(crate) fn error(code: Option<&str>, text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    let cut: String = text.chars().take(ERROR_CHARS_MAX).collect();
    let cut = if cut.len() < text.len() { format!("{cut}…") } else { cut };
    error_in_full(code, Some(&cut))
}

/// The same, as long as it is.
pub(crate) fn error_in_full(code: Option<&str>, text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    match (code, text.is_empty()) {
        (None, _) => text.to_owned(),
        (Some(code), true) => code.to_owned(),
        (Some(code), false) => format!("{code}: {text}"),
    }
}

/// A line for each field that there is, its name first.
pub(crate) fn fields<'a>(all: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let mut out = String::new();
    for (name, text) in all {
        if let Some(text) = text {
            // A string takes all that is written to it.
            _ = writeln!(out, "{name:<12} {}", visible(&text));
        }
    }
    out
}
