//! Reads a page: from bytes to a title and plain text.
//!
//! It is pure and bounded, and it never fails: any bytes give some text.

mod charset;
mod html;

use crate::bookmarks::Page;
use crate::fetch::Fetched;
use crate::settings::limits::{MAX_TEXT_CHARS, MAX_TITLE_CHARS};

/// Reads a page.
pub(crate) fn read(fetched: &Fetched) -> Page {
    let decoded = charset::decode(&fetched.body, fetched.charset.as_deref());
    if fetched.media == "text/plain" {
        return Page { title: None, text: cut(&lines(&decoded), MAX_TEXT_CHARS) };
    }
    let found = html::read(&decoded);
    Page { title: title(&found.title), text: cut(&lines(&found.text), MAX_TEXT_CHARS) }
}

/// Returns a text as a title; `None` if nothing is left.
pub(crate) fn title(text: &str) -> Option<String> {
    Some(cut(&words(text), MAX_TITLE_CHARS)).filter(|title| !title.is_empty())
}

/// Returns the text on one line, with single blanks between words and without control characters.
pub(crate) fn words(text: &str) -> String {
    let shown = text.chars().filter(|c| !turns_direction(*c));
    let plain: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Characters that nobody sees and that turn the direction of the text after them, also outside of their own title.
pub(crate) const fn turns_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text like [`words`], line by line.
fn lines(text: &str) -> String {
    let lines = text.lines().map(words).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Truncates a text to this many characters.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end]).to_owned()
}

#[cfg(test)]
mod tests;
