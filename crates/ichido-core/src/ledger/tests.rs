use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::Now;
use crate::fence::Fence;
use crate::fingerprint::Fingerprint;
use crate::key::{IdempotencyKey, KeyError};
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const SAME: Fingerprint = Fingerprint::from_bytes([1; 32]);
const OTHER: Fingerprint = Fingerprint::from_bytes([2; 32]);
const HOUR: Duration = Duration::from_hours(1);

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn policy(mode: OperationGuarantee) -> Policy {
    Policy::build(PolicyDraft { guarantee: Some(mode), ..PolicyDraft::new(Class::Mutate) }).unwrap()
}

fn modes() -> [Policy; 3] {
    [OperationGuarantee::Transactional, OperationGuarantee::Keyed, OperationGuarantee::None].map(policy)
}

fn record(phase: RecordPhase) -> Record {
    let (first_claimed_at, claimed_at) = (at(-60), at(-30));
    Record {
        fingerprint: SAME,
        fence: fence(7),
        first_claimed_at,
        claimed_at,
        answered_at: None,
        mode: OperationGuarantee::Transactional,
        phase,
    }
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(NOW.as_micros() + secs * 1_000_000)
}

fn settled(outcome: Settled, kept: StoredBody, expiry: Expiry) -> Record {
    record(RecordPhase::Settled { outcome, kept, expiry })
}

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

#[test]
fn a_new_key_runs() {
    for policy in modes() {
        assert_eq!(admit(None, SAME, &policy, NOW), Admission::Run { replaces: None });
    }
}

#[test]
fn a_settled_key_replays_and_does_no_work() {
    for policy in modes() {
        for outcome in [Settled::Applied, Settled::Refused] {
            let whole = settled(outcome, StoredBody::Whole, Expiry::At(at(1)));
            assert_eq!(admit(Some(&whole), SAME, &policy, NOW), Admission::Replay);
            let bodiless = settled(outcome, StoredBody::WithoutBody, Expiry::At(at(1)));
            assert_eq!(admit(Some(&bodiless), SAME, &policy, NOW), Admission::ReplayNotKept);
        }
    }
}

#[test]
fn expired_key_is_new_for_any_request() {
    for policy in modes() {
        for print in [SAME, OTHER] {
            let expired = settled(Settled::Applied, StoredBody::Whole, Expiry::At(NOW));
            assert_eq!(
                admit(Some(&expired), print, &policy, NOW),
                Admission::Run { replaces: Some(fence(7)) }
            );
        }
        let alive = settled(Settled::Applied, StoredBody::Whole, Expiry::At(at(1)));
        assert_eq!(admit(Some(&alive), OTHER, &policy, NOW), Admission::Mismatch);
    }
}

#[test]
fn clock_ahead_does_not_expire_keys() {
    let now = Now { wall: at(100), retention: at(50) };
    for policy in modes() {
        let kept = settled(Settled::Applied, StoredBody::Whole, Expiry::At(at(51)));
        assert_eq!(admit(Some(&kept), SAME, &policy, now), Admission::Replay);
        assert_eq!(admit(Some(&kept), OTHER, &policy, now), Admission::Mismatch);
        let expired = settled(Settled::Applied, StoredBody::Whole, Expiry::At(at(50)));
        assert_eq!(admit(Some(&expired), SAME, &policy, now), Admission::Run { replaces: Some(fence(7)) });
        // The wall clock ends leases.
        let claimed = record(RecordPhase::Claimed { lease_until: at(60) });
        let admission = admit(Some(&claimed), SAME, &policy, now);
        assert!(!matches!(admission, Admission::Wait { .. }), "{admission:?}");
    }
}

#[test]
fn only_settled_records_expire_and_none_that_a_message_uses() {
    let long_ago = at(-1_000_000);
    assert!(may_sweep(&settled(Settled::Applied, StoredBody::Whole, Expiry::At(long_ago)), NOW));
    assert!(may_sweep(&settled(Settled::Refused, StoredBody::WithoutBody, Expiry::At(NOW)), NOW));
    assert!(!may_sweep(&settled(Settled::Applied, StoredBody::Whole, Expiry::At(at(1))), NOW));
    assert!(!may_sweep(&settled(Settled::Applied, StoredBody::Whole, Expiry::HeldByMessage), NOW));
    assert!(!may_sweep(&record(RecordPhase::Claimed { lease_until: long_ago }), NOW));
    assert!(!may_sweep(&record(RecordPhase::Unknown), NOW));
    let held = settled(Settled::Applied, StoredBody::Whole, Expiry::HeldByMessage);
    assert_eq!(
        admit(Some(&held), SAME, &policy(OperationGuarantee::None), Timestamp::MAX),
        Admission::Replay
    );
}

