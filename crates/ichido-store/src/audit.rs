//! Seals of the audit trail: the outcome of sealing, and how rows of the trail are read.
//!
//! Guarantee: an entry is sealed only when no earlier entry can appear any more, in exactly one seal, and a seal is complete or
//! absent. Whether and when seals are made does not change the cost of writing an entry.
//!
//! Every entry must follow, by the rules, from the previous entry and from its message. An entry that does not is sealed as
//! such and counted, not refused: otherwise anybody with write access to the database could stop the sealing of everything
//! else. Verification reports it from then on, even after its message is deleted.
//!
//! [`AuditTrail::seal`](crate::AuditTrail::seal) seals a bounded part, [`AuditTrail::head`](crate::AuditTrail::head) is what to
//! keep elsewhere, and [`AuditTrail::verify`](crate::AuditTrail::verify) checks everything. Retention continues meanwhile:
//! [`Messages::delete_sealed`](crate::Messages::delete_sealed) leaves a reason for what is missing, and
//! [`AuditTrail::prune`](crate::AuditTrail::prune) frees the space of seals whose entries are all deleted.
//!
//! [`AuditTrail::list`](crate::AuditTrail::list) lists what people did, with the seal of each entry.
//!
//! [`AuditTrail::seal_keys`](crate::AuditTrail::seal_keys) does the same for settled key records: it writes a list of them, and
//! an entry that proves the list. Requests do nothing for it.
//!
//! ```
//! use ichido_core::audit::AuditKey;
//! use ichido_store::Store;
//! use ichido_store::audit::{AuditSealed, MAX_SEAL_ENTRIES};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! let key = AuditKey::parse(b"from a file that the database's owner cannot read")?;
//! while let AuditSealed::Sealed { .. } = store.audit().seal(Some(&key), MAX_SEAL_ENTRIES).await? {}
//! let report = store.audit().verify(Some(&key), None).await?;
//! assert!(report.is_whole());
//! # Ok(())
//! # }
//! ```
// SPEC F5.

pub(crate) mod keys;
pub(crate) mod listing;
pub(crate) mod location;
pub(crate) mod trail;

pub use keys::{KeysSealed, MAX_SEAL_KEYS};
pub use listing::{AuditFilter, AuditPage, ListedEntry, SealState};

use std::collections::{BTreeMap, HashMap, HashSet};

use ichido_core::audit::course::Walk;
use ichido_core::audit::entry::{AuditEntry, EntryId, Subject};
use ichido_core::audit::leaf::{self, Leaf, Previous};
use ichido_core::audit::request::{AuditedRequest, RequestCodes};
use ichido_core::audit::seal::{Forgotten, Seal, SealHead};
use ichido_core::audit::verify::{Issued, StoredSeal};
use ichido_core::audit::{AuditKey, Code};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::columns::Columns;
use crate::error::StoreError;

/// The maximum number of entries in one seal: about 440 kB of leaves. On PostgreSQL the entries of one transaction stay
/// together, so a seal may have more.
pub const MAX_SEAL_ENTRIES: u32 = 4096;

/// The number of seals read at once.
pub(crate) const SEALS_PAGE: i64 = 8;

/// The number of entries read at once.
pub(crate) const ENTRIES_PAGE: i64 = 1000;

/// The number of entries read before the first entry of a seal. This is enough to check it even if one or two before it are
/// misplaced or are late proofs.
pub(crate) const MAX_BEFORE: u8 = 4;

/// Sorts before every entry.
pub(crate) const FIRST_ENTRY: EntryId = EntryId { message: Uuid::nil(), fence: i64::MIN, step: i16::MIN };

/// The outcome of sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditSealed {
    /// More entries are sealed; others may remain.
    Sealed {
        /// The last seal.
        head: SealHead,
        /// The number of entries in it.
        entries: u32,
        /// The number of these entries that do not follow by the rules. They are sealed as such.
        misfits: u32,
    },
    /// Nothing is left to seal.
    Nothing,
    /// The last seal was made with another key, or was changed since; verification tells which. Continuing would make the chain
    /// prove less, or nothing.
    KeyNeeded,
}

/// The outcome of pruning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditPruned {
    /// The number of seals whose lists were deleted.
    pub seals: u64,
    /// The last seal that was examined, to continue after. `None` if all were examined.
    pub after: Option<u64>,
}

