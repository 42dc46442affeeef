//! What logs contain instead of a key.

use std::fmt;

use super::IdempotencyKey;
use crate::digest::{hex, sha256};

/// The first 8 bytes of a key's SHA-256, written as 16 hex digits.
///
/// Anyone who has the key can compute it: `printf %s "$KEY" | sha256sum | cut -c1-16`. Records are stored under names that begin
/// with it ([`RecordName::hash`](crate::ledger::RecordName::hash)), so it finds them.
// SPEC C5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; Self::BYTES]);

impl KeyHash {
    /// The number of its bytes.
    pub const BYTES: usize = 8;

    /// Parses 16 hex digits, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 2 * Self::BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
        Some(Self(number.to_be_bytes()))
    }

    /// Returns the hash of the key of a record, which its stored name begins with.
    pub fn of_name(name: &[u8; 32]) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&name[..Self::BYTES]);
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl IdempotencyKey {
    /// Returns its hash.
    pub fn hash(&self) -> KeyHash {
        let mut bytes = [0; KeyHash::BYTES];
        bytes.copy_from_slice(&sha256(self.as_str().as_bytes())[..KeyHash::BYTES]);
        KeyHash(bytes)
    }

    /// Returns what logs contain instead of the key: its [`KeyHash`] as text.
    // SPEC C5.
    pub fn log_hash(&self) -> String {
        self.hash().to_string()
    }
}
