//! Files that carry bookmarks from one program to another.
//!
//! Guarantee: what is written is read back as the same links, titles, tags and times. A file is bounded, and any bytes
//! give some links.

pub(crate) mod json;
pub(crate) mod netscape;

use crate::settings::limits::MAX_IMPORTED_LINKS;

/// A link in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) url: String,
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
    /// When it was added, in seconds since 1970.
    pub(crate) add_date: Option<i64>,
}

/// Why a file cannot be imported.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileError {
    #[error("the file has more than {MAX_IMPORTED_LINKS} links; split it")]
    TooMany,
    #[error("the file is not an export of this service: {0}")]
    Json(String),
}

#[cfg(test)]
mod tests;
