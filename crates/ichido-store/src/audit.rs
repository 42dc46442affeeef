//! The audit trail's seals (SPEC F5): what comes of sealing, and what a row of the trail means.
//!
//! Guarantee: an entry is sealed only when no entry can appear before it any more, in exactly one seal, and a seal is whole or not there.
//! What a write of an entry costs does not depend on whether or when seals are made.
//!
//! [`Store::audit_seal`] seals a bounded part, [`Store::audit_head`] is what to keep elsewhere, [`Store::audit_verify`] judges all
//! of it. Retention goes on beside it: [`Store::message_forget_keyed`] leaves a reason for what is missing, and
//! [`Store::audit_prune`] gives back the room of seals whose entries are all forgotten.
//!
//! ```
//! use ichido_core::audit::AuditKey;
//! use ichido_store::Store;
//! use ichido_store::audit::{AuditSealed, SEAL_ENTRIES_MAX};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! let key = AuditKey::parse(b"from a file that the database's owner cannot read")?;
//! while let AuditSealed::Sealed { .. } = store.audit_seal(Some(&key), SEAL_ENTRIES_MAX).await? {}
//! let report = store.audit_verify(Some(&key), None).await?;
//! assert!(report.is_whole());
//! # Ok(())
//! # }
//! ```
//!
//! [`Store::audit_seal`]: crate::Store::audit_seal
//! [`Store::audit_head`]: crate::Store::audit_head
//! [`Store::audit_verify`]: crate::Store::audit_verify
//! [`Store::audit_prune`]: crate::Store::audit_prune
//! [`Store::message_forget_keyed`]: crate::Store::message_forget_keyed

use std::collections::{BTreeMap, HashMap, HashSet};

use ichido_core::audit::entry::{Entry, EntryId, Subject};
use ichido_core::audit::leaf::{self, Leaf, Previous};
use ichido_core::audit::request::Request;
use ichido_core::audit::seal::{Forgotten, Head, Seal};
use ichido_core::audit::verify::Stored;
use ichido_core::audit::{AuditKey, Code};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::columns::Columns;
use crate::error::StoreError;

/// The most entries of one seal: some 440 kB of leaves. On PostgreSQL the entries of one transaction stay together, and may be more.
pub const SEAL_ENTRIES_MAX: u32 = 4096;

/// How many seals are read at once.
pub(crate) const SEALS_PAGE: i64 = 8;

/// How many entries are read at once.
pub(crate) const ENTRIES_PAGE: i64 = 1000;

/// Before every entry.
pub(crate) const FIRST_ENTRY: EntryId = EntryId { message: Uuid::nil(), fence: i64::MIN, step: i16::MIN };

/// What came of sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditSealed {
    /// So many entries more are sealed; there may be more to seal.
    Sealed {
        /// The last seal.
        head: Head,
        /// How many entries it has.
        entries: u32,
    },
    /// Everything that can be sealed is.
    Nothing,
    /// The last seal was made under a key that is not this one, or it was changed since, which verifying tells. Going on would make
    /// the chain prove less, or nothing.
    KeyNeeded,
}

/// What came of pruning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditPruned {
    /// How many seals gave back the room of their lists.
    pub seals: u64,
    /// The last seal that was looked at: where to go on. `None` when all were.
    pub after: Option<u64>,
}

/// An entry of the trail.
pub(crate) fn entry(row: &impl Columns) -> Result<Entry, StoreError> {
    Ok(Entry {
        id: entry_id(row)?,
        at: row.moment("at")?,
        claimed_at: row.moment_or_none("claimed_at")?,
        from: row.text("from_state")?.to_owned(),
        to: row.text("to_state")?.to_owned(),
        kind: row.text("kind")?.to_owned(),
        tries: row.count("tries")?.into(),
        deaths: row.count("deaths")?.into(),
        doubt_since: row.moment_or_none("doubt_since")?,
        travels_until: row.moment_or_none("travels_until")?,
        effect: row.text("effect")?.to_owned(),
        code: row.text_or_none("code")?,
        status: row.small_or_none("status")?,
        result_digest: row.bytes_or_none("result_digest")?.map(<[u8]>::to_vec),
        receipt: row.text_or_none("receipt")?,
        excerpt: row.text_or_none("excerpt")?,
        node: row.uuid_or_none("node")?,
        actor: row.text_or_none("actor")?,
        about: row.text_or_none("about")?,
        subject: row.uuid_or_none("m_id")?.map(|_| subject(row)).transpose()?,
    })
}

fn subject(row: &impl Columns) -> Result<Subject, StoreError> {
    Ok(Subject {
        queue: row.text("m_queue")?.to_owned(),
        identity: row.text("m_identity")?.to_owned(),
        key: row.text("m_key")?.to_owned(),
        digest: row.bytes("m_digest")?.to_vec(),
        trace: row.text_or_none("m_trace")?,
        made_from: row.uuid_or_none("m_made_from")?,
        created_at: row.moment("m_created_at")?,
    })
}

pub(crate) fn entry_id(row: &impl Columns) -> Result<EntryId, StoreError> {
    Ok(EntryId { message: row.uuid("message_id")?, fence: row.number("fence")?, step: row.small("step")? })
}

/// Entries by their ids.
pub(crate) fn entries<C: Columns>(rows: &[C]) -> Result<HashMap<EntryId, Entry>, StoreError> {
    rows.iter().map(|row| entry(row).map(|entry| (entry.id, entry))).collect()
}

