//! Which requests run.

use proptest::prelude::*;

use super::*;
use crate::clock::Now;

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
