//! Extracts JSON from the text that a model wrapped it in.
//!
//! Guarantee: a value that is found occurs in the text unchanged. At most [`MAX_STARTS`] positions are tried, in a text
//! of at most [`MAX_BYTES`] bytes, so no text costs more than their product.

use serde::Deserialize as _;
use serde_json::Value;
use serde_json::de::{Deserializer, StrRead};

/// Maximum length of a text that is repaired.
pub(super) const MAX_BYTES: usize = 256 << 10;
/// Maximum number of positions where a value is looked for.
pub(super) const MAX_STARTS: usize = 256;

/// Some writers put this before a text to mark its byte order.
const BYTE_ORDER_MARK: char = '\u{feff}';
const FENCE: &str = "```";

/// Returns the values that a text may contain, if the text itself is not JSON.
pub(super) fn values(text: &str) -> Vec<Value> {
    if MAX_BYTES < text.len() {
        return Vec::new();
    }
    let text = text.trim_matches(|character: char| character == BYTE_ORDER_MARK || character.is_whitespace());
    if let Ok(value) = serde_json::from_str(text) {
        return vec![value];
    }
    if let Some(value) = fenced(text).and_then(|inside| serde_json::from_str(inside).ok()) {
        return vec![value];
    }
    outermost(text).0
}

/// Returns the text between the first and the last code fence, without the language tag.
fn fenced(text: &str) -> Option<&str> {
    let start = text.find(FENCE)? + FENCE.len();
    let end = text.rfind(FENCE).filter(|end| start <= *end)?;
    let inside = &text[start..end];
    Some(inside.trim_start_matches(|character: char| character.is_ascii_alphanumeric()))
        // A bare number or word is not a language tag.
        .filter(|rest| rest.len() < inside.len() && rest.starts_with(char::is_whitespace))
        .or(Some(inside))
}

/// Returns the outermost objects and arrays of a text, and how many positions were tried.
pub(super) fn outermost(text: &str) -> (Vec<Value>, usize) {
    let (mut found, mut from, mut starts) = (Vec::new(), 0, 0);
    while let Some(start) = text[from..].find(['{', '[']).map(|at| from + at) {
        if starts == MAX_STARTS {
            break;
        }
        starts += 1;
        match first_value(&text[start..]) {
            Ok((value, bytes)) => {
                found.push(value);
                from = start + bytes;
            }
            // A value truncated at the end of the text: complete values within it are only a part of what was meant.
            Err(error) if error.is_eof() => break,
            // Both brackets are one byte long.
            Err(_) => from = start + 1,
        }
    }
    (found, starts)
}

/// Returns the value at the beginning of a text, and its length in bytes.
fn first_value(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut reader = Deserializer::new(StrRead::new(text));
    let value = Value::deserialize(&mut reader)?;
    Ok((value, reader.into_iter::<Value>().byte_offset()))
}
