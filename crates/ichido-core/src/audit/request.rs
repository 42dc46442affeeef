//! The request of a message and its code, which begins the chain of its entries.
//!
//! Guarantee: two requests have the same code only if every field and every byte is the same. The identity, the key and
//! the digest are not included: every entry has them.

use super::Code;
use super::framing::Framing;
use crate::digest::sha256;
use crate::time::Timestamp;

/// A request as stored in the database, with the hash of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditedRequest<'a> {
    /// The media type.
    pub content_type: &'a str,
    /// SHA-256 of the bytes.
    pub hash: [u8; 32],
    /// The priority.
    pub priority: i16,
    /// The maximum number of attempts.
    pub max_attempts: i64,
    /// The earliest time to send it.
    pub due: Option<Timestamp>,
    /// The hops of the request, as in its header.
    pub hops: Option<&'a str>,
}

/// The codes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCodes {
    /// [`AuditedRequest::code`].
    pub code: Code,
    /// [`AuditedRequest::code_without_hops`].
    pub without_hops: Code,
    /// Whether it has any hops.
    pub has_hops: bool,
}

impl AuditedRequest<'_> {
    /// Returns the hash of a request's bytes.
    pub fn hash(bytes: &[u8]) -> [u8; 32] {
        sha256(bytes)
    }

    /// Returns the code of its contents.
    pub fn code(&self) -> Code {
        let mut framing = Framing::new(None, "ichido audit request 2");
        self.add_to(&mut framing);
        framing.part_or_none(self.hops.map(str::as_bytes));
        framing.finish()
    }

    /// Returns the code from before hops were part of it, as in old seals.
    pub fn code_without_hops(&self) -> Code {
        let mut framing = Framing::new(None, "ichido audit request 1");
        self.add_to(&mut framing);
        framing.finish()
    }

    /// Returns both codes.
    pub fn codes(&self) -> RequestCodes {
        let (code, without_hops) = (self.code(), self.code_without_hops());
        RequestCodes { code, without_hops, has_hops: self.hops.is_some() }
    }

    fn add_to(&self, framing: &mut Framing) {
        framing.part(self.content_type.as_bytes());
        framing.part(&self.hash);
        framing.number(self.priority.into());
        framing.number(self.max_attempts);
        framing.part_or_none(self.due.map(|due| due.as_micros().to_be_bytes()).as_ref().map(|b| &b[..]));
    }
}
