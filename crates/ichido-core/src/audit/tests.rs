use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::entry::{AuditEntry, EntryId, Subject};
use super::leaf::{self, Leaf, Previous};
use super::request::{AuditedRequest, RequestCodes};
use super::seal::{Forgotten, Seal, SealHead};
use super::verify::{AuditFinding, AuditReport, Issued, Kind, StoredSeal, Verifier};
use super::{AuditKey, AuditKeyError, Code};
use crate::time::Timestamp;

fn key(byte: u8) -> AuditKey {
    AuditKey::parse(&[byte; 32]).unwrap()
}

fn entry(message: u128, fence: i64) -> AuditEntry {
    AuditEntry {
        id: EntryId { message: Uuid::from_u128(message), fence, step: 0 },
        at: Timestamp::from_secs(1_800_000_000 + fence),
        claimed_at: Some(Timestamp::from_secs(1_800_000_000)),
        from: "sending".to_owned(),
        to: "failed".to_owned(),
        kind: "failed".to_owned(),
        attempts: fence,
        deaths: 0,
        doubt_since: None,
        in_flight_until: None,
        effect: "not_done".to_owned(),
        code: Some("TIMEOUT".to_owned()),
        status: Some(503),
        result_digest: None,
        receipt: None,
        excerpt: Some(String::new()),
        node: Some(Uuid::from_u128(1)),
        actor: None,
        about: None,
        subject: Some(Subject {
            queue: "orders".to_owned(),
            identity: "alice".to_owned(),
            key: format!("k{message}"),
            digest: vec![7; 32],
            trace: None,
            trace_id: None,
            replacement_of: None,
            created_at: Timestamp::from_secs(1_700_000_000),
            max_attempts: 3,
        }),
    }
}

/// Every field, each changed alone.
const CHANGES: [fn(&mut AuditEntry); 28] = [
    |entry| entry.at = entry.at.plus(Duration::from_micros(1)),
    |entry| entry.claimed_at = None,
    |entry| entry.from.push('x'),
    |entry| entry.to = "sent".to_owned(),
    |entry| entry.kind = "succeeded".to_owned(),
    // A byte that moves between parts.
    |entry| {
        entry.kind = "fail".to_owned();
        entry.to = "failed".to_owned() + "ed";
    },
    |entry| entry.attempts += 1,
    |entry| entry.deaths += 1,
    |entry| entry.doubt_since = Some(Timestamp::EPOCH),
    |entry| entry.in_flight_until = Some(Timestamp::EPOCH),
    |entry| entry.effect = "done".to_owned(),
    |entry| entry.code = None,
    |entry| entry.status = Some(200),
    |entry| entry.result_digest = Some(Vec::new()),
    // Missing and empty differ.
    |entry| entry.receipt = Some(String::new()),
    |entry| entry.excerpt = None,
    |entry| entry.node = None,
    |entry| entry.actor = Some("mallory".to_owned()),
    |entry| entry.about = Some("queue orders".to_owned()),
    |entry| entry.subject = None,
    |entry| entry.subject.as_mut().unwrap().queue.push('x'),
    |entry| entry.subject.as_mut().unwrap().identity = "mallory".to_owned(),
    |entry| entry.subject.as_mut().unwrap().key.push('x'),
    |entry| entry.subject.as_mut().unwrap().digest = vec![8; 32],
    |entry| entry.subject.as_mut().unwrap().trace = Some("t".to_owned()),
    |entry| entry.subject.as_mut().unwrap().trace_id = Some("t".to_owned()),
    |entry| entry.subject.as_mut().unwrap().replacement_of = Some(Uuid::nil()),
    |entry| entry.subject.as_mut().unwrap().created_at = Timestamp::EPOCH,
];

/// A trail as stored in the database.
#[derive(Clone)]
struct Trail {
    entries: Vec<AuditEntry>,
    requests: HashMap<Uuid, AuditedRequest<'static>>,
    seals: Vec<(Seal, Option<Vec<u8>>, Option<Code>)>,
    forgotten: HashMap<Uuid, Forgotten>,
}

