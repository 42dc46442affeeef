//! Our own format: JSON with a version.

use serde::{Deserialize, Serialize};

use super::{FileError, Link};
use crate::settings::limits::MAX_IMPORTED_LINKS;

const VERSION: u32 = 1;
/// What is before and after the entries, which commas separate.
pub(crate) const HEAD: &str = "{\"version\":1,\"bookmarks\":[\n";
pub(crate) const TAIL: &str = "\n]}\n";

#[derive(Deserialize)]
struct File {
    version: u32,
    bookmarks: Vec<Entry>,
}

#[derive(Deserialize, Serialize)]
struct Entry {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    add_date: Option<i64>,
}

pub(crate) fn read(file: &[u8]) -> Result<Vec<Link>, FileError> {
    let file: File = serde_json::from_slice(file).map_err(|error| FileError::Json(error.to_string()))?;
    if file.version != VERSION {
        return Err(FileError::Json(format!("its version is {}, not {VERSION}", file.version)));
    }
    if MAX_IMPORTED_LINKS < file.bookmarks.len() {
        return Err(FileError::TooMany);
    }
    let link = |Entry { url, title, tags, add_date }| Link { url, title, tags, add_date };
    Ok(file.bookmarks.into_iter().map(link).collect())
}

pub(crate) fn write(Link { url, title, tags, add_date }: Link) -> String {
    // A struct of texts and numbers is always JSON.
    serde_json::to_string(&Entry { url, title, tags, add_date }).unwrap_or_default()
}
