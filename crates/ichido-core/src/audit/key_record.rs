//! Settled key records: what is sealed of each, and the lists of them.
//!
//! Guarantee: two records have the same code only if every column is the same. A list is read exactly as it was written or not
//! at all. An entry of the trail has the root of each list ([`KeyList`]), so the seals prove the lists.
// SPEC C5, F5.

use std::fmt;

use super::Code;
use super::framing::Framing;
use super::leaf::take;
use super::verify::{AuditFinding, Kind, MAX_LISTED, Verifier};
use crate::key::KeyHash;
use crate::time::Timestamp;
use uuid::Uuid;

/// The kind of the entries that have the root of a list.
pub const KEYS_SEALED: &str = "keys_sealed";

/// A settled record as stored in the database, with the hashes of its response.
#[derive(Clone, Copy, Debug)]
pub struct AuditedRecord<'a> {
    /// Operation, identity, key, mode and state.
    pub texts: [&'a str; 5],
    /// Fingerprint, digest of the request, id of the claim, and hash of the response's header fields.
    pub bytes: [&'a [u8]; 4],
    /// The hash of the response's body, the digest of the result, and the id of the message.
    pub optional_bytes: [Option<&'a [u8]>; 3],
    /// The hops and the trace context.
    pub optional_texts: [Option<&'a str>; 2],
    /// The fence.
    pub fence: i64,
    /// The status of the response.
    pub status: i16,
    /// First claimed, last claimed, settled and expired.
    pub times: [Timestamp; 4],
}

impl AuditedRecord<'_> {
    /// Returns the code of its contents.
    pub fn code(&self) -> Code {
        let mut framing = Framing::new(None, "ichido audit key record 1");
        for text in self.texts {
            framing.part(text.as_bytes());
        }
        for bytes in self.bytes {
            framing.part(bytes);
        }
        for bytes in
            self.optional_bytes.into_iter().chain(self.optional_texts.map(|text| text.map(str::as_bytes)))
        {
            framing.part_or_none(bytes);
        }
        framing.number(self.fence);
        framing.number(self.status.into());
        for time in self.times {
            framing.number(time.as_micros());
        }
        framing.finish()
    }
}

/// What is stored of a sealed record: enough to name it if it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedKey {
    /// The hash that the record is stored under.
    pub name: [u8; 32],
    /// When it was settled.
    pub completed_at: Timestamp,
    /// When it expires. It must not change before.
    pub expires_at: Timestamp,
    /// The code of its contents.
    pub code: Code,
    /// The operation.
    pub operation: String,
    /// The caller's identity.
    pub identity: String,
}

/// Writes a list of records for one column.
pub fn write(keys: &[SealedKey]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for key in keys {
        bytes.extend_from_slice(&key.name);
        bytes.extend_from_slice(&key.completed_at.as_micros().to_be_bytes());
        bytes.extend_from_slice(&key.expires_at.as_micros().to_be_bytes());
        bytes.extend_from_slice(&key.code.0);
        for text in [&key.operation, &key.identity] {
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    bytes
}

/// Reads what [`write()`] wrote; `None` for anything else.
pub fn read(mut bytes: &[u8]) -> Option<Vec<SealedKey>> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        keys.push(SealedKey {
            name: take(&mut bytes)?,
            completed_at: Timestamp::from_micros(i64::from_be_bytes(take(&mut bytes)?)),
            expires_at: Timestamp::from_micros(i64::from_be_bytes(take(&mut bytes)?)),
            code: Code(take(&mut bytes)?),
            operation: take_text(&mut bytes)?,
            identity: take_text(&mut bytes)?,
        });
    }
    Some(keys)
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(u64::from_be_bytes(take(bytes)?)).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

/// What an entry of the trail says about a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyList {
    /// When the last of its records expires: it may be deleted then.
    pub until: Timestamp,
    /// The hash of the list.
    pub root: Code,
}

impl KeyList {
    /// Describes a list as it is stored.
    pub fn new(until: Timestamp, list: &[u8]) -> Self {
        let mut framing = Framing::new(None, "ichido audit key list 1");
        framing.part(list);
        Self { until, root: framing.finish() }
    }

    /// Parses what [`fmt::Display`] wrote; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (until, root) = text.split_once(' ')?;
        Some(Self { until: Timestamp::from_micros(until.parse().ok()?), root: Code::parse(root)? })
    }
}

impl fmt::Display for KeyList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.until.as_micros(), self.root)
    }
}

/// A key record that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFinding {
    /// [`Kind::Changed`] or [`Kind::Removed`].
    pub kind: Kind,
    /// The operation.
    pub operation: String,
    /// The caller's identity.
    pub identity: String,
    /// The hash of the key.
    pub key: KeyHash,
    /// When it was settled.
    pub at: Timestamp,
    /// A sentence for people.
    pub why: &'static str,
}

impl Verifier<'_> {
    /// Checks a stored list with its entry, after [`Verifier::histories`]. Returns its records that have not expired.
    pub fn key_list(&mut self, id: Uuid, until: Timestamp, list: &[u8], now: Timestamp) -> Vec<SealedKey> {
        let stated = self.key_lists.remove(&id);
        if until <= now && stated.is_none() {
            return Vec::new();
        }
        let keys = read(list).filter(|_| stated == Some(KeyList::new(until, list)));
        let Some(mut keys) = keys else {
            self.report_key_list(
                id,
                Kind::Changed,
                "this list of sealed key records is not the one that was sealed",
            );
            return Vec::new();
        };
        keys.retain(|key| now < key.expires_at);
        keys
    }

    /// Reports lists that were sealed and are missing, after every stored one was checked.
    pub fn key_lists_end(&mut self) {
        for id in std::mem::take(&mut self.key_lists).into_keys() {
            self.report_key_list(id, Kind::Removed, "a list of sealed key records is missing");
        }
    }

    /// Compares a record with what was sealed. `found` is the code of the stored record.
    pub fn key_record(&mut self, sealed: &SealedKey, found: Option<Code>) {
        self.report.key_records += 1;
        let (kind, why) = match found {
            Some(code) if code == sealed.code => return,
            Some(_) => (Kind::Changed, "the key record differs from what was sealed"),
            None => (Kind::Removed, "the key record is missing, and it has not expired"),
        };
        self.report.found += 1;
        if self.report.keys.len() < MAX_LISTED {
            self.report.keys.push(KeyFinding {
                kind,
                operation: sealed.operation.clone(),
                identity: sealed.identity.clone(),
                key: KeyHash::of_name(&sealed.name),
                at: sealed.completed_at,
                why,
            });
        }
    }

    fn report_key_list(&mut self, id: Uuid, kind: Kind, why: &'static str) {
        self.add(AuditFinding { kind, seal: None, message: Some(id), entry: None, at: None, why });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_read_as_written_or_not_at_all() {
        let key = |operation: &str| SealedKey {
            name: [7; 32],
            completed_at: Timestamp::from_micros(1),
            expires_at: Timestamp::from_micros(2),
            code: Code([9; 32]),
            operation: operation.to_owned(),
            identity: "ann".to_owned(),
        };
        let keys = vec![key("orders.create"), key("")];
        let list = write(&keys);
        assert_eq!(read(&list), Some(keys));
        assert_eq!(read(&list[..list.len() - 1]), None);
        let stated = KeyList::new(Timestamp::from_micros(2), &list);
        assert_eq!(KeyList::parse(&stated.to_string()), Some(stated));
        assert_ne!(stated.root, KeyList::new(stated.until, &list[1..]).root);
    }
}
