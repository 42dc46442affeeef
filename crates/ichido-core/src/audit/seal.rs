//! Seals: spans of entries under one code each, chained.
//!
//! Guarantee: a seal's code covers everything it says and the code of the seal before it, so the last one vouches for all. Made under a
//! key, none can be made or mended without it.

use std::fmt;

use uuid::Uuid;

use super::framing::Framing;
use super::{AuditKey, Code};
use crate::time::Timestamp;

/// One seal. What it says is covered by its code, [`Seal::mac`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// From 1, without gaps.
    pub number: u64,
    /// Where its span of positions begins, and where it ends, which is not in it.
    pub since: i64,
    /// The end of its span.
    pub until: i64,
    /// When it was made.
    pub sealed_at: Timestamp,
    /// The earliest moment among its entries.
    pub first_at: Timestamp,
    /// The latest.
    pub last_at: Timestamp,
    /// How many entries it has.
    pub count: u32,
    /// How many all seals up to this one have.
    pub total: u64,
    /// The root over its leaves.
    pub root: Code,
    /// The code of the seal before it.
    pub previous: Code,
    /// Whether it was made under a key.
    pub keyed: bool,
    /// Its code.
    pub mac: Code,
}

impl Seal {
    /// The same with the code that it must have.
    #[must_use]
    pub fn signed(self, key: Option<&AuditKey>) -> Self {
        let seal = Self { keyed: key.is_some(), ..self };
        Self { mac: seal.expected(key), ..seal }
    }

    /// Whether its code is the one that it must have under this key, and under none where none is given.
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

    /// What stands for this seal elsewhere.
    pub const fn head(&self) -> Head {
        Head { number: self.number, total: self.total, mac: self.mac }
    }

    /// The code of a seal whose entries have all been forgotten: its leaves go, its root and count stay.
    pub fn pruned(&self, key: Option<&AuditKey>) -> Code {
        let mut framing = Framing::new(key, "ichido audit pruned 1");
        framing.part(&self.number.to_be_bytes());
        framing.part(&self.mac.0);
        framing.finish()
    }
}

/// The last seal in one line, to be kept where nobody who can write the database can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The seal's number.
    pub number: u64,
    /// How many entries are sealed.
    pub total: u64,
    /// The seal's code.
    pub mac: Code,
}

const HEAD: &str = "ichido-audit-1";

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD}:{}:{}:{}", self.number, self.total, self.mac)
    }
}

impl Head {
    /// Reads back what [`fmt::Display`] wrote; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        // One more than there are, so a longer text is told from a head.
        let parts: Vec<&str> = text.trim().splitn(5, ':').collect();
        let [HEAD, number, total, mac] = parts[..] else { return None };
        Some(Self { number: number.parse().ok()?, total: total.parse().ok()?, mac: Code::parse(mac)? })
    }
}

/// That a message was forgotten with its history, by who had the right to: its sealed entries are missing with a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The message.
    pub message: Uuid,
    /// When.
    pub at: Timestamp,
    /// How many of its entries were sealed.
    pub entries: u32,
    /// The code of this.
    pub mac: Code,
}

impl Forgotten {
    /// One with the code that it must have.
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
