//! The fingerprint: tells whether two requests under one key are the same.
//!
//! Guarantee: two requests have the same fingerprint exactly when operation, identity, method, path, query, media type,
//! body digest and all further inputs are equal; moving a byte from one part to its neighbour changes it. Admission
//! compares fingerprints; the audit trail and the sender show the [`Digest`]. They are two types.
// SPEC C3.

mod inputs;

pub use inputs::Inputs;

use crate::digest::{Digest, Hasher, hash, media_type};

hash! {
    /// `v1:` and 64 hex digits: a hash of everything that identifies a request.
    ///
    /// The version of the scheme is part of the hash and of the text, so a later scheme never matches by chance.
    Fingerprint = "v1:"
}

/// The inputs of a fingerprint.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The operation's name, such as `bookmarks.create`.
    pub operation: &'a str,
    /// The caller's stable identity, never the bytes of a token, which change on renewal.
    pub identity: &'a str,
    /// The HTTP method; case matters, as in HTTP.
    pub method: &'a str,
    /// The actual path, not the route's pattern.
    pub path: &'a str,
    /// The query without its question mark; empty when there is none.
    pub query: &'a str,
    /// The value of `Content-Type`, empty when there is none; compared as [`media_type`] returns it.
    pub media_type: &'a str,
    /// The digest of the body.
    pub digest: Digest,
    /// Further inputs that a boundary file compares, such as a claim or a header.
    pub inputs: Option<Inputs>,
}

impl Fingerprint {
    /// Computes the fingerprint of a request.
    pub fn new(parts: &RequestParts<'_>) -> Self {
        let mut hasher = Hasher::new("ichido/fingerprint/1");
        let media_type = media_type(parts.media_type);
        for text in
            [parts.operation, parts.identity, parts.method, parts.path, parts.query, media_type.as_str()]
        {
            hasher.part(text.as_bytes());
        }
        hasher.part(parts.digest.as_bytes());
        // Without further inputs the hash equals that of earlier releases, so stored fingerprints still match.
        if let Some(inputs) = &parts.inputs {
            hasher.part(inputs.as_bytes());
        }
        Self(hasher.finish())
    }
}

#[cfg(test)]
mod tests;
