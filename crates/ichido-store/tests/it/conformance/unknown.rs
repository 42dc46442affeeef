//! Actions of unknown outcome: listing them, and resolving them with a finding.
// SPEC F2.

use std::time::Duration;

use ichido_core::ledger::{OperationGuarantee, RecordName, RecordPhase, Resolution, ResolveError};
use ichido_store::error::StoreError;
use ichido_store::ledger::{
    ClaimOrigin, KeyClaim, KeyClaimed, KeyOutcome, KeyResolved, KeySettled, StoredResponse, UnknownCount,
    limits,
};

use super::ledger::{TTL, keep, name, policy, request, response};
use crate::both_databases;
use crate::fixture::{AFTER_LEASE, StoreFixture};

impl StoreFixture {
    /// Creates an action of unknown outcome.
    pub(crate) async fn unknown(&self, text: &str) -> ichido_core::fence::Fence {
        let fence = self.run(text, OperationGuarantee::None).await;
        assert_eq!(self.report(text, fence, KeyOutcome::Hold).await, KeySettled::Settled);
        fence
    }

    async fn decide(
        &self,
        text: &str,
        resolution: Resolution,
        response: Option<StoredResponse>,
    ) -> KeyResolved {
        let policy = policy(OperationGuarantee::None);
        self.store.keys().resolve(&name(text), resolution, response, &policy).await.expect("an answer")
    }
}

