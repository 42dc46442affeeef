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
    let title = cut(&words(&found.title), MAX_TITLE_CHARS);
    Page {
        title: Some(title).filter(|title| !title.is_empty()),
        text: cut(&lines(&found.text), MAX_TEXT_CHARS),
    }
}

/// Returns the text on one line, with single blanks between words and without control characters.
pub(crate) fn words(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same, line by line.
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
