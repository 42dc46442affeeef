//! The HTML format that every browser writes and reads: links in folders, of which each name becomes a tag.

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use ichido::time::Timestamp;

use super::{FileError, Link};
use crate::settings::limits::{MAX_IMPORTED_LINKS, MAX_TITLE_CHARS};

pub(crate) const HEAD: &str = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n\
    <META HTTP-EQUIV=\"Content-Type\" CONTENT=\"text/html; charset=UTF-8\">\n\
    <TITLE>Bookmarks</TITLE>\n<H1>Bookmarks</H1>\n<DL><p>\n";
pub(crate) const TAIL: &str = "</DL><p>\n";
/// How deep the names of folders become tags.
const MAX_DEPTH: usize = 16;
/// A text is longer than any title or name then.
const MAX_TEXT_BYTES: usize = MAX_TITLE_CHARS * 8;
/// Some programs count in milliseconds or microseconds. Seconds reach this number in the year 5138.
const MAX_SECONDS: i64 = 100_000_000_000;

pub(crate) fn read(file: &[u8]) -> Result<Vec<Link>, FileError> {
    let mut reader = Reader::default();
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for Ok(token) in Tokenizer::new_with_emitter(String::from_utf8_lossy(file).as_ref(), emitter) {
        match token {
            Token::StartTag(tag) => reader.open(&tag),
            Token::EndTag(tag) => reader.close(&tag.name),
            Token::String(text) if reader.text.len() < MAX_TEXT_BYTES => {
                reader.text.push_str(&String::from_utf8_lossy(&text));
            }
            _ => (),
        }
        if MAX_IMPORTED_LINKS < reader.links.len() {
            break;
        }
    }
    reader.end_link();
    if MAX_IMPORTED_LINKS < reader.links.len() { Err(FileError::TooMany) } else { Ok(reader.links) }
}

#[derive(Default)]
struct Reader {
    links: Vec<Link>,
    /// The link whose title is being read.
    link: Option<Link>,
    text: String,
    /// The name of the folder that opens next, and of those that are open. The browser's own have none.
    name: Option<String>,
    names_itself: bool,
    folders: Vec<Option<String>>,
}

impl Reader {
    fn open(&mut self, tag: &StartTag<()>) {
        let attribute = |wanted: &str| {
            let found = tag.attributes.iter().find(|(name, _)| name.as_slice() == wanted.as_bytes());
            found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        match tag.name.as_slice() {
            b"a" => {
                self.end_link();
                let tags = attribute("tags").unwrap_or_default();
                let folders = self.folders.iter().take(MAX_DEPTH).flatten().cloned();
                let date = attribute("add_date").and_then(|date| date.parse().ok());
                self.link = attribute("href").map(|url| Link {
                    url,
                    title: None,
                    tags: folders.chain(tags.split(',').map(str::to_owned)).collect(),
                    added_at: date.map(added_at),
                    saved: None,
                });
            }
            b"h3" => {
                self.end_link();
                let is_browsers = ["personal_toolbar_folder", "unfiled_bookmarks_folder"]
                    .iter()
                    .any(|name| attribute(name).is_some());
                self.names_itself = !is_browsers;
            }
            b"dl" => {
                self.end_link();
                self.folders.push(self.name.take());
            }
            _ => return,
        }
        self.text.clear();
    }

    fn close(&mut self, name: &[u8]) {
        match name {
            b"a" => self.end_link(),
            b"h3" => self.name = Some(std::mem::take(&mut self.text)).filter(|_| self.names_itself),
            b"dl" => {
                self.end_link();
                self.folders.pop();
            }
            _ => (),
        }
    }

    fn end_link(&mut self) {
        if let Some(link) = self.link.take() {
            self.links.push(Link { title: Some(std::mem::take(&mut self.text)), ..link });
        }
    }
}

fn added_at(date: i64) -> Timestamp {
    Timestamp::from_micros(match date {
        _ if MAX_SECONDS * 1_000 < date => date,
        _ if MAX_SECONDS < date => date.saturating_mul(1_000),
        _ => date.saturating_mul(1_000_000),
    })
}

pub(crate) fn write(link: &Link) -> String {
    let Link { url, title, tags, added_at, .. } = link;
    let tags =
        if tags.is_empty() { String::new() } else { format!(" TAGS=\"{}\"", escaped(&tags.join(","))) };
    let date = added_at.map(|at| format!(" ADD_DATE=\"{}\"", at.as_micros() / 1_000_000)).unwrap_or_default();
    let title = escaped(title.as_deref().unwrap_or(url));
    format!("    <DT><A HREF=\"{}\"{date}{tags}>{title}</A>\n", escaped(url))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