fn request(message: Uuid) -> AuditedRequest<'static> {
    AuditedRequest {
        content_type: "text/plain",
        hash: AuditedRequest::hash(message.as_bytes()),
        priority: 5,
        max_attempts: 3,
        due: None,
        hops: Some("bff, gateway"),
    }
}

/// Every field, each changed alone.
const REQUEST_CHANGES: [fn(&mut AuditedRequest<'static>); 8] = [
    |request| request.content_type = "text/html",
    |request| request.hash[31] ^= 1,
    |request| request.priority -= 1,
    |request| request.max_attempts += 1,
    |request| request.due = Some(Timestamp::EPOCH),
    |request| request.hops = None,
    |request| request.hops = Some("bff"),
    // A byte that moves between parts.
    |request| request.content_type = "text/plai",
];

/// Seals the entries in parts of these sizes.
fn sealed(entries: Vec<AuditEntry>, sizes: &[usize], key: Option<&AuditKey>) -> Trail {
    let mut seals: Vec<(Seal, Option<Vec<u8>>, Option<Code>)> = Vec::new();
    let mut rest = &entries[..];
    let requests: HashMap<Uuid, AuditedRequest<'static>> =
        entries.iter().map(|entry| (entry.id.message, request(entry.id.message))).collect();
    let mut previous_of: HashMap<Uuid, Previous> =
        requests.iter().map(|(id, request)| (*id, Previous::Request(request.code()))).collect();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (part, later) = rest.split_at((*size).min(rest.len()));
        rest = later;
        let last = seals.last().map(|(seal, ..)| *seal);
        let number = last.map_or(1, |last| last.number + 1);
        let leaves: Vec<Leaf> = part
            .iter()
            .enumerate()
            .map(|(index, entry)| {
                let previous = previous_of.insert(entry.id.message, Previous::Entry(entry.content()));
                Leaf::new(entry, (previous.unwrap(), true), key, number, u32::try_from(index).unwrap())
            })
            .collect();
        let seal = seal_after(last, &leaves).signed(key);
        seals.push((seal, Some(leaf::write(&leaves)), None));
    }
    Trail { entries, requests, seals, forgotten: HashMap::new() }
}

fn seal_after(last: Option<Seal>, leaves: &[Leaf]) -> Seal {
    let count = u32::try_from(leaves.len()).unwrap();
    let since = last.map_or(0, |last| last.until);
    Seal {
        number: last.map_or(1, |last| last.number + 1),
        since,
        until: since + i64::from(count),
        sealed_at: Timestamp::from_secs(1_900_000_000),
        first_at: leaves.iter().map(|leaf| leaf.at).min().unwrap(),
        last_at: leaves.iter().map(|leaf| leaf.at).max().unwrap(),
        count,
        total: last.map_or(0, |last| last.total) + u64::from(count),
        root: leaf::root(leaves),
        previous: last.map_or(Code::NONE, |last| last.mac),
        keyed: false,
        mac: Code::NONE,
    }
}

impl Trail {
    fn verify(&self, key: Option<&AuditKey>, head: Option<SealHead>) -> AuditReport {
        let mut verifier = Verifier::new(key, head);
        let found: HashMap<EntryId, AuditEntry> =
            self.entries.iter().map(|entry| (entry.id, entry.clone())).collect();
        let requests: HashMap<Uuid, RequestCodes> =
            self.requests.iter().map(|(id, request)| (*id, request.codes())).collect();
        let mut listed: Vec<EntryId> = Vec::new();
        for (seal, leaves, pruned) in &self.seals {
            let stored = StoredSeal { seal: *seal, leaves: leaves.as_deref(), pruned: *pruned };
            if let Some(checked) = verifier.seal(stored) {
                listed.extend(checked.leaves.iter().map(|leaf| leaf.id));
                verifier.entries(&checked, &checked.leaves, &found, &requests, &self.forgotten);
            }
        }
        for entry in &self.entries {
            if !listed.contains(&entry.id) {
                verifier.inserted(None, entry.id, entry.at);
            }
        }
        verifier.finish()
    }

