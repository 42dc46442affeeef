//! Leaves: what a seal stores of each entry, and their tree.
//!
//! Guarantee: a list of leaves is read exactly as it was written or not at all, and two different lists have different
//! roots. A leaf carries a tag that binds it to its seal and position, so a list shows where it was tampered with.

use uuid::Uuid;

use super::entry::{AuditEntry, EntryId};
use super::framing::Framing;
use super::{AuditKey, Code};
use crate::time::Timestamp;

/// A tag says where a list was changed; the root says that it was.
///
/// So the tag can be short.
pub type Tag = [u8; 8];

/// What is stored of a sealed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The entry's id.
    pub id: EntryId,
    /// When it happened, to name it if it is gone.
    pub at: Timestamp,
    /// The code of its contents.
    pub content: Code,
    /// What it follows.
    pub previous: Previous,
    /// Whether it followed by the rules when it was sealed ([`super::course`]).
    ///
    /// If not, it is sealed as such.
    pub follows: bool,
    /// Binds it to its position.
    pub tag: Tag,
}

/// What an entry follows, as of its sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// Nothing: it is the first entry about a subject that is not a message.
    Nothing,
    /// The previous entry of the same message.
    Entry(Code),
    /// The request: it is the message's first entry.
    Request(Code),
    /// The request, sealed before hops were part of it.
    RequestWithoutHops(Code),
}

impl Previous {
    const fn parts(&self) -> (u8, Option<&Code>) {
        match self {
            Self::Nothing => (0, None),
            Self::Entry(code) => (1, Some(code)),
            Self::RequestWithoutHops(code) => (2, Some(code)),
            Self::Request(code) => (3, Some(code)),
        }
    }
}

/// Set in the byte of the predecessor's kind if the entry does not follow it by the rules.
const DOES_NOT_FOLLOW: u8 = 0x80;

impl Leaf {
    /// The bytes of a leaf without, and with, the code of its predecessor.
    const BYTES: usize = 16 + 8 + 2 + 8 + 32 + 8 + 1;
    const BYTES_CHAINED: usize = Self::BYTES + 32;

    /// Creates the leaf of an entry at a position of a seal.
    pub fn new(
        entry: &AuditEntry,
        (previous, follows): (Previous, bool),
        key: Option<&AuditKey>,
        seal: u64,
        index: u32,
    ) -> Self {
        let (id, at, content, tag) = (entry.id, entry.at, entry.content(), Tag::default());
        let leaf = Self { id, at, content, previous, follows, tag };
        Self { tag: leaf.tag_at(key, seal, index), ..leaf }
    }

    /// Returns the tag for a position.
    pub(super) fn tag_at(&self, key: Option<&AuditKey>, seal: u64, index: u32) -> Tag {
        let mut framing = Framing::new(key, "ichido audit leaf 1");
        framing.part(&seal.to_be_bytes());
        framing.part(&index.to_be_bytes());
        self.add_to(&mut framing);
        let mut tag = Tag::default();
        tag.copy_from_slice(&framing.finish().0[..size_of::<Tag>()]);
        tag
    }

    /// Returns what it follows, and whether it does by the rules.
    const fn parts(&self) -> (u8, Option<&Code>) {
        let (kind, code) = self.previous.parts();
        (if self.follows { kind } else { kind | DOES_NOT_FOLLOW }, code)
    }

    fn add_to(&self, framing: &mut Framing) {
        framing.part(self.id.message.as_bytes());
        framing.number(self.id.fence);
        framing.number(self.id.step.into());
        framing.number(self.at.as_micros());
        framing.part(&self.content.0);
        let (kind, code) = self.parts();
        framing.part(&[kind]);
        if let Some(code) = code {
            framing.part(&code.0);
        }
    }

    fn hash(&self) -> Code {
        let mut framing = Framing::new(None, "ichido audit tree leaf 1");
        self.add_to(&mut framing);
        framing.part(&self.tag);
        framing.finish()
    }
}

/// Writes the leaves for one column.
pub fn write(leaves: &[Leaf]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(leaves.len() * Leaf::BYTES_CHAINED);
    for leaf in leaves {
        bytes.extend_from_slice(leaf.id.message.as_bytes());
        bytes.extend_from_slice(&leaf.id.fence.to_be_bytes());
        bytes.extend_from_slice(&leaf.id.step.to_be_bytes());
        bytes.extend_from_slice(&leaf.at.as_micros().to_be_bytes());
        bytes.extend_from_slice(&leaf.content.0);
        bytes.extend_from_slice(&leaf.tag);
        let (kind, code) = leaf.parts();
        bytes.push(kind);
        bytes.extend(code.iter().flat_map(|code| code.0));
    }
    bytes
}

/// Reads what [`write()`] wrote; `None` for anything else.
pub fn read(mut bytes: &[u8]) -> Option<Vec<Leaf>> {
    let mut leaves = Vec::with_capacity(bytes.len() / Leaf::BYTES);
    while !bytes.is_empty() {
        let id = EntryId {
            message: Uuid::from_bytes(take(&mut bytes)?),
            fence: i64::from_be_bytes(take(&mut bytes)?),
            step: i16::from_be_bytes(take(&mut bytes)?),
        };
        let at = Timestamp::from_micros(i64::from_be_bytes(take(&mut bytes)?));
        let content = Code(take(&mut bytes)?);
        let tag = take(&mut bytes)?;
        let [kind] = take::<1>(&mut bytes)?;
        let previous = match kind & !DOES_NOT_FOLLOW {
            0 => Previous::Nothing,
            1 => Previous::Entry(Code(take(&mut bytes)?)),
            2 => Previous::RequestWithoutHops(Code(take(&mut bytes)?)),
            3 => Previous::Request(Code(take(&mut bytes)?)),
            _ => return None,
        };
        leaves.push(Leaf { id, at, content, previous, follows: kind & DOES_NOT_FOLLOW == 0, tag });
    }
    Some(leaves)
}

pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

/// Returns the root of the leaves.
///
/// Pairs are joined level by level; an odd one moves up unchanged. The seal stores the number of leaves, so no two
/// trees have the same root.
pub fn root(leaves: &[Leaf]) -> Code {
    let mut level: Vec<Code> = leaves.iter().map(Leaf::hash).collect();
    while 1 < level.len() {
        level = level.chunks(2).map(join).collect();
    }
    level.first().copied().unwrap_or(Code::NONE)
}

fn join(pair: &[Code]) -> Code {
    match pair {
        [left, right] => {
            let mut framing = Framing::new(None, "ichido audit tree node 1");
            framing.part(&left.0);
            framing.part(&right.0);
            framing.finish()
        }
        [alone] => *alone,
        _ => Code::NONE,
    }
}
