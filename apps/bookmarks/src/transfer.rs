//! Files that carry bookmarks from one program to another.
//!
//! Guarantee: what is written is read back as the same links, titles, tags and times, and from our own format with all
//! that a person sees of them. A file is bounded, and any bytes give some links.

pub(crate) mod json;
pub(crate) mod netscape;

use ichido::time::Timestamp;

use crate::bookmark::State;
use crate::settings::limits::MAX_IMPORTED_LINKS;

/// A link in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) url: String,
    /// The title that is shown.
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
    /// When it was added.
    pub(crate) added_at: Option<Timestamp>,
    /// What only our own format has.
    pub(crate) saved: Option<Saved>,
}

/// What this service knows about a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) status: State,
    /// The title of the page if the person has written another one; empty if the page has none.
    pub(crate) page_title: Option<String>,
    /// A summary and its author.
    pub(crate) summary: Option<(String, String)>,
    pub(crate) source_hint: Option<String>,
    pub(crate) created_from: Option<String>,
}

impl Saved {
    pub(crate) fn is_done(&self) -> bool {
        self.status == State::Done
    }
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
