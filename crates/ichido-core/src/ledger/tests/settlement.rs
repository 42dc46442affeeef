//! What is stored about an outcome, and who may store it.

use super::*;

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
