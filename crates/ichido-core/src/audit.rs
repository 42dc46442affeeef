//! The audit trail: entries are sealed, so that one that is changed, removed or inserted later is found and named.
//!
//! Guarantee: the same entries under the same key give the same seals; two entries that differ in any field give two different
//! leaves; and what was sealed under a key cannot be altered without it so that [`verify::Verifier`] finds nothing. Nothing
//! here reads a database: pages of it come in, findings go out.
//!
//! An [`entry::Entry`] is hashed into a [`leaf::Leaf`], which also holds the hash of the entry before it of the same message: a
//! message's entries are a chain, which begins from the code of what was asked for ([`request::Request`]). The leaves of one span are a Merkle tree, whose root stands in a [`seal::Seal`]; each seal holds
//! the code of the one before it, and its own code is an HMAC under a key that is not in the database. The last seal's
//! [`seal::Head`], kept elsewhere, vouches for all before it.
//!
//! Whether an entry may follow the one before it by the rules of the lifecycle, [`course`] decides. One that does not is sealed as
//! such: refusing it would let an intruder stop the sealing of everything else.
//!
//! What it cannot show: a change, a removal or an insertion before the seal that the rules allow, a request of which no entry is
//! sealed yet, and seals that were cut off at the end, unless a head was kept.
// SPEC F5, D13.

pub mod course;
pub mod entry;
mod framing;
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
    /// What stands before the first.
    pub const NONE: Self = Self([0; 32]);
}

/// The key that seals are made under. It is never in the database that it guards.
#[derive(Clone)]
pub struct AuditKey(Vec<u8>);

impl AuditKey {
    /// Fewer bytes could be guessed.
    pub const BYTES_MIN: usize = 32;
    /// More is not a key but some other file.
    pub const BYTES_MAX: usize = 1024;

    /// Takes what a key file holds; the line's end that an editor leaves behind does not count.
    pub fn parse(file: &[u8]) -> Result<Self, AuditKeyError> {
        let key = file.strip_suffix(b"\n").unwrap_or(file);
        let key = key.strip_suffix(b"\r").unwrap_or(key);
        match key.len() {
            found if found < Self::BYTES_MIN => Err(AuditKeyError::TooShort { found }),
            found if Self::BYTES_MAX < found => Err(AuditKeyError::TooLong { found }),
            _ => Ok(Self(key.to_vec())),
        }
    }
}

/// A key does not show itself.
impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey(…)")
    }
}

/// Why bytes are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditKeyError {
    /// Too few.
    #[error(
        "the key has {found} bytes and needs at least {}; make one by: openssl rand -hex 32",
        AuditKey::BYTES_MIN
    )]
    TooShort {
        /// How many there are.
        found: usize,
    },
    /// Too many.
    #[error("the key has {found} bytes and may have at most {}; is it another file?", AuditKey::BYTES_MAX)]
    TooLong {
        /// How many there are.
        found: usize,
    },
}
