//! Our own format: JSON with a version, and with everything that a person sees of a bookmark.

use ichido::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{FileError, Link, Saved};
use crate::bookmark::State;
use crate::settings::limits::MAX_IMPORTED_LINKS;

const VERSION: u32 = 2;
/// What is before and after the entries, which commas separate.
pub(crate) const HEAD: &str = "{\"version\":2,\"bookmarks\":[\n";
pub(crate) const TAIL: &str = "\n]}\n";

#[derive(Deserialize)]
struct File {
    bookmarks: Vec<Entry>,
}

/// The members have the names of the API.
#[derive(Deserialize, Serialize)]
struct Entry {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page_title: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    status: Option<State>,
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    summary_by: Option<String>,
    #[serde(default)]
    source_hint: Option<String>,
    #[serde(default)]
    created_from: Option<String>,
}

/// The part that is read before the entries, whose form depends on it.
#[derive(Deserialize)]
struct FileHead {
    version: u32,
}

pub(crate) fn read(file: &[u8]) -> Result<Vec<Link>, FileError> {
    let not_ours = |error: serde_json::Error| FileError::Json(error.to_string());
    let FileHead { version } = serde_json::from_slice(file).map_err(not_ours)?;
    if version != VERSION {
        return Err(FileError::Json(format!("its version is {version}, not {VERSION}")));
    }
    let file: File = serde_json::from_slice(file).map_err(not_ours)?;
    if MAX_IMPORTED_LINKS < file.bookmarks.len() {
        return Err(FileError::TooMany);
    }
    Ok(file.bookmarks.into_iter().map(Link::from).collect())
}

pub(crate) fn write(link: Link) -> String {
    // A struct of texts and numbers is always JSON.
    serde_json::to_string(&Entry::from(link)).unwrap_or_default()
}

impl From<Entry> for Link {
    fn from(entry: Entry) -> Self {
        let Entry { page_title, source_hint, created_from, .. } = entry;
        let summary = entry.summary.zip(entry.summary_by);
        let saved =
            entry.status.map(|status| Saved { status, page_title, summary, source_hint, created_from });
        Self {
            url: entry.url,
            title: entry.title,
            tags: entry.tags,
            added_at: entry.created_at.as_deref().and_then(Timestamp::parse),
            saved,
        }
    }
}

impl From<Link> for Entry {
    fn from(Link { url, title, tags, added_at, saved }: Link) -> Self {
        let status = saved.as_ref().map(|saved| saved.status);
        let (page_title, summary, source_hint, created_from) = saved.map_or_else(Default::default, |saved| {
            (saved.page_title, saved.summary, saved.source_hint, saved.created_from)
        });
        let (summary, summary_by) = summary.unzip();
        let created_at = added_at.map(|at| at.to_string());
        Self {
            url,
            title,
            page_title,
            tags,
            created_at,
            status,
            summary,
            summary_by,
            source_hint,
            created_from,
        }
    }
}
