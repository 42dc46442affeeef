//! Formats the errors and the history of messages that the API returns.

use ichido_core::verdict::ErrorCode;
use ichido_server::serve::views::{Event, LastError};

/// Formats a code with its meaning: `BROKER_5XX (the destination failed)`.
pub(crate) fn code(code: &str) -> String {
    let known = ErrorCode::parse_any_case(code);
    known.map_or_else(|| code.to_owned(), |known| format!("{code} ({})", known.describe()))
}

/// Formats an error with the meaning of its code.
pub(crate) fn explained(last: &LastError) -> String {
    error(Some(&code(&last.code)), last.text.as_deref())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guide_explains_every_code_as_the_commands_do() {
        let guide = include_str!("../../../../docs/guides/dead-letters.md");
        for code in ErrorCode::ALL {
            let row = format!("| `{code}` | {} |\n", code.describe());
            assert!(guide.contains(&row), "not in the guide: {row}");
        }
    }

    #[test]
    fn error_is_shown_with_the_meaning_of_its_code() {
        let last = |code: &str, text: Option<&str>| {
            explained(&LastError { code: code.to_owned(), text: text.map(str::to_owned) })
        };
        let failed = last("BROKER_5XX", Some("503 Service Unavailable"));
        assert_eq!(failed, "BROKER_5XX (the destination failed): 503 Service Unavailable");
        assert_eq!(last("CONNECT_FAILED", None), "CONNECT_FAILED (no connection)");
        assert_eq!(last("OF_A_NEWER_SERVER", None), "OF_A_NEWER_SERVER");
    }
}
