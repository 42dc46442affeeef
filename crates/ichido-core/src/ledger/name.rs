//! Which record a request belongs to.

use crate::digest::Hasher;
use crate::key::IdempotencyKey;

/// What makes a record unique (SPEC C3): the same key under another operation or identity is another action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordName {
    /// The operation's name, such as `bookmarks.create`.
    pub operation: String,
    /// Who asks.
    pub identity: String,
    /// The key.
    pub key: IdempotencyKey,
}

impl RecordName {
    /// The name under which it is stored: a hash, so that no text of a client is ever a name of ours.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = Hasher::new("ichido/record/1");
        hasher.part(self.operation.as_bytes());
        hasher.part(self.identity.as_bytes());
        hasher.part(self.key.as_str().as_bytes());
        hasher.finish()
    }
}