    fn head(&self) -> SealHead {
        self.seals.last().unwrap().0.head()
    }

    fn leaves(&self, seal: usize) -> Vec<Leaf> {
        leaf::read(self.seals[seal].1.as_ref().unwrap()).unwrap()
    }

    fn put_leaves(&mut self, seal: usize, leaves: &[Leaf]) {
        self.seals[seal].1 = Some(leaf::write(leaves));
    }
}

/// Three messages with some history each.
fn trail(count: usize, key: Option<&AuditKey>) -> Trail {
    let entries = (0..count).map(|n| entry(n as u128 % 3, i64::try_from(n).unwrap())).collect();
    sealed(entries, &[4, 1, 7], key)
}

/// The findings that name an entry.
fn named(report: &AuditReport) -> Vec<(Kind, EntryId)> {
    report.findings.iter().filter_map(|finding| Some((finding.kind, finding.entry?))).collect()
}

fn kinds(report: &AuditReport) -> Vec<Kind> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn untouched_trail_verifies() {
    let key = key(1);
    for count in 1..40 {
        let trail = trail(count, Some(&key));
        let report = trail.verify(Some(&key), Some(trail.head()));
        assert!(report.is_whole(), "{:?}", report.findings);
        assert_eq!((report.sealed, report.seals_keyed), (count as u64, report.seals));
    }
}

#[test]
fn every_field_of_an_entry_counts() {
    let key = key(1);
    for (number, change) in CHANGES.iter().enumerate() {
        let mut trail = trail(12, Some(&key));
        change(&mut trail.entries[5]);
        let report = trail.verify(Some(&key), None);
        assert_eq!(named(&report), [(Kind::Changed, trail.entries[5].id)], "change {number}");
        assert_eq!(report.found, 1);
    }
}

#[test]
fn every_field_of_a_request_counts_and_its_message_is_named() {
    let key = key(1);
    for (number, change) in REQUEST_CHANGES.iter().enumerate() {
        let mut trail = trail(12, Some(&key));
        let first = trail.entries[1].id;
        change(trail.requests.get_mut(&first.message).unwrap());
        let report = trail.verify(Some(&key), None);
        assert_eq!(named(&report), [(Kind::RequestChanged, first)], "change {number}");
        assert_eq!(report.found, 1);
    }
}

#[test]
fn request_deleted_with_its_entries_is_not_reported() {
    let key = key(1);
    let mut trail = trail(6, Some(&key));
    let message = trail.entries[0].id.message;
    let entries = u32::try_from(trail.entries.iter().filter(|entry| entry.id.message == message).count());
    trail.entries.retain(|entry| entry.id.message != message);
    trail.requests.remove(&message);
    assert!(!trail.verify(Some(&key), None).is_whole(), "nothing says why");
    let note = Forgotten::signed(message, Timestamp::EPOCH, entries.unwrap(), Some(&key));
    trail.forgotten.insert(message, note);
    assert!(trail.verify(Some(&key), None).is_whole());
}

#[test]
fn seals_cannot_be_forged_without_the_key() {
    let (right, wrong) = (key(1), key(2));
    let mut trail = trail(12, Some(&right));
    trail.entries[5].actor = Some("nobody".to_owned());
    for key in [None, Some(&wrong)] {
        // An attacker who can write to the database makes all seals anew, over the changed data.
        let forged = sealed(trail.entries.clone(), &[4, 1, 7], key);
        assert!(forged.verify(key, None).is_whole(), "by its own measure it is");
        let report = forged.verify(Some(&right), None);
        assert!(!report.is_whole(), "{report:?}");
        let expected = if key.is_some() { Kind::SealChanged } else { Kind::SealUnkeyed };
        assert!(kinds(&report).contains(&expected), "{report:?}");
    }
}

