//! Strings: their grammar, their text, and their canonical spelling.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use super::tape::Shape;
use super::{Fault, JsonError};

/// The text of a string as it stands between its quotes, checked by [`scan`].
#[derive(Clone, Copy, Default)]
pub(super) struct Text<'a> {
    raw: &'a str,
    escaped: bool,
}

/// Checks the string whose opening quote is at `start`, and says where it ends, quotes included, and how it
/// is spelled.
pub(super) fn scan(text: &[u8], start: usize) -> Result<(usize, Shape), JsonError> {
    let mut shape = Shape::Plain;
    let mut at = start + 1;
    loop {
        at = plain_end(text, at);
        match text.get(at) {
            Some(b'"') => return Ok((at + 1, shape)),
            Some(b'\\') => {
                let escape = Escape::read(text, at)?;
                let is_normal = shape != Shape::Escaped && escape.is_normal(&text[at..escape.end]);
                shape = if is_normal {
                    Shape::EscapedNormal
                } else {
                    Shape::Escaped
                };
                at = escape.end;
            }
            Some(_) => return Fault::ControlCharacter.at(at),
            None => return Fault::UnexpectedEnd.at(at),
        }
    }
}

impl<'a> Text<'a> {
    /// The text of a string that is spelled `quoted`.
    pub(super) fn new(quoted: &'a str, shape: Shape) -> Self {
        Self {
            raw: &quoted[1..quoted.len() - 1],
            escaped: shape != Shape::Plain,
        }
    }

    /// Whether [`Text::raw`] holds escapes.
    pub(super) fn is_escaped(self) -> bool {
        self.escaped
    }

    /// The text as it is spelled, escapes and all.
    pub(super) fn raw(self) -> &'a str {
        self.raw
    }

    /// The text with its escapes resolved.
    pub(super) fn decode(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        // Not longer than the escapes it comes from, so one allocation is enough.
        let mut decoded = String::with_capacity(self.raw.len());
        let bytes = self.raw.as_bytes();
        let mut at = 0;
        while let Some(offset) = self.raw[at..].find('\\') {
            decoded.push_str(&self.raw[at..at + offset]);
            // The reader has passed every escape.
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

/// `text` in Normalization Form C.
pub(super) fn nfc(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.is_ascii() || unicode_normalization::is_nfc(&text) {
        text
    } else {
        text.nfc().collect()
    }
}

/// Writes `text` in its canonical spelling.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    let text = text.as_bytes();
    out.push(b'"');
    let mut at = 0;
    loop {
        let plain = plain_end(text, at);
        out.extend_from_slice(&text[at..plain]);
        let Some(&byte) = text.get(plain) else { break };
        match short_escape(byte) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.extend_from_slice(&long_escape(byte)),
        }
        at = plain + 1;
    }
    out.push(b'"');
}

/// One escape of the text.
struct Escape {
    char: char,
    /// The byte after it.
    end: usize,
}

impl Escape {
    /// Reads the escape whose backslash is at `start`.
    fn read(text: &[u8], start: usize) -> Result<Self, JsonError> {
        let char = match text.get(start + 1) {
            Some(b'b') => '\u{8}',
            Some(b't') => '\t',
            Some(b'n') => '\n',
            Some(b'f') => '\u{c}',
            Some(b'r') => '\r',
            Some(&literal @ (b'"' | b'\\' | b'/')) => char::from(literal),
            Some(b'u') => return Self::read_unicode(text, start),
            Some(_) => return Fault::BadEscape.at(start),
            None => return Fault::UnexpectedEnd.at(text.len()),
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
                return Ok(Self {
                    char,
                    end: start + 12,
                });
            }
        }
        Fault::LoneSurrogate.at(start)
    }

    /// Whether `spelling` is how the canonical form spells this escape.
    fn is_normal(&self, spelling: &[u8]) -> bool {
        match u8::try_from(self.char) {
            Ok(byte) if is_special(byte) => match short_escape(byte) {
                Some(_) => spelling.len() == 2,
                None => spelling == long_escape(byte),
            },
            Ok(_) | Err(_) => false,
        }
    }
}

/// The UTF-16 code unit of the `\uXXXX` at `start`.
fn read_unit(text: &[u8], start: usize) -> Result<u32, JsonError> {
    let mut unit = 0;
    for position in start + 2..start + 6 {
        let digit = match text.get(position) {
            Some(&byte) => char::from(byte).to_digit(16),
            None => return Fault::UnexpectedEnd.at(text.len()),
        };
        match digit {
            Some(digit) => unit = unit << 4 | digit,
            None => return Fault::BadEscape.at(start),
        }
    }
    Ok(unit)
}

/// The letter after the backslash, for the characters that have a short escape in the canonical form.
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

/// The escape of a control character that has no short one.
fn long_escape(byte: u8) -> [u8; 6] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    [
        b'\\',
        b'u',
        b'0',
        b'0',
        DIGITS[usize::from(byte >> 4)],
        DIGITS[usize::from(byte & 15)],
    ]
}

/// Where the run of bytes from `start` ends that stand for themselves in a string: at the first quote,
/// backslash or control character, or at the end of the text.
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
    at + rest
        .iter()
        .position(|&byte| is_special(byte))
        .unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Sets the high bit of the lowest byte of `word` that [`is_special`], and of none below it. Bits above it
/// mean nothing, because subtraction borrows upwards.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let control = below(word, b' ');
    let quote = below(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (control | quote | backslash) & HIGHS
}