#[test]
fn conflict_reveals_nothing_else() {
    let phases = [
        RecordPhase::Claimed { lease_until: at(1) },
        RecordPhase::Claimed { lease_until: at(-1) },
        RecordPhase::Unknown,
        RecordPhase::Settled {
            outcome: Settled::Applied,
            kept: StoredBody::Whole,
            expiry: Expiry::At(at(1)),
        },
    ];
    for policy in modes() {
        for phase in phases {
            assert_eq!(admit(Some(&record(phase)), OTHER, &policy, NOW), Admission::Mismatch, "{phase:?}");
        }
    }
}

#[test]
fn a_duplicate_in_flight_waits_until_the_lease_lapses() {
    let claimed = record(RecordPhase::Claimed { lease_until: at(5) });
    for policy in modes() {
        assert_eq!(admit(Some(&claimed), SAME, &policy, NOW), Admission::Wait { lease_until: at(5) });
        assert_eq!(admit(Some(&claimed), SAME, &policy, at(4)), Admission::Wait { lease_until: at(5) });
    }
}

/// The clock was ahead when it was claimed, and was set back: its age is unknown.
#[test]
fn claim_from_a_clock_ahead_reruns_only_if_transactional() {
    let month = 30 * 24 * 3_600;
    let phase = RecordPhase::Claimed { lease_until: at(month + 30) };
    let ahead = Record { first_claimed_at: at(month), claimed_at: at(month), ..record(phase) };
    let admitted = |mode| admit(Some(&ahead), SAME, &policy(mode), NOW);
    assert_eq!(admitted(OperationGuarantee::Transactional), Admission::TakeOver { from: fence(7) });
    for mode in [OperationGuarantee::Keyed, OperationGuarantee::None] {
        assert_eq!(admitted(mode), Admission::MarkUnknown { fence: fence(7) }, "{mode:?}");
    }
}

#[test]
fn lapsed_claim_is_taken_over_only_if_rerun_is_harmless() {
    let lapsed = record(RecordPhase::Claimed { lease_until: NOW });
    for mode in [OperationGuarantee::Transactional, OperationGuarantee::Idempotent, OperationGuarantee::Keyed]
    {
        let admission = admit(Some(&lapsed), SAME, &policy(mode), NOW);
        assert_eq!(admission, Admission::TakeOver { from: fence(7) }, "{mode:?}");
    }
    let admission = admit(Some(&lapsed), SAME, &policy(OperationGuarantee::None), NOW);
    assert_eq!(admission, Admission::MarkUnknown { fence: fence(7) });
}

#[test]
fn an_unknown_outcome_is_never_run_again_in_opaque_mode() {
    let unknown = record(RecordPhase::Unknown);
    for on_unknown in [OnUnknown::Hold, OnUnknown::Reconcile] {
        let mode = Some(OperationGuarantee::None);
        let draft = PolicyDraft {
            guarantee: mode,
            on_unknown: Some(on_unknown),
            ..PolicyDraft::new(Class::ExternalEffect)
        };
        let policy = Policy::build(draft).unwrap();
        assert_eq!(
            admit(Some(&unknown), SAME, &policy, Timestamp::MAX),
            Admission::Unknown,
            "{on_unknown:?}"
        );
    }
    assert_eq!(
        admit(Some(&unknown), SAME, &policy(OperationGuarantee::Keyed), NOW),
        Admission::TakeOver { from: fence(7) }
    );
}

