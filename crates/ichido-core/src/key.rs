//! The idempotency key: one name for one action of one caller.
//!
//! Guarantee: an [`IdempotencyKey`] is 1 to 255 visible ASCII characters, however it was spelled on the wire; where
//! [`KeySyntax::AnyString`] is allowed, spaces too. Two spellings of one key are equal. A key never appears in logs or debug
//! output, only its [`KeyHash`].
//!
//! Start at [`read`], which takes a request's header fields and returns the key, `None` or an error.
//! [`IdempotencyKey::fresh`] and [`IdempotencyKey::derived`] create keys.
// SPEC C1.

mod field;
mod hash;

pub use field::{MAX_FIELD_BYTES, NAMES, read, read_as};
pub use hash::KeyHash;

use crate::digest::Hasher;
use crate::time::Timestamp;

/// The name of one action.
///
/// Equal keys under one operation and one identity are the same action.
///
/// The text is opaque: case matters, and no character has a meaning.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String); // Invariant: 1..=MAX_LEN visible ASCII bytes or spaces.

/// Which characters a key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySyntax {
    /// Visible ASCII.
    Visible,
    /// Visible ASCII and spaces: any structured-field string, as in the IETF draft. A bare key still has no space.
    AnyString,
}

impl IdempotencyKey {
    /// The maximum number of characters in a key.
    pub const MAX_LEN: usize = 255;

    /// Parses a key without quotes, as in a body field, a column or a flag.
    pub fn parse(raw: &str) -> Result<Self, KeyError> {
        Self::parse_as(raw, KeySyntax::Visible)
    }

    /// Parses a key without quotes that may have these characters.
    pub fn parse_as(raw: &str, syntax: KeySyntax) -> Result<Self, KeyError> {
        // Visibility first: a length in characters is meaningful only if each is one byte.
        if let Some(index) = first_not_in(syntax, raw.as_bytes()) {
            return Err(KeyError::NotVisible { index });
        }
        match raw.len() {
            0 => Err(KeyError::Empty),
            len if Self::MAX_LEN < len => Err(KeyError::TooLong { len }),
            _ => Ok(Self(raw.to_owned())),
        }
    }

    /// Creates a new key: a UUIDv7 from the time and ten random bytes.
    ///
    /// Version 7 contains its time, so keys created in order are stored in order, and an old key shows its age.
    pub fn fresh(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string())
    }

    /// Derives the key of an action from its content.
    ///
    /// The same purpose and parts always give the same key, and no byte can move from one part to another.
    ///
    /// The key is a UUIDv8, because some receivers accept only UUIDs.
    // SPEC A7, D7.
    pub fn derived(purpose: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Hasher::new("ichido/derived-key/1");
        hasher.part(purpose.as_bytes());
        for part in parts {
            hasher.part(part);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finish()[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
    }

    /// Returns the key's characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the key as a structured-field string, the wire format of the IETF draft.
    pub fn to_field_value(&self) -> String {
        format!("\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\""))
    }

    /// Returns the key as a header value: bare, or quoted where a bare one would be misread.
    ///
    /// Parsers treat a value that starts with a quote as a structured-field string, and trim spaces.
    pub fn to_header_value(&self) -> String {
        let is_misread = self.0.starts_with('"') || self.0.contains(' ');
        if is_misread { self.to_field_value() } else { self.0.clone() }
    }

    /// Checks that the key in a body field equals this key from the header.
    // SPEC D11.
    pub fn agrees_with_body(&self, body_key: &str) -> Result<(), KeyError> {
        if self.0 == body_key { Ok(()) } else { Err(KeyError::BodyDisagrees) }
    }
}

/// Shows the hash, never the key: debug output ends up in logs.
impl std::fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IdempotencyKey(#{})", self.log_hash())
    }
}

impl KeySyntax {
    const fn allows(self, byte: u8) -> bool {
        byte.is_ascii_graphic() || (byte == b' ' && matches!(self, Self::AnyString))
    }
}

/// Returns how many characters precede the first invalid one, if there is one.
fn first_not_in(syntax: KeySyntax, raw: &[u8]) -> Option<usize> {
    raw.iter().position(|byte| !syntax.allows(*byte))
}

/// Why a request has no valid key. No variant contains a character of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is missing and the operation needs one ([`Policy::require`](crate::ledger::Policy::require)).
    #[error(
        "this request needs an Idempotency-Key header; send 1 to 255 visible ASCII characters, such as a UUID, and the same key on every retry"
    )]
    Missing,
    /// The value is empty.
    #[error("the idempotency key is empty; send 1 to 255 visible ASCII characters, such as a UUID")]
    Empty,
    /// Longer than [`IdempotencyKey::MAX_LEN`] characters.
    #[error("the idempotency key has {len} characters; at most 255 are allowed")]
    TooLong {
        /// Characters found.
        len: usize,
    },
    /// The field line is longer than [`MAX_FIELD_BYTES`].
    #[error("the idempotency key's header line has {len} bytes; at most {MAX_FIELD_BYTES} are allowed")]
    FieldTooLong {
        /// Bytes found.
        len: usize,
    },
    /// A space, a control character or a byte outside ASCII.
    #[error(
        "the idempotency key has a character at offset {index} that is not visible ASCII (! to ~); use no spaces, control characters or accents; if a proxy joined two header lines, send the header once"
    )]
    NotVisible {
        /// How many characters of the key precede it.
        index: usize,
    },
    /// It begins with a quote but is not a structured-field string.
    #[error(
        "the idempotency key starts with a quote but is not one quoted string; write \"…\" with \\\" and \\\\ as the only escapes, or leave the quotes out"
    )]
    BadQuoting,
    /// The same header appears more than once, with equal or different values.
    #[error("the header {name} was sent {count} times; send it once")]
    ManyLines {
        /// The header's name in our spelling.
        name: &'static str,
        /// Lines found.
        count: usize,
    },
    /// `Idempotency-Key` and `X-Idempotency-Key` contain different keys.
    #[error(
        "Idempotency-Key and X-Idempotency-Key have different values; send only one, or the same key in both"
    )]
    HeadersDisagree,
    /// The body's `idempotency_key` differs from the header's.
    #[error("the body's idempotency_key differs from the key in the header; send the same key in both")]
    BodyDisagrees,
}

#[cfg(test)]
mod tests;