pub(crate) fn seal(row: &impl Columns) -> Result<Seal, StoreError> {
    let code = |column| row.hash(column).map(Code::from_bytes);
    let natural = |number: i64| u64::try_from(number).map_err(|_| corrupt("a number is negative"));
    Ok(Seal {
        number: natural(row.number("number")?)?,
        since: row.number("since_position")?,
        until: row.number("until_position")?,
        sealed_at: row.moment("sealed_at")?,
        first_at: row.moment("first_at")?,
        last_at: row.moment("last_at")?,
        count: row.positive("count")?,
        total: natural(row.number("total")?)?,
        root: code("root")?,
        previous: code("previous")?,
        keyed: row.truth("keyed")?,
        mac: code("mac")?,
    })
}

/// A seal with its leaves.
pub(crate) fn stored(row: &impl Columns) -> Result<Stored<'_>, StoreError> {
    let pruned = row.bytes_or_none("pruned")?.map(|_| row.hash("pruned").map(Code::from_bytes));
    Ok(Stored { seal: seal(row)?, leaves: row.bytes_or_none("leaves")?, pruned: pruned.transpose()? })
}

/// Notes of forgotten messages by their ids.
pub(crate) fn forgotten<C: Columns>(rows: &[C]) -> Result<HashMap<Uuid, Forgotten>, StoreError> {
    let read = |row: &C| {
        let message = row.uuid("message_id")?;
        let (at, entries) = (row.moment("at")?, row.positive("entries")?);
        Ok((message, Forgotten { message, at, entries, mac: Code::from_bytes(row.hash("mac")?) }))
    };
    rows.iter().map(read).collect()
}

/// The first entry of each message: what came before it is elsewhere.
pub(crate) fn firsts(entries: &[Entry]) -> Vec<EntryId> {
    let mut firsts: Vec<EntryId> = entries.iter().map(|entry| entry.id).collect();
    firsts.dedup_by_key(|id| id.message);
    firsts
}

/// The code of what a message asked for, by its id. The hash of the bytes is computed where they are.
pub(crate) fn request(row: &impl Columns, hash: [u8; 32]) -> Result<(Uuid, Code), StoreError> {
    let request = Request {
        content_type: row.text("content_type")?,
        hash,
        priority: row.small("priority")?,
        tries_allowed: row.count("tries_allowed")?.into(),
        due: row.moment_or_none("due")?,
    };
    Ok((row.uuid("message_id")?, request.code()))
}

/// The messages whose first entry is among these: nothing of them is before.
pub(crate) fn begun(entries: &[Entry], before: &[Entry]) -> Vec<Uuid> {
    let before: HashSet<Uuid> = before.iter().map(|entry| entry.id.message).collect();
    let mut messages: Vec<Uuid> = entries.iter().map(|entry| entry.id.message).collect();
    messages.dedup();
    messages.retain(|message| !before.contains(message));
    messages
}

/// The messages of which a list has the first entry.
pub(crate) fn begun_in(leaves: &[Leaf]) -> Vec<Uuid> {
    let is_first = |leaf: &&Leaf| matches!(leaf.previous, Previous::Request(_));
    leaves.iter().filter(is_first).map(|leaf| leaf.id.message).collect()
}

/// What the first entries of a seal follow: the entries before them, and where none is, what was asked for.
pub(crate) fn previous(before: &[Entry], requests: HashMap<Uuid, Code>) -> HashMap<Uuid, Previous> {
    let entries = before.iter().map(|entry| (entry.id.message, Previous::Entry(entry.content())));
    requests.into_iter().map(|(message, code)| (message, Previous::Request(code))).chain(entries).collect()
}

/// The seal that follows, over entries of which each message's are in order. `previous` has what the first ones follow.
pub(crate) fn next_seal(
    last: Option<&Seal>,
    entries: &[Entry],
    mut previous: HashMap<Uuid, Previous>,
    (until, now): (i64, Timestamp),
    key: Option<&AuditKey>,
) -> Option<(Seal, Vec<Leaf>)> {
    let number = last.map_or(1, |last| last.number + 1);
    let mut leaves: Vec<Leaf> = Vec::with_capacity(entries.len());
    for (index, entry) in (0_u32..).zip(entries) {
        let follows = previous.get(&entry.id.message).copied().unwrap_or(Previous::Nothing);
        let leaf = Leaf::of(entry, follows, key, number, index);
        previous.insert(leaf.id.message, Previous::Entry(leaf.content));
        leaves.push(leaf);
    }
    let moments = || leaves.iter().map(|leaf| leaf.at);
    let count = u32::try_from(leaves.len()).ok()?;
    let seal = Seal {
        number,
        since: last.map_or(i64::MIN, |last| last.until),
        until,
        sealed_at: now,
        first_at: moments().min()?,
        last_at: moments().max()?,
        count,
        total: last.map_or(0, |last| last.total) + u64::from(count),
        root: leaf::root(&leaves),
        previous: last.map_or(Code::NONE, |last| last.mac),
        keyed: false,
        mac: Code::NONE,
    };
    Some((seal.signed(key), leaves))
}

/// Whether all entries of a list are forgotten by who had the right to; how many of each message, if so.
pub(crate) fn all_forgotten(
    leaves: &[u8],
    forgotten: &HashMap<Uuid, Forgotten>,
    key: Option<&AuditKey>,
) -> Option<BTreeMap<Uuid, u32>> {
    let mut counts = BTreeMap::new();
    for leaf in leaf::read(leaves)? {
        let note = forgotten.get(&leaf.id.message)?;
        if *note != Forgotten::signed(note.message, note.at, note.entries, key) {
            return None;
        }
        *counts.entry(leaf.id.message).or_default() += 1;
    }
    Some(counts)
}

/// The messages that a list names.
pub(crate) fn messages_of(leaves: &[Leaf]) -> Vec<Uuid> {
    let mut messages: Vec<Uuid> = leaves.iter().map(|leaf| leaf.id.message).collect();
    messages.sort_unstable();
    messages.dedup();
    messages
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt { table: "seals", detail: detail.to_owned() }
}
