//! The idempotency key: one name for one action of one person.
//!
//! Guarantee: an [`IdempotencyKey`] is 1 to 255 visible ASCII characters, however it was spelled on the
//! wire; two spellings of one key are equal, and a key never appears in logs or debug output, only its hash.
//!
//! Start at [`read`], which takes a request's header fields and answers with the key, with none, or with
//! what is wrong. [`IdempotencyKey::fresh`] and [`IdempotencyKey::derived`] make keys.
// SPEC C1.

mod field;

pub use field::{FIELD_BYTES_MAX, NAMES, read};

use crate::digest::{Hasher, hex};
use crate::time::Timestamp;

/// The name of one action. Equal keys under one operation and one identity are the same action.
///
/// The text is opaque: case matters, and no character has a meaning.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String); // Invariant: 1..=LEN_MAX visible ASCII bytes.

impl IdempotencyKey {
    /// The most characters a key may have.
    pub const LEN_MAX: usize = 255;

    /// Takes the key's own characters, without quotes: what a body field, a column or a flag holds.
    pub fn parse(raw: &str) -> Result<Self, KeyError> {
        // Visibility first: a length in characters means something only when each is one byte.
        if let Some(index) = first_not_visible(raw.as_bytes()) {
            return Err(KeyError::NotVisible { index });
        }
        match raw.len() {
            0 => Err(KeyError::Empty),
            len if Self::LEN_MAX < len => Err(KeyError::TooLong { len }),
            _ => Ok(Self(raw.to_owned())),
        }
    }

    /// A new key: a UUIDv7 made of the moment and ten random bytes.
    ///
    /// Version 7 carries its time, so keys made in order are stored in order, and an old key shows its age.
    pub fn fresh(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string())
    }

    /// The key of an action that is known by its content: the same purpose and parts always
    /// give the same key, and no part can lend a byte to its neighbour.
    ///
    /// Written as a UUIDv8, because some receivers take nothing but a UUID.
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

    /// The key's characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as a structured-field string, the form the IETF draft asks for on the wire.
    pub fn to_field_value(&self) -> String {
        format!("\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\""))
    }

    /// What logs carry instead of the key: the first 16 hex digits of its SHA-256.
    ///
    /// Anyone who has the key can compute it and search: `printf %s "$KEY" | sha256sum | cut -c1-16`.
    // SPEC C5.
    pub fn log_hash(&self) -> String {
        let mut text = hex(&crate::digest::sha256(self.0.as_bytes()));
        text.truncate(16);
        text
    }

    /// Checks the key that a body repeats in a field of its own against this one from the header.
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

/// How many characters stand before the first that no key may have, if there is one.
fn first_not_visible(raw: &[u8]) -> Option<usize> {
    raw.iter().position(|byte| !byte.is_ascii_graphic())
}

/// Why there is no key to be had from what was sent. No variant holds a character of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is none, and the operation needs one ([`Policy::require`](crate::ledger::Policy::require)).
    #[error(
        "this request needs an Idempotency-Key header; send 1 to 255 visible ASCII characters, such as a UUID, and the same one on every resend"
    )]
    Missing,
    /// The value is there, and empty.
    #[error("the idempotency key is empty; send 1 to 255 visible ASCII characters, such as a UUID")]
    Empty,
    /// Over [`IdempotencyKey::LEN_MAX`] characters.
    #[error("the idempotency key has {len} characters; at most 255 are allowed")]
    TooLong {
        /// Characters found.
        len: usize,
    },
    /// The field line itself is over [`FIELD_BYTES_MAX`].
    #[error("the idempotency key's header line has {len} bytes; at most {FIELD_BYTES_MAX} are read")]
    FieldTooLong {
        /// Bytes found.
        len: usize,
    },
    /// A space, a control character or a byte outside ASCII.
    #[error(
        "in the idempotency key, after {index} characters there is one that is not visible ASCII (! to ~); no spaces, controls or accents; if a proxy joined two header lines, send the header once"
    )]
    NotVisible {
        /// How many characters of the key stand before it.
        index: usize,
    },
    /// It begins with a quote but is no structured-field string.
    #[error(
        "the idempotency key begins with a quote but is not one quoted string; write \"…\" with \\\" and \\\\ as the only escapes, or leave the quotes out"
    )]
    BadQuoting,
    /// More than one line of the same header, equal or not.
    #[error("the header {name} was sent {count} times; send it once")]
    ManyLines {
        /// The header's name, as we spell it.
        name: &'static str,
        /// Lines found.
        count: usize,
    },
    /// `Idempotency-Key` and `X-Idempotency-Key` hold different keys.
    #[error(
        "Idempotency-Key and X-Idempotency-Key hold different keys; they are one header: send one, or the same key in both"
    )]
    HeadersDisagree,
    /// The body's `idempotency_key` is another key than the header's.
    #[error("the body's idempotency_key is not the key of the header; they must be the same")]
    BodyDisagrees,
}

#[cfg(test)]
mod tests;
