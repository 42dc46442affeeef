//! Identifies the record a request belongs to.

use crate::digest::Hasher;
use crate::key::{IdempotencyKey, KeyHash};

/// What makes a record unique.
///
/// The same key under another operation or identity is another action.
// SPEC C3.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordName {
    /// The operation's name, such as `bookmarks.create`.
    pub operation: String,
    /// The caller's identity.
    pub identity: String,
    /// The idempotency key.
    pub key: IdempotencyKey,
}

impl RecordName {
    /// Returns the hash it is stored under, so no client text becomes a stored name.
    ///
    /// It begins with the hash of the key, so the records of a key, or of a hash from a log, are one range of the primary key and
    /// need no index of their own. The other 24 bytes keep the names of different actions apart.
    // SPEC C5.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = Hasher::new("ichido/record/2");
        hasher.part(self.operation.as_bytes());
        hasher.part(self.identity.as_bytes());
        hasher.part(self.key.as_str().as_bytes());
        let mut name = hasher.finish();
        name[..KeyHash::BYTES].copy_from_slice(self.key.hash().as_bytes());
        name
    }

    /// Returns the first and the last hash that records of a key can be stored under.
    pub fn range(key: KeyHash) -> ([u8; 32], [u8; 32]) {
        let mut range = ([0; 32], [0xff; 32]);
        range.0[..KeyHash::BYTES].copy_from_slice(key.as_bytes());
        range.1[..KeyHash::BYTES].copy_from_slice(key.as_bytes());
        range
    }
}
