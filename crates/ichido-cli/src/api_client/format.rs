//! What the API shows of a message's errors and history, as commands read it and say it.

use std::fmt::Write as _;

use ichido_core::text::visible;
use ichido_server::serve::shown::LastError;

/// The most of an error's text in a table.
const ERROR_CHARS_MAX: usize = 60;

/// Why the last attempt failed, for a table.
pub(crate) fn last_error(last: Option<&LastError>) -> String {
    last.map(|last| error(Some(&last.code), last.text.as_deref())).unwrap_or_default()
}

/// The same, as long as it is.
pub(crate) fn last_error_in_full(last: Option<&LastError>) -> Option<String> {
    last.map(|last| error_in_full(Some(&last.code), last.text.as_deref()))
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
