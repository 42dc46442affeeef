//! What entries of the audit trail are about, besides messages: named subjects, whose ids follow from their names.

use ichido_core::digest::Digest;
use ichido_core::ledger::RecordName;
use uuid::Uuid;

/// Returns the subject of entries about a key.
pub(crate) fn key_subject(name: &RecordName) -> Uuid {
    subject("key", &name.hash())
}

/// Returns the subject of entries about all keys of an identity.
pub(crate) fn identity_subject(identity: &str) -> Uuid {
    subject("identity", identity.as_bytes())
}

/// Derives the id of a named subject. The same name gives the same id; version 8 keeps it distinct from message ids.
pub(crate) fn subject(kind: &str, name: &[u8]) -> Uuid {
    let digest = Digest::of_bytes(&[kind.as_bytes(), b"\0", name].concat());
    let (first, _) = digest.as_bytes().split_at(16);
    uuid::Builder::from_custom_bytes(first.try_into().unwrap_or_default()).into_uuid()
}
