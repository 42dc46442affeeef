//! Makes untrusted text safe for a terminal, a log or a URL, and lays it out.
//!
//! Such text is, for example, a path or a name from a client.
//!
//! Guarantee: [`visible`] returns one line without control characters and without invisible characters. Escapes look as
//! in a Rust string: `\n`, `\u{1b}`.

pub mod age;
pub mod paint;
pub mod table;

use std::error::Error;
use std::fmt::Write as _;

pub use table::table;

/// Escapes every character that a terminal would interpret or hide.
///
/// These are control characters, line breaks, marks that change the writing direction and zero-width spaces.
pub fn visible(text: &str) -> String {
    let mut escaped = String::new();
    // `escape_debug` also escapes quotes and backslashes, which source code needs and a terminal does not.
    for piece in text.split_inclusive(['"', '\'', '\\']) {
        let end = piece.chars().next_back().filter(|end| ['"', '\'', '\\'].contains(end));
        let words = end.and_then(|end| piece.strip_suffix(end)).unwrap_or(piece);
        escaped.extend(words.escape_debug());
        escaped.extend(end);
    }
    escaped
}

/// Escapes like [`visible`], but leaves line feeds and tabs: for a text of several lines.
pub fn visible_lines(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for piece in text.split_inclusive(['\n', '\t']) {
        let words = piece.trim_end_matches(['\n', '\t']);
        escaped.push_str(&visible(words));
        escaped.push_str(piece.get(words.len()..).unwrap_or_default());
    }
    escaped
}

/// Returns the beginning of a text as one [`visible`] line of at most `max_chars` characters.
///
/// ```
/// use ichido_core::text::bounded;
///
/// assert_eq!(bounded("a\nb", 10), "a\\nb");
/// assert_eq!(bounded("a long title", 6), "a lon…");
/// ```
pub fn bounded(text: &str, max_chars: usize) -> String {
    // Escapes only make it longer.
    let start: String = text.chars().take(max_chars.saturating_add(1)).collect();
    let mut line = visible(&start);
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        let before = line[..end].char_indices().next_back().map_or(0, |(last, _)| last);
        line.truncate(before);
        line.push('…');
    }
    line
}

/// Returns an error and its causes on one line, without repetition.
///
/// Some errors end with the text of their own cause, as those of sqlx do.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Percent-encodes everything but letters, digits and the `plain` bytes.
pub fn percent_encoded(text: &str, plain: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_characters_stay_unescaped() {
        let plain = "a \"quoted\" path\\with 'everything' /é/日本/%,:.json";
        assert_eq!(visible(plain), plain);
        for one in "\0\u{7}\u{1b}\r\n\t\u{85}\u{9b}\u{ad}\u{61c}\u{200b}\u{200f}\u{2028}\u{202e}\u{2066}\u{feff}\u{e0041}".chars() {
            let escaped = visible(&format!("a{one}b"));
            assert!(escaped.starts_with("a\\") && escaped.is_ascii(), "{escaped}");
        }
        let lines = "a\n\tb\n\n";
        assert_eq!(visible_lines(lines), lines);
        assert_eq!(visible_lines("a\n\u{202e}b\r\n"), "a\n\\u{202e}b\\r\n");
    }
}
