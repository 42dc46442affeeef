//! The audit trail: entries are sealed, so later changes, removals and insertions are found.
//!
//! Guarantee: the same entries under the same key give the same seals. Two entries that differ in any field give
//! different leaves. What was sealed under a key cannot be altered without the key unnoticed by [`verify::Verifier`].
//! Nothing here reads a database: callers pass in pages of it and get findings.
//!
//! An [`entry::AuditEntry`] is hashed into a [`leaf::Leaf`], which also holds the hash of the same message's previous entry:
//! a message's entries are a chain that begins with the code of the request ([`request::AuditedRequest`]). The leaves of one
//! span are a Merkle tree, whose root is in a [`seal::Seal`]. Each seal holds the code of the previous one, and its own
//! code is an HMAC under a key that is not in the database. The last seal's [`seal::SealHead`], kept elsewhere, proves all
//! the others.
//!
//! [`course`] decides whether an entry may follow the previous one by the rules of the lifecycle. An entry that may not
//! is sealed as such: refusing it would let an intruder stop the sealing of everything else.
//!
//! Settled key records are sealed in lists ([`key_record`]), each with an entry of its own.
//!
//! It cannot show a change, removal or insertion before the seal that the rules allow, a request without a sealed
//! entry, or seals that were cut off at the end, unless a head was kept.
// SPEC F5, D13.

pub mod course;
pub mod entry;
mod framing;
pub mod key_record;
pub mod leaf;
pub mod request;
pub mod seal;
pub mod verify;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::digest::hash;

hash! {
    /// 32 bytes of SHA-256, keyed or not.
    Code = ""
}

impl Code {
    /// The code before the first one.
    pub const NONE: Self = Self([0; 32]);
}

/// The key that seals are made with.
///
/// It is never in the database that it protects.
#[derive(Clone)]
pub struct AuditKey(Vec<u8>);

impl AuditKey {
    /// The minimum length: fewer bytes could be guessed.
    pub const MIN_BYTES: usize = 32;
    /// The maximum length: a longer file is not a key.
    pub const MAX_BYTES: usize = 1024;

    /// Parses the contents of a key file; a trailing line break is ignored.
    pub fn parse(file: &[u8]) -> Result<Self, AuditKeyError> {
        let key = file.strip_suffix(b"\n").unwrap_or(file);
        let key = key.strip_suffix(b"\r").unwrap_or(key);
        match key.len() {
            found if found < Self::MIN_BYTES => Err(AuditKeyError::TooShort { found }),
            found if Self::MAX_BYTES < found => Err(AuditKeyError::TooLong { found }),
            _ => Ok(Self(key.to_vec())),
        }
    }
}

/// Never shows the key.
impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey(…)")
    }
}

/// Why bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditKeyError {
    /// Too few bytes.
    #[error(
        "the key has {found} bytes and needs at least {}; create one with: openssl rand -hex 32",
        AuditKey::MIN_BYTES
    )]
    TooShort {
        /// How many there are.
        found: usize,
    },
    /// Too many bytes.
    #[error(
        "the key has {found} bytes; at most {} are allowed; check that it is the right file",
        AuditKey::MAX_BYTES
    )]
    TooLong {
        /// How many there are.
        found: usize,
    },
}