#[test]
fn stored_outcome_follows_effect_not_status() {
    use RequestOutcome::{Lost, NotStarted, NothingDone, Panicked, Responded, StillRunning};
    let kept = |outcome| Settlement::Keep { outcome, expires_at: NOW.plus(72 * HOUR) };
    let (applied, refused) = (kept(Settled::Applied), kept(Settled::Refused));
    let (release, hold) = (Settlement::Release, Settlement::Hold);
    let status = |status| Responded { status };
    //                    outcome       transactional keyed    opaque
    let table = [
        (status(200), applied, applied, applied),
        (status(201), applied, applied, applied),
        (status(204), applied, applied, applied),
        (status(303), applied, applied, applied),
        (status(400), refused, refused, refused),
        (status(402), refused, refused, refused),
        (status(404), refused, refused, refused),
        (status(409), refused, refused, refused),
        (status(422), refused, refused, refused),
        (status(401), release, release, release),
        (status(403), release, release, release),
        (status(408), release, hold, hold),
        (status(413), release, release, release),
        (status(425), release, release, release),
        (status(429), release, release, release),
        (status(500), release, hold, hold),
        (status(503), release, hold, hold),
        (status(504), release, hold, hold),
        (status(999), release, hold, hold),
        (status(102), release, hold, hold),
        (NothingDone, release, release, release),
        (NotStarted, release, release, release),
        (StillRunning, release, hold, hold),
        (Panicked, release, hold, hold),
        (Lost, release, hold, hold),
    ];
    for (outcome, transactional, keyed, opaque) in table {
        let found = modes().map(|policy| settle(outcome, &policy, NOW));
        assert_eq!(found, [transactional, keyed, opaque], "{outcome:?}");
    }
}

#[test]
fn a_lost_outcome_leaves_the_key_bound_to_its_request() {
    for mode in [OperationGuarantee::Keyed, OperationGuarantee::None] {
        let policy = policy(mode);
        assert_eq!(settle(RequestOutcome::Lost, &policy, NOW), Settlement::Hold);
        assert_eq!(
            admit(Some(&record(RecordPhase::Unknown)), OTHER, &policy, NOW),
            Admission::Mismatch,
            "{mode:?}"
        );
    }
}

#[test]
fn an_idempotent_operation_leaves_no_unknown_outcome() {
    use OperationGuarantee::{Idempotent, Keyed, None};
    for outcome in [RequestOutcome::Lost, RequestOutcome::Panicked, RequestOutcome::Responded { status: 503 }]
    {
        assert_eq!(settle(outcome, &policy(Idempotent), NOW), Settlement::Release, "{outcome:?}");
    }
    let ages_later = Timestamp::MAX;
    let lapsed = Record { mode: Idempotent, ..record(RecordPhase::Claimed { lease_until: NOW }) };
    let admission = admit(Some(&lapsed), SAME, &policy(Idempotent), ages_later);
    assert_eq!(admission, Admission::TakeOver { from: fence(7) });
    // What was lost before the operation was declared idempotent stays as it was judged then.
    for claimed in [Keyed, None] {
        let lapsed = Record { mode: claimed, ..lapsed };
        let admission = admit(Some(&lapsed), SAME, &policy(Idempotent), ages_later);
        assert_eq!(admission, Admission::MarkUnknown { fence: fence(7) }, "{claimed:?}");
    }
}

#[test]
fn keyed_operation_reruns_only_while_upstream_keeps_the_key() {
    let draft = PolicyDraft {
        guarantee: Some(OperationGuarantee::Keyed),
        keeps_keys_for: Some(HOUR),
        ..PolicyDraft::new(Class::ExternalEffect)
    };
    let policy = Policy::build(draft).unwrap();
    let lapsed = record(RecordPhase::Claimed { lease_until: at(-1) });
    // Counted from the first claim, 60 s before: a later one may already have been a repetition.
    for (later, lapsed_says, unknown_says) in [
        (3_539, Admission::TakeOver { from: fence(7) }, Admission::TakeOver { from: fence(7) }),
        (3_540, Admission::MarkUnknown { fence: fence(7) }, Admission::Unknown),
    ] {
        assert_eq!(admit(Some(&lapsed), SAME, &policy, at(later)), lapsed_says, "{later} s later");
        assert_eq!(
            admit(Some(&record(RecordPhase::Unknown)), SAME, &policy, at(later)),
            unknown_says,
            "{later} s later"
        );
    }
}

