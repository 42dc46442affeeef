//! Formats the errors and the history of messages that the API returns.

use ichido_server::serve::views::{Event, LastError};

/// Formats the error of the last attempt.
pub(crate) fn last_error(last: Option<&LastError>) -> Option<String> {
    last.map(|last| error(Some(&last.code), last.text.as_deref()))
}

/// Formats an error such as `BAD_REQUEST: no such symbol`.
pub(crate) fn error(code: Option<&str>, text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    match (code, text.is_empty()) {
        (None, _) => text.to_owned(),
        (Some(code), true) => code.to_owned(),
        (Some(code), false) => format!("{code}: {text}"),
    }
}

/// Formats an effect such as `not_done`.
pub(crate) fn effect(effect: &str) -> String {
    if effect == "in_flight" { "in flight: not known yet".to_owned() } else { effect.replace('_', " ") }
}

/// Formats the states of a transition. The first one has none before it.
pub(crate) fn transition(event: &Event) -> String {
    format!("{} → {}", event.from.as_deref().unwrap_or("∅"), event.to)
}
