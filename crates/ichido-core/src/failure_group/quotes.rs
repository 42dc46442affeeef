//! Removes quoted text, which is where receivers repeat a request.
//!
//! When in doubt, more is removed: a quote that never ends is removed up to the end of the text.

/// What replaces quoted text.
const QUOTED: &str = "\"…\"";

/// Quotes whose two ends are the same character.
const SAME: [char; 4] = ['"', '\'', '`', '＂'];
/// Quotes with different ends, which may be nested.
const PAIRS: [(char, char); 9] = [
    ('“', '”'),
    ('„', '“'),
    ('‘', '’'),
    ('«', '»'),
    ('‹', '›'),
    ('「', '」'),
    ('『', '』'),
    ('｢', '｣'),
    ('〝', '〟'),
];

/// Replaces each quoted part of a text.
pub(super) fn without_quoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, None);
    while let Some(char) = rest.chars().next() {
        let after = &rest[char.len_utf8()..];
        let end = match PAIRS.iter().find(|(open, _)| *open == char) {
            Some(pair) => Some(end_of_pair(after, *pair)),
            None if SAME.contains(&char) && !is_apostrophe(char, before) => Some(end_of_same(after, char)),
            None => None,
        };
        if let Some(end) = end {
            plain.push_str(QUOTED);
            rest = &after[end..];
            before = Some('"');
        } else {
            plain.push(char);
            rest = after;
            before = Some(char);
        }
    }
    plain
}

/// Returns whether a character is inside a word, as in `can't`, or after it, as in `users'`.
fn is_apostrophe(char: char, before: Option<char>) -> bool {
    char == '\'' && before.is_some_and(|before| before.is_ascii_alphanumeric())
}

/// Returns where a quote with equal ends is over.
fn end_of_same(text: &str, quote: char) -> usize {
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        if char == '\\' {
            chars.next();
        } else if char == quote && !begins_quote(before, next) {
            return at + char.len_utf8();
        }
        before = Some(char);
    }
    text.len()
}

/// Returns whether a quote between these characters begins a quoted text instead of ending one. Japanese words may follow
/// an end without a blank.
fn begins_quote(before: Option<char>, next: Option<char>) -> bool {
    next.is_some_and(|next| {
        next.is_ascii_alphanumeric() || next.is_alphanumeric() && before.is_some_and(char::is_whitespace)
    })
}

/// Returns where a quote with different ends is over.
fn end_of_pair(text: &str, (open, close): (char, char)) -> usize {
    let mut depth = 1_usize;
    for (at, char) in text.char_indices() {
        if char == close {
            depth -= 1;
        } else if char == open {
            depth += 1;
        }
        if depth == 0 {
            return at + char.len_utf8();
        }
    }
    text.len()
}