/// Reads an entry of the trail.
pub(crate) fn entry(row: &impl Columns) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        id: entry_id(row)?,
        at: row.timestamp("at")?,
        claimed_at: row.timestamp_or_none("claimed_at")?,
        from: row.text("from_state")?.to_owned(),
        to: row.text("to_state")?.to_owned(),
        kind: row.text("kind")?.to_owned(),
        attempts: row.count("attempts")?.into(),
        deaths: row.count("deaths")?.into(),
        doubt_since: row.timestamp_or_none("doubt_since")?,
        in_flight_until: row.timestamp_or_none("in_flight_until")?,
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
        trace_id: row.text_or_none("m_trace_id")?,
        replacement_of: row.uuid_or_none("m_made_from")?,
        created_at: row.timestamp("m_created_at")?,
        max_attempts: row.positive("m_max_attempts")?,
    })
}

pub(crate) fn entry_id(row: &impl Columns) -> Result<EntryId, StoreError> {
    Ok(EntryId { message: row.uuid("message_id")?, fence: row.number("fence")?, step: row.small("step")? })
}

/// Reads entries, by id.
pub(crate) fn entries<C: Columns>(rows: &[C]) -> Result<HashMap<EntryId, AuditEntry>, StoreError> {
    rows.iter().map(|row| entry(row).map(|entry| (entry.id, entry))).collect()
}

pub(crate) fn seal(row: &impl Columns) -> Result<Seal, StoreError> {
    let code = |column| row.hash(column).map(Code::from_bytes);
    let natural = |number: i64| u64::try_from(number).map_err(|_| corrupt("a number is negative"));
    Ok(Seal {
        number: natural(row.number("number")?)?,
        since: row.number("since_position")?,
        until: row.number("until_position")?,
        sealed_at: row.timestamp("sealed_at")?,
        first_at: row.timestamp("first_at")?,
        last_at: row.timestamp("last_at")?,
        count: row.positive("count")?,
        total: natural(row.number("total")?)?,
        root: code("root")?,
        previous: code("previous")?,
        keyed: row.truth("keyed")?,
        mac: code("mac")?,
    })
}

/// Reads a seal with its leaves.
pub(crate) fn stored(row: &impl Columns) -> Result<StoredSeal<'_>, StoreError> {
    let pruned = row.bytes_or_none("pruned")?.map(|_| row.hash("pruned").map(Code::from_bytes));
    Ok(StoredSeal { seal: seal(row)?, leaves: row.bytes_or_none("leaves")?, pruned: pruned.transpose()? })
}

/// Reads the notes about deleted messages, by message id.
pub(crate) fn forgotten<C: Columns>(rows: &[C]) -> Result<HashMap<Uuid, Forgotten>, StoreError> {
    let read = |row: &C| {
        let message = row.uuid("message_id")?;
        let (at, entries) = (row.timestamp("at")?, row.positive("entries")?);
        Ok((message, Forgotten { message, at, entries, mac: Code::from_bytes(row.hash("mac")?) }))
    };
    rows.iter().map(read).collect()
}

/// Returns the first entry of each message. Its predecessors are stored elsewhere.
pub(crate) fn first_entries(entries: &[AuditEntry]) -> Vec<EntryId> {
    let mut first_entries: Vec<EntryId> = entries.iter().map(|entry| entry.id).collect();
    first_entries.dedup_by_key(|id| id.message);
    first_entries
}

/// Reads the codes of a message's request, with the message's id. The caller hashes the bytes where they are.
pub(crate) fn request(row: &impl Columns, hash: [u8; 32]) -> Result<(Uuid, RequestCodes), StoreError> {
    let hops = row.text_or_none("hops")?;
    let request = AuditedRequest {
        content_type: row.text("content_type")?,
        hash,
        priority: row.small("priority")?,
        max_attempts: row.count("max_attempts")?.into(),
        due: row.timestamp_or_none("due")?,
        hops: hops.as_deref(),
    };
    Ok((row.uuid("message_id")?, request.codes()))
}

/// Returns the messages whose first entry is among these, with none before.
pub(crate) fn first_seen(entries: &[AuditEntry], before: &[AuditEntry]) -> Vec<Uuid> {
    let before: HashSet<Uuid> = before.iter().map(|entry| entry.id.message).collect();
    let mut messages: Vec<Uuid> = entries.iter().map(|entry| entry.id.message).collect();
    messages.dedup();
    messages.retain(|message| !before.contains(message));
    messages
}