#[test]
fn an_entry_changed_together_with_its_leaf_is_named() {
    let key = key(1);
    let mut trail = trail(12, Some(&key));
    trail.entries[6].status = Some(200);
    let mut leaves = trail.leaves(2);
    let index = leaves.iter().position(|leaf| leaf.id == trail.entries[6].id).unwrap();
    leaves[index].content = trail.entries[6].content();
    leaves[index].tag = [9; 8];
    trail.put_leaves(2, &leaves);
    let report = trail.verify(Some(&key), None);
    assert_eq!(kinds(&report), [Kind::SealChanged, Kind::Changed]);
    assert_eq!(named(&report), [(Kind::Changed, trail.entries[6].id)]);
}

#[test]
fn entry_removed_or_inserted_with_its_leaf_is_located() {
    let key = key(1);
    let mut removed = trail(12, Some(&key));
    let mut leaves = removed.leaves(2);
    leaves.remove(2);
    removed.put_leaves(2, &leaves);
    removed.entries.remove(7);
    let report = removed.verify(Some(&key), None);
    assert_eq!(named(&report), [(Kind::Removed, removed.entries[7].id)], "entries before it are missing");

    let mut inserted = trail(12, Some(&key));
    let new = entry(9, 99);
    let mut leaves = inserted.leaves(2);
    leaves.insert(3, Leaf::new(&new, (Previous::Nothing, true), None, 3, 3));
    inserted.put_leaves(2, &leaves);
    inserted.entries.push(new.clone());
    assert_eq!(named(&inserted.verify(Some(&key), None)), [(Kind::Inserted, new.id)]);
}

#[test]
fn saved_head_reveals_removed_seals() {
    let key = key(1);
    let mut trail = trail(24, Some(&key));
    let head = trail.head();
    let early = trail.seals[1].0.head();
    let gone = trail.seals.pop().unwrap().0;
    trail.entries.truncate(usize::try_from(gone.total - u64::from(gone.count)).unwrap());
    assert!(trail.verify(Some(&key), None).is_whole(), "nothing else shows it");
    assert!(trail.verify(Some(&key), Some(early)).is_whole(), "an older head is still in the chain");
    let report = trail.verify(Some(&key), Some(head));
    assert_eq!(kinds(&report), [Kind::SealRemoved]);
    trail.seals.remove(1);
    assert_eq!(trail.verify(Some(&key), None).findings[0].seal, Some(2));
}

#[test]
fn later_key_covers_earlier_seals() {
    let key = key(1);
    let mut trail = trail(12, None);
    let last = trail.seals[1].0;
    let leaves: Vec<Leaf> = trail.entries[5..]
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            Leaf::new(entry, (Previous::Nothing, true), Some(&key), 3, u32::try_from(index).unwrap())
        })
        .collect();
    trail.seals[2] = (seal_after(Some(last), &leaves).signed(Some(&key)), Some(leaf::write(&leaves)), None);
    let report = trail.verify(Some(&key), None);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.seals, report.seals_keyed), (3, 1));
    let less = trail.verify(None, None);
    assert!(less.is_whole() && !less.key_given, "without the key less is shown, and nothing wrong found");
}

#[test]
fn deletion_recorded_without_the_key_is_reported() {
    let (right, wrong) = (key(1), key(2));
    let mut trail = trail(12, Some(&right));
    let message = Uuid::from_u128(1);
    trail.entries.retain(|entry| entry.id.message != message);
    assert_eq!(trail.verify(Some(&right), None).found, 4);
    let at = Timestamp::EPOCH;
    trail.forgotten.insert(message, Forgotten::signed(message, at, 4, Some(&right)));
    let report = trail.verify(Some(&right), None);
    assert!(report.is_whole());
    assert_eq!(report.forgotten, 4);
    for key in [None, Some(&wrong)] {
        trail.forgotten.insert(message, Forgotten::signed(message, at, 4, key));
        let report = trail.verify(Some(&right), None);
        assert_eq!(kinds(&report), [Kind::Removed; 4]);
    }
}