#[test]
fn finding_resolves_an_unknown_outcome() {
    let policy = policy(OperationGuarantee::None);
    let unknown = record(RecordPhase::Unknown);
    let keep = |outcome| Ok(Settlement::Keep { outcome, expires_at: NOW.plus(72 * HOUR) });
    assert_eq!(resolve(&unknown, Resolution::Applied, &policy, NOW), keep(Settled::Applied));
    assert_eq!(resolve(&unknown, Resolution::Refused, &policy, NOW), keep(Settled::Refused));
    // Claimed 30 s ago, and a call may take effect for ten minutes.
    let early = Err(ResolveError::TooEarly { from: at(570) });
    assert_eq!(resolve(&unknown, Resolution::NothingDone, &policy, at(569)), early);
    assert_eq!(resolve(&unknown, Resolution::NothingDone, &policy, at(570)), Ok(Settlement::Release));
    // Nothing is in transit after an answer, unless an earlier call was lost.
    let answered = Record { first_claimed_at: unknown.claimed_at, answered_at: Some(at(-20)), ..unknown };
    assert_eq!(resolve(&answered, Resolution::NothingDone, &policy, at(-20)), Ok(Settlement::Release));
    let taken_over = Record { answered_at: Some(at(-20)), ..unknown };
    assert_eq!(resolve(&taken_over, Resolution::NothingDone, &policy, NOW), early);
    for (outcome, is_answered) in [
        (RequestOutcome::Responded { status: 500 }, true),
        (RequestOutcome::Responded { status: 504 }, false),
        (RequestOutcome::StillRunning, false),
        (RequestOutcome::Lost, false),
    ] {
        assert_eq!(outcome.is_answered(), is_answered, "{outcome:?}");
    }
    let settled = settled(Settled::Applied, StoredBody::Whole, Expiry::At(at(1)));
    for record in [settled, record(RecordPhase::Claimed { lease_until: at(-1) })] {
        let found = resolve(&record, Resolution::NothingDone, &policy, Timestamp::MAX);
        assert_eq!(found, Err(ResolveError::NotUnknown), "{record:?}");
    }
}

#[test]
fn a_takeover_keeps_the_moment_of_the_first_claim() {
    let policy = policy(OperationGuarantee::Keyed);
    let first = Record::claimed(SAME, fence(1), NOW, &policy);
    let expected = Record {
        fingerprint: SAME,
        fence: fence(1),
        first_claimed_at: NOW,
        claimed_at: NOW,
        answered_at: None,
        mode: OperationGuarantee::Keyed,
        phase: RecordPhase::Claimed { lease_until: NOW.plus(policy.lease()) },
    };
    assert_eq!(first, expected);
    // The upstream may have forgotten the key since the first claim, however late the second one was.
    let later = NOW.plus(limits::UPSTREAM_KEEPS_KEYS_DEFAULT);
    let second = Record { fence: fence(2), claimed_at: later, phase: RecordPhase::Unknown, ..first };
    assert_eq!(admit(Some(&second), SAME, &policy, later), Admission::Unknown);
    let from_now = Record { first_claimed_at: later, ..second };
    assert_eq!(admit(Some(&from_now), SAME, &policy, later), Admission::TakeOver { from: fence(2) });
}

#[test]
fn stricter_mode_of_the_claim_prevents_a_rerun() {
    use OperationGuarantee::{Keyed, None, Transactional};
    let later = NOW.plus(limits::UPSTREAM_KEEPS_KEYS_DEFAULT);
    let mut runs_again = Vec::new();
    for claimed in [Transactional, Keyed, None] {
        for today in [Transactional, Keyed, None] {
            let unknown = Record { mode: claimed, ..record(RecordPhase::Unknown) };
            let lapsed = Record { mode: claimed, ..record(RecordPhase::Claimed { lease_until: NOW }) };
            for now in [NOW, later] {
                let says = admit(Some(&unknown), SAME, &policy(today), now);
                if says == (Admission::TakeOver { from: fence(7) }) {
                    runs_again.push((claimed, today, now));
                } else {
                    assert_eq!(says, Admission::Unknown);
                }
                let says = admit(Some(&lapsed), SAME, &policy(today), now);
                let is_last = runs_again.last() == Some(&(claimed, today, now));
                assert_eq!(says == Admission::TakeOver { from: fence(7) }, is_last, "{claimed:?} {today:?}");
            }
        }
    }
    let keyed = [(Transactional, Keyed, NOW), (Keyed, Transactional, NOW), (Keyed, Keyed, NOW)];
    let always = [(Transactional, Transactional, NOW), (Transactional, Transactional, later)];
    assert_eq!(runs_again, [always.as_slice(), &keyed].concat());
}

