//! The history of a record, and its name.

use super::*;
use crate::key::IdempotencyKey;

fn kinds(entries: &[KeyEntry]) -> Vec<(&str, &str, &str)> {
    entries.iter().map(|entry| (&*entry.kind, &*entry.from, &*entry.to)).collect()
}

/// An entry of the audit trail.
fn recorded(secs: i64, kind: &str, from: &str, to: &str) -> KeyEntry {
    let actor = (kind == "decided").then(|| "olivia".to_owned());
    let (kind, from, to) = (kind.to_owned(), from.to_owned(), to.to_owned());
    KeyEntry { at: at(secs), kind, from, to, fence: None, actor }
}

#[test]
fn claims_and_outcome_follow_from_the_record() {
    let done = settled(Settled::Applied, StoredBody::Whole, Expiry::At(at(60)));
    let entries = history(&done, Some(NOW), []);
    let expected = [
        ("claimed", "none", "claimed"),
        ("taken_over", "claimed", "claimed"),
        ("settled", "claimed", "applied"),
    ];
    assert_eq!(kinds(&entries), expected);
    let moments: Vec<_> = entries.iter().map(|entry| (entry.at, entry.fence)).collect();
    assert_eq!(moments, [(at(-60), None), (at(-30), Some(fence(7))), (NOW, Some(fence(7)))]);
    let once = Record { first_claimed_at: at(-30), ..record(RecordPhase::Claimed { lease_until: NOW }) };
    let [claimed] = &history(&once, None, [])[..] else { panic!("one claim") };
    assert_eq!((claimed.at, claimed.fence), (at(-30), Some(fence(7))));
}

#[test]
fn recorded_steps_are_between_the_derived_ones() {
    let refused = settled(Settled::Refused, StoredBody::WithoutBody, Expiry::At(at(60)));
    let unknown = recorded(-10, "unknown", "claimed", "unknown");
    let late = history(&refused, Some(NOW), [unknown.clone()]);
    assert_eq!(kinds(&late)[2..], [("unknown", "claimed", "unknown"), ("settled", "unknown", "refused")]);
    // The decision is the outcome, and names its person.
    let decided = history(&refused, Some(NOW), [unknown, recorded(0, "decided", "unknown", "refused")]);
    assert_eq!(kinds(&decided)[3..], [("decided", "unknown", "refused")]);
    assert_eq!(decided[3].actor.as_deref(), Some("olivia"));
}

#[test]
fn records_of_a_key_are_stored_side_by_side() {
    let name = |operation: &str, key: &str| RecordName {
        operation: operation.to_owned(),
        identity: "alice".to_owned(),
        key: IdempotencyKey::parse(key).unwrap(),
    };
    let (first, last) = RecordName::range(name("a", "k1").key.hash());
    for operation in ["a", "b"] {
        assert!((first..=last).contains(&name(operation, "k1").hash()));
        assert!(!(first..=last).contains(&name(operation, "k2").hash()));
    }
}

#[test]
fn the_same_key_under_another_operation_or_identity_is_another_action() {
    let name = |operation: &str, identity: &str, key: &str| RecordName {
        operation: operation.to_owned(),
        identity: identity.to_owned(),
        key: IdempotencyKey::parse(key).unwrap(),
    };
    let first = name("orders.create", "alice", "1").hash();
    assert_eq!(first, name("orders.create", "alice", "1").hash());
    for other in [
        name("orders.cancel", "alice", "1"),
        name("orders.create", "bob", "1"),
        name("orders.create", "alice", "2"),
        name("orders.createa", "lice", "1"),
        name("orders.create", "alice1", "1"),
    ] {
        assert_ne!(other.hash(), first, "{other:?}");
    }
}
