//! Checks before a value reaches a database. The databases differ in what they can hold, but must accept the same.

use std::ops::RangeInclusive;

use crate::error::StoreError;

/// Checks that a text is short enough and can be stored by both databases.
pub(crate) fn text(what: &'static str, text: &str, max_bytes: usize) -> Result<(), StoreError> {
    bytes(what, text.len(), max_bytes)?;
    no_nul(what, text)
}

/// Checks a text that must not be empty.
pub(crate) fn name(what: &'static str, name: &str, max_bytes: usize) -> Result<(), StoreError> {
    if name.is_empty() { Err(StoreError::Empty { what }) } else { text(what, name, max_bytes) }
}

/// Checks a size.
pub(crate) fn bytes(what: &'static str, found: usize, most: usize) -> Result<(), StoreError> {
    if found <= most { Ok(()) } else { Err(StoreError::TooLarge { what, found, most }) }
}

/// Refuses NUL, which PostgreSQL's text cannot hold. Found by the server, it would abort the caller's transaction.
pub(crate) fn no_nul(what: &'static str, text: &str) -> Result<(), StoreError> {
    if text.contains('\0') { Err(StoreError::NulInText { what }) } else { Ok(()) }
}

/// Checks that a column can hold a number.
pub(crate) fn number(what: &'static str, found: u32, allowed: RangeInclusive<u32>) -> Result<(), StoreError> {
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(StoreError::OutOfRange { what, found, least: *allowed.start(), most: *allowed.end() })
}
