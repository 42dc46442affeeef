//! Pagination cursors: the end of a page as an opaque text.
//!
//! Guarantee: a text that was not written here is refused, except for one in four billion.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ichido_core::digest::Digest;
use ichido_core::time::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

/// The bytes of the checksum.
const CHECK_BYTES: usize = 4;
/// Maximum length of a cursor: a timestamp and a hash, with their checksum, in base64.
const MAX_TEXT_BYTES: usize = (8 + 32 + CHECK_BYTES).div_ceil(3) * 4;

/// The position of an entry, as bytes.
pub(super) trait CursorKey: Sized {
    fn to_bytes(&self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl<const N: usize> CursorKey for [u8; N] {
    fn to_bytes(&self) -> Vec<u8> {
        self.to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

impl CursorKey for Uuid {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::from_slice(bytes).ok()
    }
}

/// A timestamp, and a key for entries of the same time.
impl<T: CursorKey> CursorKey for (Timestamp, T) {
    fn to_bytes(&self) -> Vec<u8> {
        [self.0.as_micros().to_be_bytes().as_slice(), &self.1.to_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (moment, rest) = bytes.split_first_chunk()?;
        Some((Timestamp::from_micros(i64::from_be_bytes(*moment)), T::from_bytes(rest)?))
    }
}

/// The position in a parameter.
pub(super) struct Cursor<P>(pub(super) P);

impl<'de, P: CursorKey> Deserialize<'de> for Cursor<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = decode(&String::deserialize(deserializer)?).map(Self);
        key.ok_or_else(|| {
            D::Error::custom(
                "is not a valid cursor; use `next` of the previous page, or leave it out for the first page",
            )
        })
    }
}

/// Encodes a position as text.
pub(super) fn encode(key: &impl CursorKey) -> String {
    let key = key.to_bytes();
    URL_SAFE_NO_PAD.encode([&*key, checksum(&key).as_slice()].concat())
}

/// Returns the cursor of the next page.
///
/// It begins after the last entry of a full page.
pub(super) fn next<T, P: CursorKey>(page: &[T], limit: u32, key: impl Fn(&T) -> P) -> Option<String> {
    page.last().filter(|_| page.len() == limit as usize).map(|last| encode(&key(last)))
}

fn decode<P: CursorKey>(text: &str) -> Option<P> {
    // Longer texts are not decoded.
    if MAX_TEXT_BYTES < text.len() {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (key, given) = bytes.split_last_chunk::<CHECK_BYTES>()?;
    (*given == checksum(key)).then(|| P::from_bytes(key)).flatten()
}

fn checksum(key: &[u8]) -> [u8; CHECK_BYTES] {
    let digest = Digest::of_bytes(key);
    let (first, _) = digest.as_bytes().split_at(CHECK_BYTES);
    first.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_nothing_else_does() {
        let key = *b"0123456789abcdef";
        let text = encode(&key);
        assert_eq!(decode::<[u8; 16]>(&text), Some(key));
        assert_eq!(decode::<[u8; 15]>(&text), None, "of another length");
        let longer = format!("{text}AAAA");
        for garbled in ["", "AAAA", "../../etc", &text[1..], &text.replace('M', "N"), &longer] {
            assert_eq!(decode::<[u8; 16]>(garbled), None, "{garbled}");
        }
        for index in 0..text.len() {
            let other = if text.as_bytes()[index] == b'A' { "B" } else { "A" };
            let mut garbled = text.clone();
            garbled.replace_range(index..=index, other);
            assert_ne!(decode::<[u8; 16]>(&garbled), Some(key), "{garbled}");
        }
    }
}
