//! Verifies the trail: takes seals and entries, in order and in pages, and returns findings.
//!
//! Guarantee: any difference from what was sealed is a [`AuditFinding`] that names the entry, or the seal if no entry can be
//! named. So is an entry, sealed or not, that does not follow by the rules, and a message that is not in the state of
//! its last entry. With the key, a seal that was made or altered without it is found. Memory does not grow with the
//! trail: at most [`MAX_LISTED`] findings are listed, and all are counted.

mod histories;

pub use histories::Issued;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use super::entry::{AuditEntry, EntryId};
use super::key_record::{KeyFinding, KeyList};
use super::leaf::{self, Leaf, Previous};
use super::request::RequestCodes;
use super::seal::{Forgotten, Seal, SealHead};
use super::{AuditKey, Code};
use crate::time::Timestamp;
use crate::words;

/// The maximum number of findings, and of late entries, that are listed.
pub const MAX_LISTED: usize = 1000;

/// An entry dated this long before one that was sealed earlier is suspicious.
///
/// No write takes that long.
pub const MIN_LATE: Duration = Duration::from_hours(1);

words! {
    /// What is wrong with an entry or a seal.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Kind {
        /// An entry differs from what was sealed.
        Changed = "changed",
        /// A message's request differs from what was sealed with its first entry.
        RequestChanged = "request_changed",
        /// A sealed entry is missing, and no record says that it was deleted.
        Removed = "removed",
        /// An entry is in a span that was sealed without it.
        Inserted = "inserted",
        /// An entry does not follow by the rules from the previous one, or from its message.
        DoesNotFollow = "does_not_follow",
        /// The row that holds a message in the state of its last entry is missing.
        StateRemoved = "state_removed",
        /// The row that holds a message contradicts its last entry, or is superfluous.
        StateChanged = "state_changed",
        /// A seal, or its list of entries, was changed.
        SealChanged = "seal_changed",
        /// Seals are missing.
        SealRemoved = "seal_removed",
        /// A seal was made without the key.
        SealUnkeyed = "seal_unkeyed",
    }
}

/// One thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditFinding {
    /// The kind of finding.
    pub kind: Kind,
    /// The seal; `None` if none covers it yet.
    pub seal: Option<u64>,
    /// The message, if it is about one.
    pub message: Option<Uuid>,
    /// The entry, if one can be named.
    pub entry: Option<EntryId>,
    /// When the entry, or the last of the seal's entries, happened.
    pub at: Option<Timestamp>,
    /// A sentence for people.
    pub why: &'static str,
}

/// An entry dated long before what was sealed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The seal.
    pub seal: u64,
    /// The entry.
    pub entry: EntryId,
    /// Its date.
    pub at: Timestamp,
}

/// The database's clock was set back.
///
/// This is not tampering, but makes dates hard to judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetBack {
    /// How many seals were made long before the latest entry of an earlier seal.
    pub seals: u64,
    /// How many entries are dated before their predecessor.
    pub entries: u64,
    /// The largest step back.
    pub max: Duration,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// The number of seals.
    pub seals: u64,
    /// How many of them were made under a key.
    pub seals_keyed: u64,
    /// Whether a key was available to check them.
    pub key_given: bool,
    /// How many entries were sealed.
    pub sealed: u64,
    /// How many of them were deleted legitimately since.
    pub forgotten: u64,
    /// How many entries no seal covers yet: only the rules judge them.
    pub unsealed: u64,
    /// When the oldest of them happened.
    pub unsealed_since: Option<Timestamp>,
    /// The last seal.
    pub head: Option<SealHead>,
    /// The first [`MAX_LISTED`] findings.
    pub findings: Vec<AuditFinding>,
    /// The first [`MAX_LISTED`] findings about key records.
    pub keys: Vec<KeyFinding>,
    /// The number of all findings.
    pub found: u64,
    /// How many key records were compared with what was sealed.
    pub key_records: u64,
    /// Entries with a suspicious date, the first [`MAX_LISTED`], unless the clock is known to have been set back.
    pub late: Vec<Late>,
    /// Whether the database's clock was set back.
    pub set_back: Option<SetBack>,
    /// How many messages were sealed before hops were part of it.
    ///
    /// Their hops are not proven.
    pub hops_unsealed: u64,
}

