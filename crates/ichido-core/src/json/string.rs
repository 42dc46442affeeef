//! Strings: their grammar, their text, and their canonical spelling.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use super::escape::{self, Escape, is_special};
use super::tape::Escaping;
use super::{JsonError, JsonErrorKind};

/// The text of a string between its quotes, checked by [`scan`].
#[derive(Clone, Copy, Default)]
pub(super) struct StringText<'a> {
    raw: &'a str,
    escaped: bool,
}

/// Checks the string whose opening quote is at `start`.
///
/// Returns its end, including quotes, and its escaping.
pub(super) fn scan(text: &[u8], start: usize) -> Result<(usize, Escaping), JsonError> {
    let mut escaping = Escaping::Plain;
    let mut at = start + 1;
    loop {
        at = plain_end(text, at);
        match text.get(at) {
            Some(b'"') => return Ok((at + 1, escaping)),
            Some(b'\\') => {
                let escape = Escape::read(text, at)?;
                let is_normal = escaping != Escaping::Escaped && escape.is_normal(&text[at..escape.end]);
                escaping = if is_normal { Escaping::EscapedNormal } else { Escaping::Escaped };
                at = escape.end;
            }
            Some(_) => return JsonErrorKind::ControlCharacter.at(at),
            None => return JsonErrorKind::UnexpectedEnd.at(at),
        }
    }
}

impl<'a> StringText<'a> {
    /// Creates the text of the string `quoted`.
    pub(super) fn new(quoted: &'a str, escaping: Escaping) -> Self {
        Self { raw: &quoted[1..quoted.len() - 1], escaped: escaping != Escaping::Plain }
    }

    /// Returns whether [`StringText::raw`] contains escapes.
    pub(super) fn is_escaped(self) -> bool {
        self.escaped
    }

    /// Returns the text as written, including escapes.
    pub(super) fn raw(self) -> &'a str {
        self.raw
    }

    /// Returns the text with its escapes resolved.
    pub(super) fn decode(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        // Not longer than its escapes, so one allocation is enough.
        let mut decoded = String::with_capacity(self.raw.len());
        let bytes = self.raw.as_bytes();
        let mut at = 0;
        while let Some(offset) = self.raw[at..].find('\\') {
            decoded.push_str(&self.raw[at..at + offset]);
            // The reader has checked every escape.
            let Ok(escape) = Escape::read(bytes, at + offset) else {
                break;
            };
            decoded.push(escape.char);
            at = escape.end;
        }
        decoded.push_str(&self.raw[at..]);
        Cow::Owned(decoded)
    }
}

/// Returns `text` in Normalization Form C.
pub(super) fn nfc(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.is_ascii() || unicode_normalization::is_nfc(&text) { text } else { text.nfc().collect() }
}

/// Appends `text` to `out` as a canonical JSON string, including quotes.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    let text = text.as_bytes();
    out.push(b'"');
    let mut at = 0;
    loop {
        let plain = plain_end(text, at);
        out.extend_from_slice(&text[at..plain]);
        let Some(&byte) = text.get(plain) else { break };
        escape::write(byte, out);
        at = plain + 1;
    }
    out.push(b'"');
}

/// Returns the end of the bytes from `start` that need no escape.
///
/// It is the first quote, backslash or control character, or the end of the text.
fn plain_end(text: &[u8], start: usize) -> usize {
    let (words, rest) = text[start..].as_chunks::<8>();
    let mut at = start;
    for word in words {
        let marks = special_bytes(u64::from_le_bytes(*word));
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

/// Marks the lowest byte of `word` that [`is_special`] with its high bit.
///
/// No lower byte is marked. Bits above it are meaningless, because subtraction borrows upwards.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let control = below(word, b' ');
    let quote = below(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (control | quote | backslash) & HIGHS
}
