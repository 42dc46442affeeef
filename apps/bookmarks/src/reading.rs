//! Reads a page: from bytes to a title and plain text.
//!
//! It is pure and bounded, and it never fails: any bytes give some page. A file that has no text may have a title.

mod charset;
mod html;
mod pdf;

use url::Url;

use crate::fetch::Fetched;
use crate::search::decoded;
use crate::settings::limits::{MAX_PAGE_BYTES, MAX_TEXT_CHARS, MAX_TITLE_CHARS};

/// The content of a page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    /// The title if nobody knows another one.
    pub(crate) file_name: Option<String>,
    /// `None` if it is not a page with text.
    pub(crate) text: Option<String>,
    /// Where its icon is.
    pub(crate) icon: Option<Url>,
}

/// Reads a page.
pub(crate) fn read(fetched: &Fetched) -> Page {
    let body = fetched.inflated(MAX_PAGE_BYTES);
    // Something was sent, and it is not what the site says.
    let is_broken = body.is_empty() && !fetched.body.is_empty();
    let decode = || charset::decode(&body, fetched.charset.as_deref());
    let site_icon = || fetched.url.join("/favicon.ico").ok();
    let unread = Page { title: None, file_name: file_name(&fetched.url), text: None, icon: None };
    match fetched.media.as_str() {
        _ if is_broken => unread,
        "text/html" | "application/xhtml+xml" => {
            let found = html::read(&decode());
            let icon = found.icon.and_then(|href| fetched.url.join(&href).ok());
            let icon = icon.filter(|icon| matches!(icon.scheme(), "http" | "https"));
            let text = Some(cut(&lines(&found.text), MAX_TEXT_CHARS));
            Page { title: title(&found.title), text, icon: icon.or_else(site_icon), ..unread }
        }
        "text/plain" => {
            Page { text: Some(cut(&lines(&decode()), MAX_TEXT_CHARS)), icon: site_icon(), ..unread }
        }
        "application/pdf" => Page { title: pdf::title(&body).as_deref().and_then(title), ..unread },
        _ => unread,
    }
}

/// Returns the name of the file that a URL leads to.
fn file_name(url: &Url) -> Option<String> {
    let name = url.path_segments()?.next_back().filter(|name| name.contains('.'))?;
    title(&decoded(name))
}

/// Returns a text as a title; `None` if nothing is left.
pub(crate) fn title(text: &str) -> Option<String> {
    Some(shortened(&words(text), MAX_TITLE_CHARS)).filter(|title| !title.is_empty())
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

/// Returns a text of at most this many characters, with a mark where it was cut.
pub(crate) fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    format!("{}…", cut(text, chars - 1).trim_end())
}

/// Truncates a text to this many characters.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end]).to_owned()
}

#[cfg(test)]
mod tests;