impl AuditReport {
    /// Returns whether there are no findings.
    pub const fn is_whole(&self) -> bool {
        self.found == 0
    }

    fn add(&mut self, finding: AuditFinding) {
        self.found += 1;
        if self.findings.len() < MAX_LISTED {
            self.findings.push(finding);
        }
    }
}

/// A seal as stored in the database.
#[derive(Clone, Copy, Debug)]
pub struct StoredSeal<'a> {
    /// The seal.
    pub seal: Seal,
    /// Its leaves; `None` once all its entries have been deleted.
    pub leaves: Option<&'a [u8]>,
    /// The code that proves the deletion.
    pub pruned: Option<Code>,
}

/// The leaves of one seal, as far as they are reliable.
#[derive(Clone, Debug)]
pub struct CheckedSeal {
    /// The seal.
    pub seal: Seal,
    /// Its leaves, in order.
    pub leaves: Vec<Leaf>,
    /// Those with a finding already.
    reported: HashSet<EntryId>,
}

/// Verifies a trail: [`Verifier::seal`] for each seal in order, then [`Verifier::entries`] for its entries, finally
/// [`Verifier::finish`].
#[derive(Debug, Default)]
pub struct Verifier<'k> {
    key: Option<&'k AuditKey>,
    head: Option<SealHead>,
    head_met: bool,
    last: Option<Seal>,
    last_keyed: u64,
    latest: Option<Timestamp>,
    walking: Option<histories::Histories>,
    /// Messages with a finding, at most [`MAX_LISTED`]: its consequences are not reported again.
    reported: HashSet<Uuid>,
    /// The lists of key records that the entries name and that have not expired.
    pub(super) key_lists: HashMap<Uuid, KeyList>,
    pub(super) report: AuditReport,
}

impl<'k> Verifier<'k> {
    /// Creates a verifier. `head` is a stored copy of an earlier last seal.
    pub fn new(key: Option<&'k AuditKey>, head: Option<SealHead>) -> Self {
        let report = AuditReport { key_given: key.is_some(), ..AuditReport::default() };
        Self { key, head, report, ..Self::default() }
    }

    /// Judges a seal alone and by the previous one.
    ///
    /// Returns the leaves to compare its entries with.
    pub fn seal(&mut self, stored: StoredSeal<'_>) -> Option<CheckedSeal> {
        let seal = stored.seal;
        self.chain(&seal);
        let checked = stored.leaves.and_then(|bytes| self.list(&seal, bytes));
        if stored.leaves.is_none() {
            self.check_pruned(&seal, stored.pruned);
        }
        self.report.seals += 1;
        self.report.sealed += u64::from(seal.count);
        self.last = Some(seal);
        checked
    }

    /// Compares entries with their leaves.
    ///
    /// `leaves` is a page of the seal's leaves, `found` the database's entries for them, `requests` the codes of their
    /// messages' requests, at least where a leaf follows one, `forgotten` the records of deleted messages.
    pub fn entries(
        &mut self,
        checked: &CheckedSeal,
        leaves: &[Leaf],
        found: &HashMap<EntryId, AuditEntry>,
        requests: &HashMap<Uuid, RequestCodes>,
        forgotten: &HashMap<Uuid, Forgotten>,
    ) {
        for leaf in leaves {
            if self.latest.is_some_and(|latest| leaf.at.plus(MIN_LATE) < latest)
                && self.report.late.len() < MAX_LISTED
            {
                self.report.late.push(Late { seal: checked.seal.number, entry: leaf.id, at: leaf.at });
            }
            if checked.reported.contains(&leaf.id) {
                continue;
            }
            if !leaf.follows {
                let why = "it was sealed as an entry that does not follow from the previous one by the rules";
                self.report_entry(Kind::DoesNotFollow, &checked.seal, leaf, why);
            }
            match found.get(&leaf.id) {
                Some(entry) => {
                    if entry.content() != leaf.content {
                        let why = "it differs from what was sealed";
                        self.report_entry(Kind::Changed, &checked.seal, leaf, why);
                    }
                    self.request(&checked.seal, leaf, requests.get(&leaf.id.message));
                }
                None => self.missing(&checked.seal, leaf, forgotten.get(&leaf.id.message)),
            }
        }
    }

