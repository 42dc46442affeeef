//! What is refused before a database sees it: the two hold different things, and must take the same.

use std::ops::RangeInclusive;

use crate::error::StoreError;

/// A text that is not too long, and that both databases can hold.
pub(crate) fn text(what: &'static str, text: &str, bytes_max: usize) -> Result<(), StoreError> {
    bytes(what, text.len(), bytes_max)?;
    no_nul(what, text)
}

/// The same of a text that must say something.
pub(crate) fn name(what: &'static str, name: &str, bytes_max: usize) -> Result<(), StoreError> {
    if name.is_empty() { Err(StoreError::Empty { what }) } else { text(what, name, bytes_max) }
}

/// Not more bytes than this.
pub(crate) fn bytes(what: &'static str, found: usize, most: usize) -> Result<(), StoreError> {
    if found <= most { Ok(()) } else { Err(StoreError::TooLarge { what, found, most }) }
}

/// PostgreSQL's text holds no NUL; found out there, it would end the caller's transaction.
pub(crate) fn no_nul(what: &'static str, text: &str) -> Result<(), StoreError> {
    if text.contains('\0') { Err(StoreError::NulInText { what }) } else { Ok(()) }
}

/// A number that its column can hold.
pub(crate) fn number(what: &'static str, found: u32, allowed: RangeInclusive<u32>) -> Result<(), StoreError> {
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(StoreError::OutOfRange { what, found, least: *allowed.start(), most: *allowed.end() })
}
