//! Tags: short words that a person files a bookmark under.
//!
//! Guarantee: equal tags are written the same, so `Rust` and `ｒｕｓｔ` are one tag. The list is sorted, without
//! duplicates, and bounded.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::reading::words;
use crate::search::fold;
use crate::settings::limits::{MAX_TAG_CHARS, MAX_TAGS};

/// The tags of one bookmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tags(BTreeSet<String>);

/// Why a list of tags is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TagError {
    #[error("a bookmark can have at most {MAX_TAGS} tags")]
    TooMany,
    #[error("a tag must have 1 to {MAX_TAG_CHARS} characters and no comma")]
    Invalid,
}

impl Tags {
    /// Reads a person's tags.
    pub(crate) fn parse<'a>(tags: impl IntoIterator<Item = &'a str>) -> Result<Self, TagError> {
        let tags = tags.into_iter().map(|tag| Self::tag(tag).ok_or(TagError::Invalid));
        let tags = tags.collect::<Result<BTreeSet<_>, _>>()?;
        if MAX_TAGS < tags.len() { Err(TagError::TooMany) } else { Ok(Self(tags)) }
    }

    /// Takes what can be a tag, as much as fits: names of folders are longer, and have commas.
    pub(crate) fn fitting<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let shortened = |name: &str| {
            let name: String = name.replace(',', " ").chars().take(MAX_TAG_CHARS).collect();
            Self::tag(&name)
        };
        Self(names.into_iter().filter_map(shortened).take(MAX_TAGS).collect())
    }

    /// Returns the one form of a tag.
    pub(crate) fn tag(text: &str) -> Option<String> {
        let tag = words(&fold(text));
        let tag = tag.trim_start_matches('#').trim_start();
        let is_tag = (1..=MAX_TAG_CHARS).contains(&tag.chars().count()) && !tag.contains(',');
        is_tag.then(|| tag.to_owned())
    }

    /// Reads what the database stores.
    pub(crate) fn from_json(stored: &str) -> Self {
        Self(serde_json::from_str(stored).unwrap_or_default())
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::json!(self.0).to_string()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_tags_are_written_the_same() {
        let tags = Tags::parse([" Rust ", "ｒｕｓｔ", "#rust", "machine\u{202e}  learning", "旅行"]).unwrap();
        assert_eq!(tags.iter().collect::<Vec<_>>(), ["machine learning", "rust", "旅行"]);
        assert_eq!(Tags::from_json(&tags.to_json()), tags);
    }

    #[test]
    fn tags_are_bounded() {
        let long = "a".repeat(MAX_TAG_CHARS + 1);
        for invalid in ["", " # ", "a,b", &long] {
            assert_eq!(Tags::parse([invalid]), Err(TagError::Invalid), "{invalid}");
        }
        let many: Vec<String> = (0..=MAX_TAGS).map(|number| number.to_string()).collect();
        assert_eq!(Tags::parse(many.iter().map(String::as_str)), Err(TagError::TooMany));
        assert_eq!(Tags::fitting(many.iter().map(String::as_str)).iter().count(), MAX_TAGS);
        assert_eq!(Tags::fitting([long.as_str(), "a, b"]).iter().collect::<Vec<_>>(), ["a b", &long[1..]]);
    }
}