#[test]
fn seal_of_deleted_entries_keeps_root_and_count() {
    let (right, wrong) = (key(1), key(2));
    let mut trail = trail(12, Some(&right));
    trail.entries.drain(..4);
    trail.seals[0].1 = None;
    for (pruned, whole) in [
        (Some(trail.seals[0].0.pruned(Some(&right))), true),
        (Some(trail.seals[0].0.pruned(Some(&wrong))), false),
        (Some(trail.seals[0].0.pruned(None)), false),
        (None, false),
    ] {
        trail.seals[0].2 = pruned;
        let report = trail.verify(Some(&right), None);
        assert_eq!(report.is_whole(), whole, "{report:?}");
        assert_eq!(report.sealed, 12);
    }
}

#[test]
fn entry_dated_long_before_earlier_seals_is_noted() {
    let key = key(1);
    let mut entries: Vec<AuditEntry> = (0..8).map(|n| entry(n, i64::try_from(n).unwrap())).collect();
    entries[6].at = Timestamp::from_secs(1_800_000_000 - 7_200);
    let trail = sealed(entries, &[4], Some(&key));
    let report = trail.verify(Some(&key), None);
    assert!(report.is_whole(), "a clock may be set back");
    assert_eq!(report.late.iter().map(|late| late.entry).collect::<Vec<_>>(), [trail.entries[6].id]);
}

#[test]
fn clock_set_back_is_one_note_and_no_finding() {
    let key = key(1);
    let mut entries: Vec<AuditEntry> = (0..12).map(|n| entry(n, i64::try_from(n).unwrap())).collect();
    for entry in &mut entries[4..] {
        entry.at = Timestamp::from_secs(1_800_000_000 - 7_200);
    }
    let mut trail = sealed(entries, &[4], Some(&key));
    let mut previous = trail.seals[0].0;
    for (seal, ..) in &mut trail.seals[1..] {
        let sealed_at = Timestamp::from_secs(1_800_000_000 - 7_100);
        *seal = Seal { sealed_at, previous: previous.mac, ..*seal }.signed(Some(&key));
        previous = *seal;
    }
    let report = trail.verify(Some(&key), None);
    assert!(report.is_whole(), "{report:?}");
    let set_back = report.set_back.unwrap();
    assert_eq!((set_back.seals, set_back.entries, set_back.max), (1, 0, Duration::from_secs(7_103)));
    assert_eq!(report.late, [], "the clock explains them");
}

#[test]
fn seals_without_hops_still_verify() {
    let key = key(1);
    let mut trail = trail(3, Some(&key));
    let mut leaves = trail.leaves(0);
    for (index, leaf) in (0..).zip(&mut leaves) {
        let request = trail.requests[&leaf.id.message];
        leaf.previous = Previous::RequestWithoutHops(request.code_without_hops());
        leaf.tag = leaf.tag_at(Some(&key), 1, index);
    }
    trail.put_leaves(0, &leaves);
    trail.seals[0].0 = seal_after(None, &leaves).signed(Some(&key));
    let report = trail.verify(Some(&key), None);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.hops_unsealed, 3, "what is not under the seal is said");
    let first = trail.entries[0].id;
    trail.requests.get_mut(&first.message).unwrap().hops = None;
    assert!(trail.verify(Some(&key), None).is_whole());
    trail.requests.get_mut(&first.message).unwrap().priority = 0;
    assert_eq!(named(&trail.verify(Some(&key), None)), [(Kind::RequestChanged, first)]);
}

#[test]
fn entry_sealed_as_not_following_is_reported_after_deletion() {
    let key = key(1);
    let mut trail = trail(3, Some(&key));
    let mut leaves = trail.leaves(0);
    leaves[1].follows = false;
    leaves[1].tag = leaves[1].tag_at(Some(&key), 1, 1);
    trail.put_leaves(0, &leaves);
    assert_eq!(
        kinds(&trail.verify(Some(&key), None))[0],
        Kind::SealChanged,
        "the seal holds what was judged"
    );
    trail.seals[0].0 = seal_after(None, &leaves).signed(Some(&key));
    let forged = trail.entries[1].id;
    assert_eq!(named(&trail.verify(Some(&key), None)), [(Kind::DoesNotFollow, forged)]);
    trail.entries.remove(1);
    let (at, message) = (Timestamp::EPOCH, forged.message);
    trail.forgotten.insert(message, Forgotten::signed(message, at, 1, Some(&key)));
    assert_eq!(named(&trail.verify(Some(&key), None)), [(Kind::DoesNotFollow, forged)]);
}