/// Returns the messages whose first entry is in a list.
pub(crate) fn first_seen_in(leaves: &[Leaf]) -> Vec<Uuid> {
    let is_first =
        |leaf: &&Leaf| matches!(leaf.previous, Previous::Request(_) | Previous::RequestWithoutHops(_));
    leaves.iter().filter(is_first).map(|leaf| leaf.id.message).collect()
}

/// Returns what the first entries of a seal follow. This is the last entry before them or, if there is none, the request.
pub(crate) fn previous(
    before: &[AuditEntry],
    requests: HashMap<Uuid, RequestCodes>,
) -> HashMap<Uuid, Previous> {
    let last = before.chunk_by(is_same_message).filter_map(<[AuditEntry]>::last);
    let entries = last.map(|entry| (entry.id.message, Previous::Entry(entry.content())));
    let requests = requests.into_iter().map(|(message, codes)| (message, Previous::Request(codes.code)));
    requests.chain(entries).collect()
}

/// Reads entries, ordered by message, fence and step.
pub(crate) fn read_ordered<C: Columns>(rows: &[C]) -> Result<Vec<AuditEntry>, StoreError> {
    let mut entries: Vec<AuditEntry> = rows.iter().map(entry).collect::<Result<_, _>>()?;
    entries.sort_unstable_by_key(|entry| entry.id);
    Ok(entries)
}

fn is_same_message(one: &AuditEntry, other: &AuditEntry) -> bool {
    one.id.message == other.id.message
}

/// Returns the entries of a seal that do not follow by the rules. `before` has the last entries before them, and `issued` is
/// the last fence that was issued.
pub(crate) fn find_misfits(entries: &[AuditEntry], before: &[AuditEntry], issued: i64) -> HashSet<EntryId> {
    let mut walks: HashMap<Uuid, Walk> = HashMap::new();
    for history in before.chunk_by(is_same_message) {
        // Fewer than requested means that these are all there are.
        let is_whole = history.len() < usize::from(MAX_BEFORE);
        let mut walk = if is_whole { Walk::from_the_first() } else { Walk::from_the_middle() };
        for entry in history {
            // Sealing has already judged whether it follows.
            _ = walk.step(entry, issued);
        }
        walks.extend(history.first().map(|entry| (entry.id.message, walk)));
    }
    let does_not_follow = |entry: &&AuditEntry| {
        let walk = walks.entry(entry.id.message).or_insert_with(Walk::from_the_first);
        walk.step(entry, issued).is_err()
    };
    entries.iter().filter(does_not_follow).map(|entry| entry.id).collect()
}

/// Collects what was issued, from the rows of leases.
pub(crate) fn issued<C: Columns>(fence: i64, leases: &[C], now: Timestamp) -> Result<Issued, StoreError> {
    let lease = |row: &C| Ok((row.uuid("message_id")?, row.number("fence")?));
    Ok(Issued { fence, leases: leases.iter().map(lease).collect::<Result<_, StoreError>>()?, now })
}

/// Builds the next seal. The entries of each message must be in order; `previous` has what the first ones follow.
pub(crate) fn next_seal(
    last: Option<&Seal>,
    entries: &[AuditEntry],
    mut previous: HashMap<Uuid, Previous>,
    misfits: &HashSet<EntryId>,
    (until, now): (i64, Timestamp),
    key: Option<&AuditKey>,
) -> Option<(Seal, Vec<Leaf>)> {
    let number = last.map_or(1, |last| last.number + 1);
    let mut leaves: Vec<Leaf> = Vec::with_capacity(entries.len());
    for (index, entry) in (0_u32..).zip(entries) {
        let follows = previous.get(&entry.id.message).copied().unwrap_or(Previous::Nothing);
        let leaf = Leaf::new(entry, (follows, !misfits.contains(&entry.id)), key, number, index);
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

/// Counts a list's entries per message. Returns `None` unless all were deleted by somebody with the right to.
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

/// Returns the messages in a list.
pub(crate) fn messages_of(leaves: &[Leaf]) -> Vec<Uuid> {
    let mut messages: Vec<Uuid> = leaves.iter().map(|leaf| leaf.id.message).collect();
    messages.sort_unstable();
    messages.dedup();
    messages
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt { table: "seals", detail: detail.to_owned() }
}
