//! Taking JSON out of what a model wrapped it in.
//!
//! Guarantee: a value that is found stands in the text as it is. At most [`STARTS_MAX`] places are tried, in a text of at most
//! [`BYTES_MAX`] bytes, so that no text costs more than their product.

use serde::Deserialize as _;
use serde_json::Value;
use serde_json::de::{Deserializer, StrRead};

/// The longest text that is mended.
pub(super) const BYTES_MAX: usize = 256 << 10;
/// The most places where a value is looked for.
pub(super) const STARTS_MAX: usize = 256;

/// What some write before a text, to say in which order its bytes come.
const BYTE_ORDER_MARK: char = '\u{feff}';
const FENCE: &str = "```";

/// The values that a text may mean, the text itself being none.
pub(super) fn values(text: &str) -> Vec<Value> {
    if BYTES_MAX < text.len() {
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

/// What stands between the first fence of code and the last, less the language after the first.
fn fenced(text: &str) -> Option<&str> {
    let start = text.find(FENCE)? + FENCE.len();
    let end = text.rfind(FENCE).filter(|end| start <= *end)?;
    let inside = &text[start..end];
    Some(inside.trim_start_matches(|character: char| character.is_ascii_alphanumeric()))
        // A bare number or word is not taken for a language.
        .filter(|rest| rest.len() < inside.len() && rest.starts_with(char::is_whitespace))
        .or(Some(inside))
}

/// The objects and arrays in a text that stand in no other, and how many places were tried.
pub(super) fn outermost(text: &str) -> (Vec<Value>, usize) {
    let (mut found, mut from, mut starts) = (Vec::new(), 0, 0);
    while let Some(start) = text[from..].find(['{', '[']).map(|at| from + at) {
        if starts == STARTS_MAX {
            break;
        }
        starts += 1;
        match first_value(&text[start..]) {
            Ok((value, bytes)) => {
                found.push(value);
                from = start + bytes;
            }
            // A value that is cut off at the text's end: what is whole within it is only a part of what was meant.
            Err(error) if error.is_eof() => break,
            // Both brackets are one byte.
            Err(_) => from = start + 1,
        }
    }
    (found, starts)
}

/// The value at the beginning of a text, and how many bytes it has.
fn first_value(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut reader = Deserializer::new(StrRead::new(text));
    let value = Value::deserialize(&mut reader)?;
    Ok((value, reader.into_iter::<Value>().byte_offset()))
}
