//! Seals: spans of entries with one code each, chained.
//!
//! Guarantee: a seal's code covers its contents and the code of the previous seal, so the last one proves all. Without
//! the key, a seal made under it can be neither made nor altered.

use std::fmt;

use uuid::Uuid;

use super::framing::Framing;
use super::{AuditKey, Code};
use crate::time::Timestamp;

/// One seal. Its code, [`Seal::mac`], covers its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Its number: from 1, without gaps.
    pub number: u64,
    /// The first position of its span.
    pub since: i64,
    /// The end of its span, exclusive.
    pub until: i64,
    /// When it was made.
    pub sealed_at: Timestamp,
    /// The earliest time among its entries.
    pub first_at: Timestamp,
    /// The latest time among its entries.
    pub last_at: Timestamp,
    /// The number of its entries.
    pub count: u32,
    /// The number of entries in all seals up to this one.
    pub total: u64,
    /// The root of its leaves.
    pub root: Code,
    /// The code of the previous seal.
    pub previous: Code,
    /// Whether it was made under a key.
    pub keyed: bool,
    /// Its code.
    pub mac: Code,
}

impl Seal {
    /// Returns it with the correct code.
    #[must_use]
    pub fn signed(self, key: Option<&AuditKey>) -> Self {
        let seal = Self { keyed: key.is_some(), ..self };
        Self { mac: seal.expected(key), ..seal }
    }

    /// Returns whether its code is correct under this key, or without one if none is given.
    pub fn is_under(&self, key: Option<&AuditKey>) -> bool {
        self.keyed == key.is_some() && self.mac == self.expected(key)
    }

    pub(super) fn expected(&self, key: Option<&AuditKey>) -> Code {
        let mut framing = Framing::new(key, "ichido audit seal 1");
        framing.part(&self.number.to_be_bytes());
        framing.number(self.since);
        framing.number(self.until);
        for moment in [self.sealed_at, self.first_at, self.last_at] {
            framing.number(moment.as_micros());
        }
        framing.part(&self.count.to_be_bytes());
        framing.part(&self.total.to_be_bytes());
        framing.part(&self.root.0);
        framing.part(&self.previous.0);
        framing.part(&[u8::from(self.keyed)]);
        framing.finish()
    }

    /// Returns its head.
    pub const fn head(&self) -> SealHead {
        SealHead { number: self.number, total: self.total, mac: self.mac }
    }

    /// Returns the code of a seal whose entries have all been deleted.
    ///
    /// Its leaves are removed, its root and count stay.
    pub fn pruned(&self, key: Option<&AuditKey>) -> Code {
        let mut framing = Framing::new(key, "ichido audit pruned 1");
        framing.part(&self.number.to_be_bytes());
        framing.part(&self.mac.0);
        framing.finish()
    }
}

/// The last seal in one line, to be stored outside of the database.
///
/// Nobody who can write to the database may be able to write there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealHead {
    /// The seal's number.
    pub number: u64,
    /// The number of sealed entries.
    pub total: u64,
    /// The seal's code.
    pub mac: Code,
}

const HEAD: &str = "ichido-audit-1";

impl fmt::Display for SealHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD}:{}:{}:{}", self.number, self.total, self.mac)
    }
}

impl SealHead {
    /// Parses what [`fmt::Display`] wrote; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        // One more than there are, so a longer text is recognized.
        let parts: Vec<&str> = text.trim().splitn(5, ':').collect();
        let [HEAD, number, total, mac] = parts[..] else { return None };
        Some(Self { number: number.parse().ok()?, total: total.parse().ok()?, mac: Code::parse(mac)? })
    }
}

/// Proof that a message was deleted with its history legitimately.
///
/// Its sealed entries are missing for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The message.
    pub message: Uuid,
    /// When.
    pub at: Timestamp,
    /// How many of its entries were sealed.
    pub entries: u32,
    /// Its code.
    pub mac: Code,
}

impl Forgotten {
    /// Creates one with the correct code.
    pub fn signed(message: Uuid, at: Timestamp, entries: u32, key: Option<&AuditKey>) -> Self {
        let forgotten = Self { message, at, entries, mac: Code::NONE };
        Self { mac: forgotten.expected(key), ..forgotten }
    }

    pub(super) fn expected(&self, key: Option<&AuditKey>) -> Code {
        let mut framing = Framing::new(key, "ichido audit forgotten 1");
        framing.part(self.message.as_bytes());
        framing.number(self.at.as_micros());
        framing.part(&self.entries.to_be_bytes());
        framing.finish()
    }
}