    /// Reports an entry that is in a sealed span and in no list.
    pub fn inserted(&mut self, seal: Option<u64>, entry: EntryId, at: Timestamp) {
        let why = "it lies among sealed entries, but no seal lists it";
        let message = Some(entry.message);
        self.add(AuditFinding { kind: Kind::Inserted, seal, message, entry: Some(entry), at: Some(at), why });
    }

    /// Reports an entry that was noted for the next seal and is missing.
    pub fn removed_unsealed(&mut self, entry: EntryId) {
        let why = "it was waiting for the next seal, and is missing";
        let message = Some(entry.message);
        self.add(AuditFinding {
            kind: Kind::Removed,
            seal: None,
            message,
            entry: Some(entry),
            at: None,
            why,
        });
    }

    /// Records what waits for the next seal.
    pub fn unsealed(&mut self, count: u64, since: Option<Timestamp>) {
        self.report.unsealed = count;
        self.report.unsealed_since = since;
    }

    /// Returns the report, after every seal was judged.
    pub fn finish(mut self) -> AuditReport {
        if self.key.is_some() && self.last_keyed < self.report.seals {
            // The first seal under a key proves what came before it; nothing proves what comes after the last.
            let why = "this seal and all later ones were made without the key";
            self.report_seal(Kind::SealUnkeyed, self.last_keyed + 1, why);
        }
        if let (Some(head), false) = (self.head, self.head_met) {
            let why = "the saved head is not in the chain: seals were removed or made again";
            self.report_seal(Kind::SealRemoved, head.number, why);
        }
        self.report.head = self.last.map(|seal| seal.head());
        self.report
    }

    /// Checks that a seal has the correct code and follows the previous one.
    fn chain(&mut self, seal: &Seal) {
        let (number, previous, total, since) = match &self.last {
            Some(last) => (last.number + 1, last.mac, last.total, Some(last.until)),
            None => (1, Code::NONE, 0, None),
        };
        if seal.number != number {
            self.report_seal(Kind::SealRemoved, number, "seals are missing from here on");
        } else if seal.previous != previous {
            self.seal_changed(seal, "it does not follow the previous seal");
        }
        if seal.number == number
            && (seal.total != total + u64::from(seal.count) || since.is_some_and(|since| since != seal.since))
        {
            self.seal_changed(seal, "it does not start where the previous seal ends");
        }
        if self.judges(seal) && seal.mac != seal.expected(self.key_of(seal)) {
            let why = "its code does not match: the seal was changed or made without the key, or this is a different key";
            self.seal_changed(seal, why);
        }
        if seal.keyed {
            self.report.seals_keyed += 1;
            self.last_keyed = self.report.seals + 1;
        }
        self.head_met |= self.head == Some(seal.head());
        // Not this seal's own: within one span, entries may be in any order.
        self.latest = self.latest.max(self.last.map(|last| last.last_at));
        if let Some(latest) = self.latest.filter(|latest| seal.sealed_at.plus(MIN_LATE) < *latest) {
            // The clock itself went back, and everything from here on is dated by it.
            self.set_back(latest.since(seal.sealed_at)).seals += 1;
            self.latest = None;
        }
    }

