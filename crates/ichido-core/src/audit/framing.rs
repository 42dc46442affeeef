//! Hashes parts, each prefixed with its length, so no byte can move between parts.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{AuditKey, Code};
use crate::digest::Hasher;

/// A hash in progress: an HMAC if there is a key.
pub(super) enum Framing {
    Open(Hasher),
    Keyed(Box<Hmac<Sha256>>),
}

impl Framing {
    /// Creates a hash.
    ///
    /// `domain` names what is coded and its version: codes of two kinds are never equal.
    pub(super) fn new(key: Option<&AuditKey>, domain: &str) -> Self {
        // HMAC takes a key of any length; the error is for algorithms that do not.
        let keyed = key.and_then(|key| Hmac::<Sha256>::new_from_slice(&key.0).ok());
        match keyed {
            None => Self::Open(Hasher::new(domain)),
            Some(mac) => {
                let mut framing = Self::Keyed(Box::new(mac));
                framing.part(domain.as_bytes());
                framing
            }
        }
    }

    pub(super) fn part(&mut self, bytes: &[u8]) {
        match self {
            Self::Open(hasher) => hasher.part(bytes),
            Self::Keyed(mac) => {
                mac.update(&(bytes.len() as u64).to_be_bytes());
                mac.update(bytes);
            }
        }
    }

    /// Adds an optional part: missing and empty differ.
    pub(super) fn part_or_none(&mut self, bytes: Option<&[u8]>) {
        self.part(&[u8::from(bytes.is_some())]);
        if let Some(bytes) = bytes {
            self.part(bytes);
        }
    }

    pub(super) fn number(&mut self, number: i64) {
        self.part(&number.to_be_bytes());
    }

    pub(super) fn finish(self) -> Code {
        Code(match self {
            Self::Open(hasher) => hasher.finish(),
            Self::Keyed(mac) => mac.finalize().into_bytes().into(),
        })
    }
}
