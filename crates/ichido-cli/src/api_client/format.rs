//! Formats the errors and the history of messages that the API returns.

use std::fmt::Write as _;

use ichido_core::text::visible;
use ichido_server::serve::views::{Event, LastError};

/// The maximum length of an error's text in a table.
const MAX_ERROR_CHARS: usize = 60;

/// Formats the error of the last attempt for a table.
pub(crate) fn last_error(last: Option<&LastError>) -> String {
    last.map(|last| error(Some(&last.code), last.text.as_deref())).unwrap_or_default()
}

/// Formats the error of the last attempt without shortening it.
pub(crate) fn last_error_in_full(last: Option<&LastError>) -> Option<String> {
    last.map(|last| error_in_full(Some(&last.code), last.text.as_deref()))
}

/// Formats an error such as `BAD_REQUEST: no such symbol`, shortened if it is long.
pub(crate) fn error(code: Option<&str>, text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    let cut: String = text.chars().take(MAX_ERROR_CHARS).collect();
    let cut = if cut.len() < text.len() { format!("{cut}…") } else { cut };
    error_in_full(code, Some(&cut))
}

/// Formats an error without shortening it.
pub(crate) fn error_in_full(code: Option<&str>, text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    match (code, text.is_empty()) {
        (None, _) => text.to_owned(),
        (Some(code), true) => code.to_owned(),
        (Some(code), false) => format!("{code}: {text}"),
    }
}

/// Formats the states of a transition. The first one has none before it.
pub(crate) fn transition(event: &Event) -> String {
    format!("{} → {}", event.from.as_deref().unwrap_or("∅"), event.to)
}

/// Formats one line for each field that is present, its name first.
pub(crate) fn fields<'a>(all: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let mut out = String::new();
    for (name, text) in all {
        if let Some(text) = text {
            // Writing to a string cannot fail.
            _ = writeln!(out, "{name:<12} {}", visible(&text));
        }
    }
    out
}
