//! Escapes: what they stand for, and which ones the canonical form writes.

use super::{JsonError, JsonErrorKind};

/// One escape of the text.
pub(super) struct Escape {
    pub(super) char: char,
    /// The position after it.
    pub(super) end: usize,
}

impl Escape {
    /// Reads the escape whose backslash is at `start`.
    pub(super) fn read(text: &[u8], start: usize) -> Result<Self, JsonError> {
        let char = match text.get(start + 1) {
            Some(b'b') => '\u{8}',
            Some(b't') => '\t',
            Some(b'n') => '\n',
            Some(b'f') => '\u{c}',
            Some(b'r') => '\r',
            Some(&literal @ (b'"' | b'\\' | b'/')) => char::from(literal),
            Some(b'u') => return Self::read_unicode(text, start),
            Some(_) => return JsonErrorKind::BadEscape.at(start),
            None => return JsonErrorKind::UnexpectedEnd.at(text.len()),
        };
        Ok(Self { char, end: start + 2 })
    }

    /// Reads `\uXXXX`, or the two of a surrogate pair.
    fn read_unicode(text: &[u8], start: usize) -> Result<Self, JsonError> {
        let first = read_unit(text, start)?;
        if let Some(char) = char::from_u32(first) {
            return Ok(Self { char, end: start + 6 });
        }
        if first < 0xdc00 && text[start + 6..].starts_with(b"\\u") {
            let second = read_unit(text, start + 6)?;
            if let 0xdc00..=0xdfff = second
                && let Some(char) = char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
            {
                return Ok(Self { char, end: start + 12 });
            }
        }
        JsonErrorKind::LoneSurrogate.at(start)
    }

    /// Returns whether `spelling` is the canonical spelling of this escape.
    pub(super) fn is_normal(&self, spelling: &[u8]) -> bool {
        match u8::try_from(self.char) {
            Ok(byte) if is_special(byte) => match short_escape(byte) {
                Some(_) => spelling.len() == 2,
                None => spelling == long_escape(byte),
            },
            Ok(_) | Err(_) => false,
        }
    }
}

/// Writes the escape of a quote, a backslash or a control character.
pub(super) fn write(byte: u8, out: &mut Vec<u8>) {
    match short_escape(byte) {
        Some(letter) => out.extend_from_slice(&[b'\\', letter]),
        None => out.extend_from_slice(&long_escape(byte)),
    }
}

/// Returns whether a character must be escaped in a string.
pub(super) fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Returns the UTF-16 code unit of the `\uXXXX` at `start`.
fn read_unit(text: &[u8], start: usize) -> Result<u32, JsonError> {
    let mut unit = 0;
    for position in start + 2..start + 6 {
        let digit = match text.get(position) {
            Some(&byte) => char::from(byte).to_digit(16),
            None => return JsonErrorKind::UnexpectedEnd.at(text.len()),
        };
        match digit {
            Some(digit) => unit = unit << 4 | digit,
            None => return JsonErrorKind::BadEscape.at(start),
        }
    }
    Ok(unit)
}

/// Returns the letter after the backslash, for characters with a short escape in the canonical form.
fn short_escape(byte: u8) -> Option<u8> {
    match byte {
        0x08 => Some(b'b'),
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        0x0c => Some(b'f'),
        b'\r' => Some(b'r'),
        b'"' | b'\\' => Some(byte),
        _ => None,
    }
}

/// Returns the escape of a control character without a short one.
fn long_escape(byte: u8) -> [u8; 6] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    [b'\\', b'u', b'0', b'0', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}