both_databases! {
    #[test]
    async fn unknown_outcomes_are_listed_oldest_first_page_by_page(fixture: StoreFixture) {
        let keys: Vec<String> = (0..5).map(|number| format!("k{number}")).collect();
        for key in &keys {
            fixture.unknown(key).await;
            fixture.pass(Duration::from_secs(1));
        }
        fixture.settled("done", OperationGuarantee::None, b"done").await;
        fixture.run("running", OperationGuarantee::None).await;
        let mut after = None;
        let mut listed = Vec::new();
        loop {
            let page = fixture.store.keys().list_unknown(after, 2).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some((last.record.first_claimed_at, last.name.hash()));
            assert!(page.len() <= 2);
            listed.extend(page.into_iter().map(|record| record.name.key.as_str().to_owned()));
        }
        assert_eq!(listed, keys);
    }

    /// An answered call is not in transit; a lost one may be.
    #[test]
    async fn answered_outcome_is_resolved_without_waiting(fixture: StoreFixture) {
        fixture.unknown("lost").await;
        let fence = fixture.run("answered", OperationGuarantee::None).await;
        assert_eq!(fixture.report("answered", fence, KeyOutcome::HoldAnswered).await, KeySettled::Settled);
        let found = fixture.store.keys().get(&name("answered")).await.unwrap().unwrap();
        assert_eq!((found.record.phase, found.completed_at), (RecordPhase::Unknown, None));
        assert!(found.record.answered_at.is_some_and(|at| found.record.claimed_at <= at), "{found:?}");
        let lost = fixture.decide("lost", Resolution::NothingDone, None).await;
        assert!(matches!(lost, KeyResolved::Refused(ResolveError::TooEarly { .. })), "{lost:?}");
        let found = fixture.decide("answered", Resolution::NothingDone, None).await;
        assert!(matches!(found, KeyResolved::Refused(ResolveError::TooEarly { .. })), "a look-up waits: {found:?}");
        let policy = policy(OperationGuarantee::None);
        let person = fixture.store.keys().decide(&name("answered"), Resolution::NothingDone, None, &policy, "olivia").await;
        assert_eq!(person.unwrap(), KeyResolved::Resolved);
        assert_eq!(fixture.phase("answered").await, None);
    }

    /// A crash leaves a claim, and its client may never return.
    #[test]
    async fn expired_claim_is_marked_without_a_new_request(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let ours = ["orders.create".to_owned()];
        let mut fences = Vec::new();
        for key in ["k1", "k2", "k3"] {
            fences.push(fixture.run(key, OperationGuarantee::None).await);
        }
        fixture.settled("done", OperationGuarantee::None, b"done").await;
        assert_eq!(fixture.store.keys().mark_lapsed_unknown(&ours, 10).await.unwrap(), 0, "they may still be at it");
        fixture.pass(AFTER_LEASE);
        other.advance_clock(AFTER_LEASE);
        fixture.run("running", OperationGuarantee::None).await;
        assert_eq!(other.keys().mark_lapsed_unknown(&["orders.cancel".to_owned()], 10).await.unwrap(), 0);
        assert_eq!(other.keys().mark_lapsed_unknown(&[], 10).await.unwrap(), 0);
        assert_eq!(other.keys().mark_lapsed_unknown(&ours, 2).await.unwrap(), 2, "a bounded number at a time");
        assert_eq!(fixture.store.keys().mark_lapsed_unknown(&ours, 2).await.unwrap(), 1);
        assert_eq!(fixture.store.keys().mark_lapsed_unknown(&ours, 2).await.unwrap(), 0);
        assert_eq!(fixture.store.keys().list_unknown(None, 10).await.unwrap().len(), 3);
        // The report of an owner that was only late still counts.
        assert_eq!(fixture.report("k1", fences[0], keep(response(b"late"))).await, KeySettled::Settled);
        assert_eq!(fixture.decide("k2", Resolution::Applied, None).await, KeyResolved::Resolved);
        let next = fixture.arrive(request("k3", OperationGuarantee::None)).await;
        assert_eq!(next, KeyClaimed::Unknown { fence: fences[2] });
    }

    #[test]
    async fn keys_of_unknown_outcome_are_counted_by_operation(fixture: StoreFixture) {
        let count = async || fixture.store.keys().count_unknown(fixture.store.now().await.unwrap()).await.unwrap();
        assert_eq!(count().await, []);
        fixture.unknown("k1").await;
        fixture.pass(Duration::from_mins(1));
        fixture.unknown("k2").await;
        fixture.run("running", OperationGuarantee::None).await;
        fixture.settled("done", OperationGuarantee::None, b"done").await;
        let oldest = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap().record.first_claimed_at;
        let held = |count| [UnknownCount { operation: "orders.create".to_owned(), count, oldest }];
        assert_eq!(count().await, held(2));
        // The caller of a keyed operation retries: it waits for a person only if nobody asks again.
        let fence = fixture.run("keyed", OperationGuarantee::Keyed).await;
        let _ = fixture.report("keyed", fence, KeyOutcome::Hold).await;
        assert_eq!(count().await, held(2));
        fixture.pass(limits::RETRIED_WITHIN + Duration::from_secs(1));
        assert_eq!(count().await, held(3));
        for key in ["k1", "k2"] {
            let _ = fixture.decide(key, Resolution::Applied, None).await;
        }
        assert_eq!(count().await.iter().map(|found| found.count).collect::<Vec<_>>(), [1]);
    }

    #[test]
    async fn decision_done_counts_at_once(fixture: StoreFixture) {
        fixture.unknown("k1").await;
        let decided = fixture.decide("k1", Resolution::Applied, Some(response(b"found"))).await;
        assert_eq!(decided, KeyResolved::Resolved);
        let next = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert_eq!(next, KeyClaimed::Replay(response(b"found")));
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        let RecordPhase::Settled { expiry, .. } = found.record.phase else { panic!("{found:?}") };
        let expires = found.completed_at.unwrap().plus(TTL);
        assert_eq!(expiry, ichido_core::ledger::Expiry::At(expires));
    }

    #[test]
    async fn decision_without_response_is_reported_and_not_run(fixture: StoreFixture) {
        fixture.unknown("k1").await;
        assert_eq!(fixture.decide("k1", Resolution::Refused, None).await, KeyResolved::Resolved);
        let next = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert_eq!(next, KeyClaimed::ReplayNotStored { status: 400 });
    }

    #[test]
    async fn decision_not_done_waits_until_the_call_ended(fixture: StoreFixture) {
        fixture.unknown("k1").await;
        let early = fixture.decide("k1", Resolution::NothingDone, None).await;
        let KeyResolved::Refused(ResolveError::TooEarly { from }) = early else { panic!("{early:?}") };
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        let settle_grace = policy(OperationGuarantee::None).settle_grace();
        assert_eq!(from, found.record.claimed_at.plus(settle_grace));
        assert_eq!(found.record.phase, RecordPhase::Unknown);
        fixture.pass(settle_grace);
        assert_eq!(fixture.decide("k1", Resolution::NothingDone, None).await, KeyResolved::Resolved);
        fixture.run("k1", OperationGuarantee::None).await;
    }

    #[test]
    async fn known_or_missing_outcome_is_not_decided(fixture: StoreFixture) {
        assert_eq!(fixture.decide("k1", Resolution::Applied, None).await, KeyResolved::Missing);
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let refused = KeyResolved::Refused(ResolveError::NotUnknown);
        assert_eq!(fixture.decide("k1", Resolution::Applied, None).await, refused, "in flight");
        let _ = fixture.report("k1", fence, keep(response(b"done"))).await;
        assert_eq!(fixture.decide("k1", Resolution::NothingDone, None).await, refused, "settled");
        let next = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert_eq!(next, KeyClaimed::Replay(response(b"done")));
    }

    #[test]
    async fn late_owner_report_counts_only_before_a_decision(fixture: StoreFixture) {
        let first = fixture.unknown("k1").await;
        assert_eq!(fixture.report("k1", first, keep(response(b"late"))).await, KeySettled::Settled);
        let refused = KeyResolved::Refused(ResolveError::NotUnknown);
        assert_eq!(fixture.decide("k1", Resolution::Refused, None).await, refused);
        let second = fixture.unknown("k2").await;
        let _ = fixture.decide("k2", Resolution::Applied, Some(response(b"found"))).await;
        assert_eq!(fixture.report("k2", second, keep(response(b"late"))).await, KeySettled::AlreadySettled);
        let next = fixture.arrive(request("k2", OperationGuarantee::None)).await;
        assert_eq!(next, KeyClaimed::Replay(response(b"found")));
    }

    #[test]
    async fn a_claim_says_what_it_found_under_its_key(fixture: StoreFixture) {
        let began = async |text: &str| match fixture.arrive(request(text, OperationGuarantee::Keyed)).await {
            KeyClaimed::Run { began, .. } => began,
            other => panic!("{other:?}"),
        };
        assert_eq!(began("k1").await, ClaimOrigin::New);
        fixture.pass(AFTER_LEASE);
        assert_eq!(began("k1").await, ClaimOrigin::TakenOver { from: OperationGuarantee::Keyed });
        fixture.settled("k2", OperationGuarantee::Keyed, b"done").await;
        fixture.pass(TTL);
        assert_eq!(began("k2").await, ClaimOrigin::Expired);
    }

    /// A deploy may change an operation's mode; what was lost before it was lost under the old one.
    #[test]
    async fn outcome_lost_under_a_stricter_mode_follows_that_mode(fixture: StoreFixture) {
        let held = fixture.unknown("held").await;
        let lapsed = fixture.run("lapsed", OperationGuarantee::None).await;
        fixture.pass(AFTER_LEASE);
        for today in [OperationGuarantee::Keyed, OperationGuarantee::Transactional, OperationGuarantee::None] {
            for (key, fence) in [("held", held), ("lapsed", lapsed)] {
                let next = fixture.arrive(request(key, today)).await;
                assert_eq!(next, KeyClaimed::Unknown { fence }, "{key} {today:?}");
                let found = fixture.store.keys().get(&name(key)).await.unwrap().unwrap().record;
                assert_eq!((found.mode, found.phase), (OperationGuarantee::None, RecordPhase::Unknown));
            }
        }
        let listed = fixture.store.keys().list_unknown(None, 10).await.unwrap();
        assert_eq!(listed.iter().map(|key| key.record.mode).collect::<Vec<_>>(), [OperationGuarantee::None; 2]);
    }

    #[test]
    async fn a_takeover_remembers_the_stricter_mode_and_a_new_action_its_own(fixture: StoreFixture) {
        let mode = async || fixture.store.keys().get(&name("k1")).await.unwrap().unwrap().record.mode;
        fixture.run("k1", OperationGuarantee::Transactional).await;
        assert_eq!(mode().await, OperationGuarantee::Transactional);
        let runs = [
            (OperationGuarantee::Keyed, OperationGuarantee::Transactional),
            (OperationGuarantee::Transactional, OperationGuarantee::Keyed),
            (OperationGuarantee::Transactional, OperationGuarantee::Keyed),
        ];
        let mut fence = None;
        for (today, from) in runs {
            fixture.pass(AFTER_LEASE);
            let next = fixture.arrive(request("k1", today)).await;
            let KeyClaimed::Run { fence: claimed, began } = next else { panic!("{next:?}") };
            assert_eq!(began, ClaimOrigin::TakenOver { from });
            assert_eq!(mode().await, OperationGuarantee::Keyed);
            fence = Some(claimed);
        }
        assert_eq!(fixture.report("k1", fence.unwrap(), keep(response(b"done"))).await, KeySettled::Settled);
        fixture.pass(TTL);
        fixture.run("k1", OperationGuarantee::Transactional).await;
        assert_eq!(mode().await, OperationGuarantee::Transactional);
    }

    #[test]
    async fn hops_and_trace_are_kept_with_the_last_claim(fixture: StoreFixture) {
        let along = |hops: &str| KeyClaim {
            hops: Some(hops.to_owned()),
            trace: Some("00-7f".to_owned()),
            ..request("k1", OperationGuarantee::Keyed)
        };
        let _ = fixture.arrive(along("bff")).await;
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        assert_eq!((found.hops.as_deref(), found.trace.as_deref()), (Some("bff"), Some("00-7f")));
        fixture.pass(AFTER_LEASE);
        let _ = fixture.arrive(along("bff, gateway")).await;
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        assert_eq!(found.hops.as_deref(), Some("bff, gateway"));
    }

    #[test]
    async fn oversized_record_is_refused_alone(fixture: StoreFixture) {
        let claim = || request("k1", OperationGuarantee::None);
        let long = |bytes: usize| Some("h".repeat(bytes));
        for claim in [
            KeyClaim { hops: long(limits::MAX_HOPS_BYTES + 1), ..claim() },
            KeyClaim { trace: long(limits::MAX_TRACE_BYTES + 1), ..claim() },
        ] {
            let refused = fixture.store.keys().claim(claim).await;
            assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
        }
        let nul = || Some("a\0b".to_owned());
        let named = |operation: &str, identity: &str| {
            let (operation, identity) = (operation.to_owned(), identity.to_owned());
            KeyClaim { name: RecordName { operation, identity, ..name("k1") }, ..claim() }
        };
        for claim in
            [named("a\0b", "alice"), named("orders", "a\0b"), KeyClaim { hops: nul(), ..claim() }, KeyClaim { trace: nul(), ..claim() }]
        {
            let refused = fixture.store.keys().claim(claim).await;
            assert!(matches!(refused, Err(StoreError::NulInText { .. })), "{refused:?}");
        }
        let whole = KeyClaim { hops: long(limits::MAX_HOPS_BYTES), ..claim() };
        let claimed = fixture.arrive(whole).await;
        assert!(matches!(claimed, KeyClaimed::Run { .. }), "{claimed:?}");
    }
}