#[test]
fn consequences_of_a_finding_are_not_reported() {
    let (mut verifier, issued) = (Verifier::new(None, None), Issued { fence: 9, ..Issued::default() });
    let forged = [entry(1, 1), entry(2, 1), entry(2, 5), entry(3, 10)];
    verifier.inserted(None, forged[0].id, forged[0].at);
    verifier.histories(&[AuditEntry { attempts: 4, ..forged[0].clone() }], &issued);
    verifier.histories(&forged[1..], &issued);
    verifier.histories_end(&issued);
    verifier.misplaced(forged[0].id.message, Kind::StateRemoved, "gone");
    verifier.misplaced(Uuid::from_u128(7), Kind::StateRemoved, "gone");
    let report = verifier.finish();
    let (inserted, violation) = (Kind::Inserted, Kind::DoesNotFollow);
    let expected = [(inserted, forged[0].id), (violation, forged[2].id), (violation, forged[3].id)];
    assert_eq!((named(&report), report.found), (expected.to_vec(), 4));
    assert_eq!(report.findings[3].message, Some(Uuid::from_u128(7)));
}

#[test]
fn a_head_is_read_back_as_it_was_written() {
    let head = trail(5, Some(&key(1))).head();
    assert_eq!(SealHead::parse(&format!("{head}\n")), Some(head));
    for text in ["", "ichido-audit-1:1:2", &format!("{head}:0"), &head.to_string().to_uppercase(), "x:1:2:3"]
    {
        assert_eq!(SealHead::parse(text), None, "{text}");
    }
}

#[test]
fn a_key_has_enough_bytes_and_does_not_show_itself() {
    assert_eq!(AuditKey::parse(b"short\n").unwrap_err(), AuditKeyError::TooShort { found: 5 });
    assert_eq!(AuditKey::parse(&[1; 1025]).unwrap_err(), AuditKeyError::TooLong { found: 1025 });
    let with_line = AuditKey::parse(&[&[b'k'; 32][..], b"\r\n"].concat()).unwrap();
    assert_eq!(with_line.0, [b'k'; 32]);
    assert_eq!(format!("{with_line:?}"), "AuditKey(…)");
}

/// A manipulation of a trail.
#[derive(Clone, Debug)]
enum Tampering {
    Request {
        message: u128,
        how: usize,
    },
    Change {
        entry: usize,
        how: usize,
    },
    Remove {
        entry: usize,
    },
    Insert {
        fence: i64,
    },
    /// Two entries swap their contents.
    Swap {
        one: usize,
        other: usize,
    },
    /// Two leaves of a seal's list swap places.
    SwapLeaves {
        seal: usize,
        leaf: usize,
    },
    LeafByte {
        seal: usize,
        byte: usize,
    },
    SwapSeals {
        seal: usize,
    },
    RemoveSeal {
        seal: usize,
    },
}

fn tampering() -> impl Strategy<Value = Tampering> {
    prop_oneof![
        (0..3_u128, any::<usize>()).prop_map(|(message, how)| Tampering::Request { message, how }),
        (any::<usize>(), any::<usize>()).prop_map(|(entry, how)| Tampering::Change { entry, how }),
        any::<usize>().prop_map(|entry| Tampering::Remove { entry }),
        (1000_i64..).prop_map(|fence| Tampering::Insert { fence }),
        (any::<usize>(), any::<usize>()).prop_map(|(one, other)| Tampering::Swap { one, other }),
        (any::<usize>(), any::<usize>()).prop_map(|(seal, leaf)| Tampering::SwapLeaves { seal, leaf }),
        (any::<usize>(), any::<usize>()).prop_map(|(seal, byte)| Tampering::LeafByte { seal, byte }),
        any::<usize>().prop_map(|seal| Tampering::SwapSeals { seal }),
        any::<usize>().prop_map(|seal| Tampering::RemoveSeal { seal }),
    ]
}