#[test]
fn a_takeover_keeps_the_stricter_mode() {
    use OperationGuarantee::{Keyed, Transactional};
    for (claimed, today) in [(Keyed, Transactional), (Transactional, Keyed), (Keyed, Keyed)] {
        assert_eq!(claimed.stricter(today), Keyed, "{claimed:?} {today:?}");
    }
}

#[test]
fn settlement_decides_the_record_state() {
    for kept in [StoredBody::Whole, StoredBody::WithoutBody] {
        for outcome in [Settled::Applied, Settled::Refused] {
            let keep = Settlement::Keep { outcome, expires_at: at(5) };
            assert_eq!(
                keep.phase(kept),
                Some(RecordPhase::Settled { outcome, kept, expiry: Expiry::At(at(5)) })
            );
        }
        assert_eq!(Settlement::Hold.phase(kept), Some(RecordPhase::Unknown));
        assert_eq!(Settlement::Release.phase(kept), None, "the record goes away");
    }
}

#[test]
fn only_the_owner_settles_even_late() {
    let settled = settled(Settled::Applied, StoredBody::Whole, Expiry::At(at(1)));
    for (found, by, expected) in [
        (record(RecordPhase::Claimed { lease_until: at(1) }), 7, SettleRight::Owner),
        (record(RecordPhase::Claimed { lease_until: at(-1) }), 7, SettleRight::Owner),
        (record(RecordPhase::Unknown), 7, SettleRight::Owner),
        (settled, 7, SettleRight::AlreadySettled),
        (record(RecordPhase::Claimed { lease_until: at(1) }), 6, SettleRight::Stale),
        (record(RecordPhase::Unknown), 6, SettleRight::Stale),
        (settled, 6, SettleRight::Stale),
    ] {
        assert_eq!(may_settle(&found, fence(by)), expected, "{found:?} by {by}");
    }
}

#[test]
fn the_class_sets_the_defaults() {
    for (class, is_kept_a_day) in
        [(Class::Mutate, false), (Class::Irreversible, true), (Class::ExternalEffect, true)]
    {
        let policy = Policy::build(PolicyDraft::new(class)).unwrap();
        assert_eq!(
            (policy.guarantee(), policy.on_unknown()),
            (OperationGuarantee::None, OnUnknown::Hold),
            "{class:?}: unknown is never guessed"
        );
        assert_eq!(policy.ttl(), 72 * HOUR);
        assert_eq!(policy.key_need(), KeyNeed::Required);
        assert_eq!(policy.in_flight_wait(), Duration::from_secs(2));
        let short = Policy::build(PolicyDraft { ttl: Some(HOUR), ..PolicyDraft::new(class) });
        assert_eq!(short.is_err(), is_kept_a_day, "{class:?}");
    }
}

#[test]
fn repeatable_modes_rerun_by_default() {
    for mode in [OperationGuarantee::Transactional, OperationGuarantee::Idempotent, OperationGuarantee::Keyed]
    {
        assert_eq!(policy(mode).on_unknown(), OnUnknown::RunAgain, "{mode:?}");
    }
}

fn faults(draft: PolicyDraft) -> Vec<PolicyError> {
    Policy::build(draft).unwrap_err().to_vec()
}

#[test]
fn missing_key_is_refused_where_required() {
    let key = || Some(IdempotencyKey::parse("k").unwrap());
    let with_need =
        |need| Policy::build(PolicyDraft { key: Some(need), ..PolicyDraft::new(Class::Mutate) }).unwrap();
    assert_eq!(with_need(KeyNeed::Required).require(None), Err(KeyError::Missing));
    assert_eq!(with_need(KeyNeed::Required).require(key()), Ok(key()));
    assert_eq!(with_need(KeyNeed::Optional).require(None), Ok(None));
    assert_eq!(with_need(KeyNeed::Optional).require(key()), Ok(key()));
}

#[test]
fn reads_are_not_deduplicated() {
    assert_eq!(faults(PolicyDraft::new(Class::Read)), [PolicyError::ReadIsNotDeduplicated]);
}

