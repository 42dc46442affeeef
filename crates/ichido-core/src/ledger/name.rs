//! Identifies the record a request belongs to.

use crate::digest::Hasher;
use crate::key::IdempotencyKey;

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
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = Hasher::new("ichido/record/1");
        hasher.part(self.operation.as_bytes());
        hasher.part(self.identity.as_bytes());
        hasher.part(self.key.as_str().as_bytes());
        hasher.finish()
    }
}