/// Applies it and returns what must be reported, in any order.
fn tamper(trail: &mut Trail, tampering: &Tampering) -> Option<Vec<(Kind, EntryId)>> {
    let (count, seals) = (trail.entries.len(), trail.seals.len());
    match *tampering {
        Tampering::Change { entry, how } => {
            let entry = &mut trail.entries[entry % count];
            CHANGES[how % CHANGES.len()](entry);
            Some(vec![(Kind::Changed, entry.id)])
        }
        Tampering::Request { message, how } => {
            let id = Uuid::from_u128(message);
            REQUEST_CHANGES[how % REQUEST_CHANGES.len()](trail.requests.get_mut(&id)?);
            let first = trail.entries.iter().find(|entry| entry.id.message == id)?;
            Some(vec![(Kind::RequestChanged, first.id)])
        }
        Tampering::Remove { entry } => Some(vec![(Kind::Removed, trail.entries.remove(entry % count).id)]),
        Tampering::Insert { fence } => {
            trail.entries.push(entry(1, fence));
            Some(vec![(Kind::Inserted, entry(1, fence).id)])
        }
        Tampering::Swap { one, other } => {
            let (one, other) = (one % count, other % count);
            let (first, second) = (trail.entries[one].id, trail.entries[other].id);
            trail.entries.swap(one, other);
            (trail.entries[one].id, trail.entries[other].id) = (first, second);
            (one != other).then(|| vec![(Kind::Changed, first), (Kind::Changed, second)])
        }
        Tampering::SwapLeaves { seal, leaf } => {
            let mut leaves = trail.leaves(seal % seals);
            let (one, other) = (leaf % leaves.len(), (leaf + 1) % leaves.len());
            leaves.swap(one, other);
            trail.put_leaves(seal % seals, &leaves);
            (one != other).then(|| vec![(Kind::Changed, leaves[one].id), (Kind::Changed, leaves[other].id)])
        }
        Tampering::LeafByte { seal, byte } => {
            let list = trail.seals[seal % seals].1.as_mut().unwrap();
            let index = byte % list.len();
            list[index] ^= 1;
            Some(Vec::new())
        }
        Tampering::SwapSeals { seal } => {
            let (one, other) = (seal % seals, (seal + 1) % seals);
            trail.seals.swap(one, other);
            (one != other).then(Vec::new)
        }
        Tampering::RemoveSeal { seal } => {
            trail.seals.remove(seal % seals);
            Some(Vec::new())
        }
    }
}

proptest! {
    #[test]
    fn any_single_tampering_is_found_and_named(
        count in 1_usize..30,
        sizes in proptest::collection::vec(1_usize..9, 1..4),
        tampering in tampering(),
        keyed in any::<bool>(),
    ) {
        let key = key(1);
        let key = keyed.then_some(&key);
        let entries = (0..count).map(|n| entry(n as u128 % 3, i64::try_from(n).unwrap())).collect();
        let mut trail = sealed(entries, &sizes, key);
        let head = trail.head();
        prop_assert!(trail.verify(key, Some(head)).is_whole());
        let Some(mut expected) = tamper(&mut trail, &tampering) else { return Ok(()) };
        let report = trail.verify(key, Some(head));
        prop_assert!(!report.is_whole());
        let mut found = named(&report);
        for finding in expected.drain(..) {
            let index = found.iter().position(|found| *found == finding);
            prop_assert!(index.is_some(), "{finding:?} is not in {report:?}");
            found.remove(index.unwrap());
        }
        let in_seals = matches!(
            tampering,
            Tampering::LeafByte { .. } | Tampering::SwapSeals { .. } | Tampering::RemoveSeal { .. }
        );
        prop_assert!(in_seals || found.is_empty(), "nothing else is named: {found:?}");
        let seal_told = |finding: &AuditFinding| finding.entry.is_none() && finding.seal.is_some();
        prop_assert!(!in_seals || report.findings.iter().any(seal_told));
    }
}
