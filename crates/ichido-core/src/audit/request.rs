//! What a message asked for, and the code of it, from which the chain of its entries begins.
//!
//! Guarantee: two requests have the same code only when every field and every byte is the same. Whose it is, its key and its digest
//! are not here: every entry says those itself.

use super::Code;
use super::framing::Framing;
use crate::digest::sha256;
use crate::time::Timestamp;

/// A request as the database holds it; of its bytes, which may be many, their hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The media type.
    pub content_type: &'a str,
    /// SHA-256 of the bytes.
    pub hash: [u8; 32],
    /// How urgent it is.
    pub priority: i16,
    /// How often it may be tried.
    pub tries_allowed: i64,
    /// Not before this moment.
    pub due: Option<Timestamp>,
    /// The hops that the request came through, as its header says.
    pub hops: Option<&'a str>,
}

/// The codes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCodes {
    /// [`Request::code`].
    pub code: Code,
    /// [`Request::code_without_hops`].
    pub without_hops: Code,
    /// Whether it came through any hops.
    pub has_hops: bool,
}

impl Request<'_> {
    /// The hash of a request's bytes.
    pub fn hash(bytes: &[u8]) -> [u8; 32] {
        sha256(bytes)
    }

    /// The code of all it says.
    pub fn code(&self) -> Code {
        let mut framing = Framing::new(None, "ichido audit request 2");
        self.add_to(&mut framing);
        framing.part_or_none(self.hops.map(str::as_bytes));
        framing.finish()
    }

    /// The code as it was before hops were part of it: seals of that time hold it.
    pub fn code_without_hops(&self) -> Code {
        let mut framing = Framing::new(None, "ichido audit request 1");
        self.add_to(&mut framing);
        framing.finish()
    }

    /// Both codes.
    pub fn codes(&self) -> RequestCodes {
        let (code, without_hops) = (self.code(), self.code_without_hops());
        RequestCodes { code, without_hops, has_hops: self.hops.is_some() }
    }

    fn add_to(&self, framing: &mut Framing) {
        framing.part(self.content_type.as_bytes());
        framing.part(&self.hash);
        framing.number(self.priority.into());
        framing.number(self.tries_allowed);
        framing.part_or_none(self.due.map(|due| due.as_micros().to_be_bytes()).as_ref().map(|b| &b[..]));
    }
}