#[test]
fn effect_keys_live_24_hours_unless_a_reason_is_given() {
    for class in [Class::Irreversible, Class::ExternalEffect] {
        let short = PolicyDraft { ttl: Some(23 * HOUR), ..PolicyDraft::new(class) };
        assert_eq!(faults(short.clone()), [PolicyError::TtlTooShort { ttl: 23 * HOUR }]);
        let blank = PolicyDraft { short_ttl_reason: Some("  ".into()), ..short.clone() };
        assert_eq!(faults(blank), [PolicyError::TtlTooShort { ttl: 23 * HOUR }]);
        let reasoned = PolicyDraft { short_ttl_reason: Some("the broker forgets at noon".into()), ..short };
        assert!(Policy::build(reasoned).is_ok());
        assert!(Policy::build(PolicyDraft { ttl: Some(24 * HOUR), ..PolicyDraft::new(class) }).is_ok());
    }
    assert!(Policy::build(PolicyDraft { ttl: Some(HOUR), ..PolicyDraft::new(Class::Mutate) }).is_ok());
}

#[test]
fn opaque_operation_cannot_be_set_to_rerun() {
    let draft =
        PolicyDraft { on_unknown: Some(OnUnknown::RunAgain), ..PolicyDraft::new(Class::ExternalEffect) };
    assert_eq!(faults(draft.clone()), [PolicyError::NoGuaranteeRunsAgain]);
    assert!(Policy::build(PolicyDraft { guarantee: Some(OperationGuarantee::Keyed), ..draft }).is_ok());
}

#[test]
fn key_outlives_every_retry() {
    let draft = PolicyDraft {
        ttl: Some(48 * HOUR),
        dedupe_window: Some(HOUR),
        retry_horizon: Some(49 * HOUR),
        ..PolicyDraft::new(Class::Mutate)
    };
    let shorter = |what, window| PolicyError::ShorterThanRetries { what, window, horizon: 49 * HOUR };
    assert_eq!(faults(draft.clone()), [shorter("ttl", 48 * HOUR), shorter("dedupe_window", HOUR)]);
    assert!(Policy::build(PolicyDraft { retry_horizon: Some(HOUR), ..draft }).is_ok());
}

#[test]
fn default_horizon_is_the_client_schedule() {
    // 3 calls of 30 s, and 2 waits of 10 minutes and a tenth.
    let horizon = Duration::from_secs(3 * 30 + 2 * 660);
    let with_ttl = |ttl| PolicyDraft { ttl: Some(ttl), ..PolicyDraft::new(Class::Mutate) };
    assert!(Policy::build(with_ttl(horizon)).is_ok());
    let window = Duration::from_secs(3 * 30 + 2 * 660 - 1);
    assert_eq!(faults(with_ttl(window)), [PolicyError::ShorterThanRetries { what: "ttl", window, horizon }]);
    let nobody = PolicyDraft { retry_horizon: Some(Duration::ZERO), ..with_ttl(window) };
    assert!(Policy::build(nobody).is_ok());
}

#[test]
fn a_transactional_operation_is_never_unknown() {
    let with = |mode, on_unknown| PolicyDraft {
        guarantee: Some(mode),
        on_unknown: Some(on_unknown),
        ..PolicyDraft::new(Class::Mutate)
    };
    for on_unknown in [OnUnknown::Hold, OnUnknown::Reconcile] {
        let draft = with(OperationGuarantee::Transactional, on_unknown);
        assert_eq!(faults(draft), [PolicyError::TransactionalIsNeverUnknown], "{on_unknown:?}");
        assert!(Policy::build(with(OperationGuarantee::Keyed, on_unknown)).is_ok());
    }
    assert!(Policy::build(with(OperationGuarantee::Transactional, OnUnknown::RunAgain)).is_ok());
}

#[test]
fn upstream_window_below_the_lease_is_not_keyed() {
    let lease = Duration::from_mins(1);
    let with = |mode, keeps_for| PolicyDraft {
        guarantee: Some(mode),
        lease: Some(lease),
        keeps_keys_for: Some(keeps_for),
        ..PolicyDraft::new(Class::ExternalEffect)
    };
    for keeps_for in [Duration::ZERO, Duration::from_secs(59)] {
        let expected = [PolicyError::UpstreamForgetsTooSoon { keeps_for, lease }];
        assert_eq!(faults(with(OperationGuarantee::Keyed, keeps_for)), expected);
        assert!(Policy::build(with(OperationGuarantee::None, keeps_for)).is_ok(), "it is not asked");
    }
    assert!(Policy::build(with(OperationGuarantee::Keyed, lease)).is_ok());
}