    /// Returns the key that a seal must have been made under.
    fn key_of(&self, seal: &Seal) -> Option<&'k AuditKey> {
        self.key.filter(|_| seal.keyed)
    }

    /// Returns whether the codes of a seal can be computed: always without a key, otherwise only with it.
    const fn judges(&self, seal: &Seal) -> bool {
        self.key.is_some() || !seal.keyed
    }

    /// Checks that the list of a seal's entries is the sealed one.
    ///
    /// Returns what can be read of it.
    fn list(&mut self, seal: &Seal, bytes: &[u8]) -> Option<CheckedSeal> {
        let Some(leaves) = leaf::read(bytes) else {
            self.seal_changed(seal, "its list of entries cannot be read");
            return None;
        };
        let mut reported = HashSet::new();
        if u64::from(seal.count) != leaves.len() as u64 || seal.root != leaf::root(&leaves) {
            self.seal_changed(seal, "its list of entries is not the one that was sealed");
            if self.judges(seal) {
                reported = self.check_positions(seal, &leaves);
            }
        }
        Some(CheckedSeal { seal: *seal, leaves, reported })
    }

    /// Finds where a list was changed: each leaf's tag fits one position of one seal.
    fn check_positions(&mut self, seal: &Seal, leaves: &[Leaf]) -> HashSet<EntryId> {
        let key = self.key_of(seal);
        let len = u32::try_from(leaves.len()).unwrap_or(u32::MAX);
        let (mut missing, mut extra) = (seal.count.saturating_sub(len), len.saturating_sub(seal.count));
        let mut position = 0_u32;
        let mut reported = HashSet::new();
        for leaf in leaves {
            let gap = (0..=missing).find(|gap| leaf.tag == leaf.tag_at(key, seal.number, position + gap));
            match gap {
                Some(gap) => {
                    if 0 < gap {
                        self.removed(seal, leaf, "entries before it are missing from the seal's list");
                    }
                    missing -= gap;
                    position += gap + 1;
                }
                None if 0 < extra => {
                    self.report_entry(Kind::Inserted, seal, leaf, "it was inserted into the seal's list");
                    reported.insert(leaf.id);
                    extra -= 1;
                }
                None => {
                    self.report_entry(
                        Kind::Changed,
                        seal,
                        leaf,
                        "it was changed in the seal's list, or moved",
                    );
                    reported.insert(leaf.id);
                    position += 1;
                }
            }
        }
        reported
    }

    /// Checks that the message of a first entry still has the same request.
    ///
    /// A message that is missing changes its entries.
    fn request(&mut self, seal: &Seal, leaf: &Leaf, found: Option<&RequestCodes>) {
        let Some(found) = found else { return };
        let (sealed, code) = match leaf.previous {
            Previous::Request(sealed) => (sealed, found.code),
            Previous::RequestWithoutHops(sealed) => {
                self.report.hops_unsealed += u64::from(found.has_hops);
                (sealed, found.without_hops)
            }
            Previous::Nothing | Previous::Entry(_) => return,
        };
        if sealed != code {
            let why = "the request of its message differs from what was sealed: its bytes, media type, priority, due time, allowed attempts or hops";
            self.report_entry(Kind::RequestChanged, seal, leaf, why);
        }
    }

    fn missing(&mut self, seal: &Seal, leaf: &Leaf, forgotten: Option<&Forgotten>) {
        let Some(forgotten) = forgotten else {
            return self.removed(
                seal,
                leaf,
                "it is missing, and no record says that its message was deleted",
            );
        };
        // Before there was a key, messages were deleted without one.
        let keyless = self.key.is_none() || !seal.keyed && forgotten.mac == forgotten.expected(None);
        if keyless || forgotten.mac == forgotten.expected(self.key) {
            self.report.forgotten += 1;
        } else {
            self.removed(
                seal,
                leaf,
                "it is missing, and the record that its message was deleted was made without the key",
            );
        }
    }

    fn check_pruned(&mut self, seal: &Seal, pruned: Option<Code>) {
        let keyless = self.key.is_none() && seal.keyed && pruned.is_some();
        let fits = |key| pruned == Some(seal.pruned(key));
        if keyless || fits(self.key) || !seal.keyed && fits(None) {
            self.report.forgotten += u64::from(seal.count);
        } else {
            self.seal_changed(
                seal,
                "its list of entries is missing, and no record says that they were deleted",
            );
        }
    }

    fn report_entry(&mut self, kind: Kind, seal: &Seal, leaf: &Leaf, why: &'static str) {
        let (seal, entry, at) = (Some(seal.number), Some(leaf.id), Some(leaf.at));
        self.add(AuditFinding { kind, seal, message: Some(leaf.id.message), entry, at, why });
    }

    fn removed(&mut self, seal: &Seal, leaf: &Leaf, why: &'static str) {
        self.report_entry(Kind::Removed, seal, leaf, why);
    }

    fn seal_changed(&mut self, seal: &Seal, why: &'static str) {
        self.report_seal(Kind::SealChanged, seal.number, why);
    }

    fn report_seal(&mut self, kind: Kind, seal: u64, why: &'static str) {
        self.add(AuditFinding { kind, seal: Some(seal), message: None, entry: None, at: None, why });
    }

    pub(super) fn add(&mut self, finding: AuditFinding) {
        if let Some(message) = finding.message.filter(|_| self.reported.len() < MAX_LISTED) {
            self.reported.insert(message);
        }
        self.report.add(finding);
    }
}