#[test]
fn numbers_out_of_bounds_are_all_reported_at_once() {
    let draft = PolicyDraft {
        ttl: Some(Duration::ZERO),
        in_flight_wait: Some(Duration::from_secs(61)),
        lease: Some(Duration::from_millis(999)),
        settle_grace: Some(169 * HOUR),
        retry_horizon: Some(Duration::ZERO),
        ..PolicyDraft::new(Class::Mutate)
    };
    let expected = [
        PolicyError::TtlOutOfRange { ttl: Duration::ZERO },
        PolicyError::InFlightWaitTooLong { wait: Duration::from_secs(61) },
        PolicyError::LeaseOutOfRange { lease: Duration::from_millis(999) },
        PolicyError::SettleGraceOutOfRange { settle_grace: 169 * HOUR },
    ];
    assert_eq!(faults(draft.clone()), expected);
    assert_eq!(faults(PolicyDraft { ttl: Some(Duration::MAX), ..draft.clone() }).len(), 4);
    assert_eq!(faults(PolicyDraft { settle_grace: Some(Duration::ZERO), ..draft }).len(), 4);
}

#[test]
fn errors_are_one_per_line_with_values() {
    let draft = PolicyDraft {
        lease: Some(Duration::from_millis(500)),
        in_flight_wait: Some(Duration::from_millis(60_500)),
        ..PolicyDraft::new(Class::Mutate)
    };
    let errors = Policy::build(draft).unwrap_err();
    assert_eq!(errors.len(), 2);
    assert_eq!(
        errors.to_string(),
        "a duplicate may wait at most 60s for the first request's outcome, but in_flight_wait is 60.5s\n\
         the lease must be between 1s and 3600s, but is 500ms"
    );
    let early = ResolveError::TooEarly { from: Timestamp::from_secs(1_800_000_000) };
    assert!(early.to_string().ends_with("only from 2027-01-15T08:00:00Z"), "{early}");
}

#[test]
fn profiles_differ_in_their_numbers() {
    let numbers = |profile: Profile| {
        let numbers = profile.numbers();
        (numbers.mismatch_status, numbers.in_flight_status, numbers.in_flight_wait.as_secs())
    };
    assert_eq!(numbers(Profile::Ichido), (409, 202, 2));
    assert_eq!(numbers(Profile::Ietf), (422, 409, 0));
    assert_eq!(numbers(Profile::Stripe), (400, 409, 0));
    for profile in [Profile::Ichido, Profile::Ietf, Profile::Stripe] {
        let numbers = profile.numbers();
        assert_eq!((numbers.unknown_status, numbers.not_kept_status), (409, 409), "{profile:?}");
    }
}

fn phases() -> impl Strategy<Value = RecordPhase> {
    let moment = || (-10_i64..10).prop_map(at);
    prop_oneof![
        moment().prop_map(|lease_until| RecordPhase::Claimed { lease_until }),
        Just(RecordPhase::Unknown),
        (any::<bool>(), any::<bool>(), proptest::option::of(moment())).prop_map(
            |(applied, whole, expires)| {
                RecordPhase::Settled {
                    outcome: if applied { Settled::Applied } else { Settled::Refused },
                    kept: if whole { StoredBody::Whole } else { StoredBody::WithoutBody },
                    expiry: expires.map_or(Expiry::HeldByMessage, Expiry::At),
                }
            }
        ),
    ]
}

proptest! {
    /// Work runs only if there is nothing, if a settled record expired, or if repeating is harmless.
    #[test]
    fn no_action_runs_twice_while_its_record_exists(phase in phases(), same in any::<bool>(), mode in 0_usize..3) {
        let policy = &modes()[mode];
        let found = record(phase);
        let print = if same { SAME } else { OTHER };
        match admit(Some(&found), print, policy, NOW) {
            Admission::Run { replaces } => {
                prop_assert_eq!(replaces, Some(found.fence));
                prop_assert!(may_sweep(&found, NOW));
            }
            Admission::TakeOver { .. } => {
                prop_assert!(same && policy.guarantee() != OperationGuarantee::None);
                let finished = matches!(phase, RecordPhase::Settled { .. });
                prop_assert!(!finished);
            }
            Admission::Replay | Admission::ReplayNotKept => prop_assert!(same),
            Admission::Mismatch => prop_assert!(!same),
            Admission::Wait { .. } | Admission::MarkUnknown { .. } | Admission::Unknown => prop_assert!(same),
        }
    }
}
