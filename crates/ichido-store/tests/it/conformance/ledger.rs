//! The ledger: a request arrives under a key, and runs once.
// SPEC A2 to A6, C3, C5, C6, D10.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{
    Class, Expiry, OnUnknown, OperationGuarantee, Policy, PolicyDraft, RecordName, RecordPhase, Settled,
    StoredBody,
};
use ichido_core::lifecycle::Event;
use ichido_core::verdict::Effect;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, KeySettled, StoredResponse};
use ichido_store::message::StepResult;
use ichido_store::testing::while_busy;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{AFTER_LEASE, DAY, LEASE, StoreFixture, key};

pub(crate) const TTL: Duration = Duration::from_hours(72);

pub(crate) fn policy(mode: OperationGuarantee) -> Arc<Policy> {
    let draft = PolicyDraft { guarantee: Some(mode), lease: Some(LEASE), ..PolicyDraft::new(Class::Mutate) };
    Arc::new(Policy::build(draft).expect("a policy"))
}

pub(crate) fn name(text: &str) -> RecordName {
    RecordName { operation: "orders.create".to_owned(), identity: "alice".to_owned(), key: key(text) }
}

pub(crate) fn print(body: &str) -> Fingerprint {
    Fingerprint::from_bytes(*Digest::of_bytes(body.as_bytes()).as_bytes())
}

/// A request with the body `10 EUR`.
pub(crate) fn request(text: &str, mode: OperationGuarantee) -> KeyClaim {
    KeyClaim {
        name: name(text),
        fingerprint: print("10 EUR"),
        request_digest: Digest::of_bytes(b"10 EUR"),
        policy: policy(mode),
        hops: None,
        trace: None,
    }
}

pub(crate) fn response(body: &[u8]) -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("content-type".to_owned(), b"text/plain".to_vec())],
        body: Some(body.to_vec()),
    }
}

pub(crate) fn keep(response: StoredResponse) -> KeyOutcome {
    KeyOutcome::Keep { settled: Settled::Applied, response, result_digest: None, message_id: None, ttl: TTL }
}

fn keep_with(body: &[u8], message_id: Uuid) -> KeyOutcome {
    KeyOutcome::Keep {
        settled: Settled::Applied,
        response: response(body),
        result_digest: None,
        message_id: Some(message_id),
        ttl: TTL,
    }
}

impl StoreFixture {
    pub(crate) async fn arrive(&self, claim: KeyClaim) -> KeyClaimed {
        self.store.keys().claim(claim).await.expect("an answer")
    }

    /// Claims a free key.
    pub(crate) async fn run(&self, text: &str, mode: OperationGuarantee) -> Fence {
        match self.arrive(request(text, mode)).await {
            KeyClaimed::Run { fence, .. } => fence,
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) async fn report(&self, text: &str, fence: Fence, outcome: KeyOutcome) -> KeySettled {
        self.store.keys().settle(KeySettle { name: name(text), fence, outcome }).await.expect("an answer")
    }

    pub(crate) async fn settled(&self, text: &str, mode: OperationGuarantee, body: &[u8]) -> Fence {
        let fence = self.run(text, mode).await;
        assert_eq!(self.report(text, fence, keep(response(body))).await, KeySettled::Settled);
        fence
    }

    pub(crate) async fn phase(&self, text: &str) -> Option<RecordPhase> {
        self.store.keys().get(&name(text)).await.expect("an answer").map(|found| found.record.phase)
    }

    async fn sweep(&self) -> u64 {
        self.store.keys().sweep(100).await.expect("an answer")
    }
}

both_databases! {
    #[test]
    async fn a_first_arrival_runs(fixture: StoreFixture) {
        let claimed = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert!(matches!(claimed, KeyClaimed::Run { .. }), "{claimed:?}");
    }

    #[test]
    async fn a_second_arrival_sees_it_in_flight(fixture: StoreFixture) {
        fixture.run("k1", OperationGuarantee::None).await;
        let second = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        let KeyClaimed::InFlight { lease_until } = second else { panic!("{second:?}") };
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        assert_eq!(found.record.phase, RecordPhase::Claimed { lease_until });
        assert_eq!(lease_until.since(found.record.claimed_at), LEASE);
    }

    #[test]
    async fn another_request_under_the_key_is_a_mismatch_before_it_is_in_flight(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let other = || KeyClaim { fingerprint: print("99 EUR"), ..request("k1", OperationGuarantee::None) };
        assert_eq!(fixture.arrive(other()).await, KeyClaimed::Conflict);
        let _ = fixture.report("k1", fence, KeyOutcome::Hold).await;
        assert_eq!(fixture.arrive(other()).await, KeyClaimed::Conflict, "unknown");
        let _ = fixture.report("k1", fence, keep(response(b"secret"))).await;
        assert_eq!(fixture.arrive(other()).await, KeyClaimed::Conflict, "settled");
    }

    #[test]
    async fn a_mismatch_leaves_the_owner_alone(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::Keyed).await;
        fixture.pass(AFTER_LEASE);
        let other = KeyClaim { fingerprint: print("99 EUR"), ..request("k1", OperationGuarantee::Keyed) };
        assert_eq!(fixture.arrive(other).await, KeyClaimed::Conflict);
        assert_eq!(fixture.report("k1", fence, keep(response(b"ok"))).await, KeySettled::Settled);
    }

    #[test]
    async fn a_replay_is_the_response_byte_for_byte(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let response = StoredResponse {
            status: 404,
            headers: vec![
                ("link".to_owned(), b"</a>".to_vec()),
                ("x-raw".to_owned(), vec![0, 0xff, b'\t']),
                ("link".to_owned(), b"</b>".to_vec()),
                ("x-empty".to_owned(), Vec::new()),
            ],
            body: Some(vec![0, 0xff, 0xfe, b'\n', 0]),
        };
        assert_eq!(fixture.report("k1", fence, keep(response.clone())).await, KeySettled::Settled);
        for _ in 0..2 {
            assert_eq!(
                fixture.arrive(request("k1", OperationGuarantee::None)).await,
                KeyClaimed::Replay(response.clone())
            );
        }
    }

    #[test]
    async fn an_empty_body_is_a_body(fixture: StoreFixture) {
        fixture.settled("k1", OperationGuarantee::None, b"").await;
        assert_eq!(
            fixture.arrive(request("k1", OperationGuarantee::None)).await,
            KeyClaimed::Replay(response(b""))
        );
    }

    #[test]
    async fn a_body_of_a_mebibyte_is_replayed(fixture: StoreFixture) {
        let body: Vec<u8> = (0..1 << 20).map(|index: u32| index.to_be_bytes()[3]).collect();
        fixture.settled("k1", OperationGuarantee::None, &body).await;
        assert_eq!(
            fixture.arrive(request("k1", OperationGuarantee::None)).await,
            KeyClaimed::Replay(response(&body))
        );
    }

    #[test]
    async fn response_without_body_is_reported_and_never_rerun(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::Keyed).await;
        let outcome = keep(StoredResponse { body: None, ..response(b"") });
        assert_eq!(fixture.report("k1", fence, outcome).await, KeySettled::Settled);
        let again = fixture.arrive(request("k1", OperationGuarantee::Keyed)).await;
        assert_eq!(again, KeyClaimed::ReplayNotStored { status: 201 });
    }

    #[test]
    async fn a_refusal_is_replayed_too(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let refused = StoredResponse { status: 422, ..response(b"no") };
        let outcome = KeyOutcome::Keep {
            settled: Settled::Refused,
            response: refused.clone(),
            result_digest: None,
            message_id: None,
            ttl: TTL,
        };
        let _ = fixture.report("k1", fence, outcome).await;
        assert_eq!(fixture.arrive(request("k1", OperationGuarantee::None)).await, KeyClaimed::Replay(refused));
        let phase = fixture.phase("k1").await;
        assert!(matches!(phase, Some(RecordPhase::Settled { outcome: Settled::Refused, .. })), "{phase:?}");
    }

    #[test]
    async fn a_released_key_is_free_even_for_another_request(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        assert_eq!(fixture.report("k1", fence, KeyOutcome::Release).await, KeySettled::Settled);
        assert_eq!(fixture.phase("k1").await, None);
        let other = KeyClaim { fingerprint: print("99 EUR"), ..request("k1", OperationGuarantee::None) };
        let claimed = fixture.arrive(other).await;
        assert!(matches!(claimed, KeyClaimed::Run { fence: next, .. } if fence < next), "{claimed:?}");
    }

    #[test]
    async fn a_held_opaque_key_is_unknown(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        assert_eq!(fixture.report("k1", fence, KeyOutcome::Hold).await, KeySettled::Settled);
        assert_eq!(fixture.arrive(request("k1", OperationGuarantee::None)).await, KeyClaimed::Unknown { fence });
        assert_eq!(fixture.phase("k1").await, Some(RecordPhase::Unknown));
    }

    #[test]
    async fn a_held_keyed_key_is_taken_over(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::Keyed).await;
        let _ = fixture.report("k1", fence, KeyOutcome::Hold).await;
        let claimed = fixture.arrive(request("k1", OperationGuarantee::Keyed)).await;
        assert!(matches!(claimed, KeyClaimed::Run { fence: next, .. } if fence < next), "{claimed:?}");
    }

    #[test]
    async fn a_keyed_operation_that_reconciles_is_not_taken_over(fixture: StoreFixture) {
        let draft = PolicyDraft {
            guarantee: Some(OperationGuarantee::Keyed),
            on_unknown: Some(OnUnknown::Reconcile),
            lease: Some(LEASE),
            ..PolicyDraft::new(Class::Mutate)
        };
        let policy = Arc::new(Policy::build(draft).unwrap());
        let asked = || KeyClaim { policy: Arc::clone(&policy), ..request("k1", OperationGuarantee::Keyed) };
        let KeyClaimed::Run { fence, .. } = fixture.arrive(asked()).await else { panic!("not run") };
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.arrive(asked()).await, KeyClaimed::Unknown { fence });
    }

    #[test]
    async fn lapsed_claim_is_taken_over_if_rerun_is_harmless(fixture: StoreFixture) {
        for (text, mode) in [("k1", OperationGuarantee::Transactional), ("k2", OperationGuarantee::Keyed)] {
            let fence = fixture.run(text, mode).await;
            fixture.pass(AFTER_LEASE);
            let claimed = fixture.arrive(request(text, mode)).await;
            assert!(
                matches!(claimed, KeyClaimed::Run { fence: next, .. } if fence < next),
                "{mode:?}: {claimed:?}"
            );
            let second = fixture.arrive(request(text, mode)).await;
            assert!(matches!(second, KeyClaimed::InFlight { .. }), "{mode:?}: {second:?}");
        }
    }

    #[test]
    async fn a_lapsed_opaque_claim_is_marked_unknown_and_keeps_its_fence(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        fixture.pass(AFTER_LEASE);
        for _ in 0..2 {
            assert_eq!(
                fixture.arrive(request("k1", OperationGuarantee::None)).await,
                KeyClaimed::Unknown { fence }
            );
        }
        assert_eq!(fixture.phase("k1").await, Some(RecordPhase::Unknown));
    }

    #[test]
    async fn a_claim_does_not_lapse_before_its_time(fixture: StoreFixture) {
        fixture.run("k1", OperationGuarantee::Transactional).await;
        fixture.pass(LEASE.checked_sub(Duration::from_secs(5)).unwrap());
        let second = fixture.arrive(request("k1", OperationGuarantee::Transactional)).await;
        assert!(matches!(second, KeyClaimed::InFlight { .. }), "{second:?}");
    }

    #[test]
    async fn a_renewed_claim_does_not_lapse(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::Keyed).await;
        for _ in 0..3 {
            fixture.pass(Duration::from_secs(20));
            let stands = fixture.store.keys().renew(&[(name("k1"), fence, LEASE)]).await.unwrap();
            assert_eq!(stands, [true]);
        }
        let second = fixture.arrive(request("k1", OperationGuarantee::Keyed)).await;
        assert!(matches!(second, KeyClaimed::InFlight { .. }), "{second:?}");
    }

    #[test]
    async fn only_the_owner_of_a_live_claim_renews_it(fixture: StoreFixture) {
        let stale = fixture.run("k1", OperationGuarantee::Keyed).await;
        fixture.pass(AFTER_LEASE);
        let owner = fixture.run("k1", OperationGuarantee::Keyed).await;
        let done = fixture.settled("k2", OperationGuarantee::Keyed, b"ok").await;
        let claims = [
            (name("k1"), stale, LEASE),
            (name("k1"), owner, LEASE),
            (name("k2"), done, LEASE),
            (name("nobody"), owner, LEASE),
        ];
        assert_eq!(fixture.store.keys().renew(&claims).await.unwrap(), [false, true, false, false]);
    }

    #[test]
    async fn a_stale_owner_changes_nothing(fixture: StoreFixture) {
        let stale = fixture.run("k1", OperationGuarantee::Keyed).await;
        fixture.pass(AFTER_LEASE);
        let owner = fixture.run("k1", OperationGuarantee::Keyed).await;
        for outcome in [keep(response(b"stale")), KeyOutcome::Release, KeyOutcome::Hold] {
            assert_eq!(fixture.report("k1", stale, outcome).await, KeySettled::Stale);
        }
        let phase = fixture.phase("k1").await;
        assert!(matches!(phase, Some(RecordPhase::Claimed { .. })), "{phase:?}");
        assert_eq!(fixture.report("k1", owner, keep(response(b"fresh"))).await, KeySettled::Settled);
        assert_eq!(fixture.report("k1", stale, keep(response(b"stale"))).await, KeySettled::Stale);
        let replay = fixture.arrive(request("k1", OperationGuarantee::Keyed)).await;
        assert_eq!(replay, KeyClaimed::Replay(response(b"fresh")));
    }

    #[test]
    async fn owners_late_settle_of_an_unknown_record_is_accepted(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.arrive(request("k1", OperationGuarantee::None)).await, KeyClaimed::Unknown { fence });
        assert_eq!(fixture.report("k1", fence, keep(response(b"late"))).await, KeySettled::Settled);
        let replay = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert_eq!(replay, KeyClaimed::Replay(response(b"late")));
    }

    #[test]
    async fn an_unknown_record_is_released_once_it_is_known_that_nothing_was_done(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let _ = fixture.report("k1", fence, KeyOutcome::Hold).await;
        assert_eq!(fixture.report("k1", fence, KeyOutcome::Release).await, KeySettled::Settled);
        fixture.run("k1", OperationGuarantee::None).await;
    }

    #[test]
    async fn settling_twice_changes_nothing_the_second_time(fixture: StoreFixture) {
        let fence = fixture.settled("k1", OperationGuarantee::None, b"first").await;
        for outcome in [keep(response(b"second")), KeyOutcome::Release, KeyOutcome::Hold] {
            assert_eq!(fixture.report("k1", fence, outcome).await, KeySettled::AlreadySettled);
        }
        let replay = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert_eq!(replay, KeyClaimed::Replay(response(b"first")));
    }

    #[test]
    async fn a_key_that_was_never_claimed_cannot_be_settled(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        assert_eq!(fixture.report("other", fence, keep(response(b"?"))).await, KeySettled::Stale);
        assert_eq!(fixture.phase("other").await, None);
    }

    #[test]
    async fn an_expired_key_counts_as_new_even_for_another_request(fixture: StoreFixture) {
        let fence = fixture.settled("k1", OperationGuarantee::None, b"old").await;
        fixture.pass(TTL);
        let other = KeyClaim {
            fingerprint: print("99 EUR"),
            request_digest: Digest::of_bytes(b"99 EUR"),
            ..request("k1", OperationGuarantee::None)
        };
        let KeyClaimed::Run { fence: next, .. } = fixture.arrive(other).await else { panic!("not run") };
        assert!(fence < next);
        assert_eq!(fixture.report("k1", fence, keep(response(b"old"))).await, KeySettled::Stale);
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        assert_eq!((found.record.fence, found.record.fingerprint), (next, print("99 EUR")));
        assert_eq!(found.request_digest, Digest::of_bytes(b"99 EUR"));
        assert_eq!((found.response, found.completed_at), (None, None));
        assert_eq!(found.record.first_claimed_at, found.record.claimed_at, "it starts again");
    }

    #[test]
    async fn a_stored_response_is_kept_for_its_whole_time(fixture: StoreFixture) {
        fixture.settled("k1", OperationGuarantee::None, b"kept").await;
        fixture.pass(TTL.checked_sub(Duration::from_mins(1)).unwrap());
        assert_eq!(fixture.sweep().await, 0);
        let replay = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert_eq!(replay, KeyClaimed::Replay(response(b"kept")));
    }

    #[test]
    async fn sweep_deletes_only_expired_keys(fixture: StoreFixture) {
        fixture.settled("old", OperationGuarantee::None, b"old").await;
        let claimed = fixture.run("claimed", OperationGuarantee::None).await;
        let unknown = fixture.run("unknown", OperationGuarantee::None).await;
        let _ = fixture.report("unknown", unknown, KeyOutcome::Hold).await;
        fixture.pass(TTL);
        fixture.settled("new", OperationGuarantee::None, b"new").await;
        assert_eq!(fixture.sweep().await, 1);
        assert_eq!(fixture.sweep().await, 0);
        assert_eq!(fixture.phase("old").await, None);
        for text in ["claimed", "unknown", "new"] {
            assert!(fixture.phase(text).await.is_some(), "{text}");
        }
        assert_eq!(fixture.report("claimed", claimed, keep(response(b"late"))).await, KeySettled::Settled);
    }

    #[test]
    async fn sweep_respects_its_limit(fixture: StoreFixture) {
        for number in 0..5 {
            fixture.settled(&format!("k{number}"), OperationGuarantee::None, b"old").await;
        }
        fixture.pass(TTL);
        let mut swept = Vec::new();
        for _ in 0..4 {
            swept.push(fixture.store.keys().sweep(2).await.unwrap());
        }
        assert_eq!(swept, [2, 2, 1, 0]);
    }

    #[test]
    async fn a_key_is_kept_while_its_message_is_not_finished(fixture: StoreFixture) {
        let id = fixture.enqueue("m1").await;
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let _ = fixture.report("k1", fence, keep_with(b"queued", id)).await;
        fixture.pass(TTL);
        assert_eq!(fixture.sweep().await, 0);
        let replay = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert_eq!(replay, KeyClaimed::Replay(response(b"queued")), "waiting");
        let phase = fixture.phase("k1").await;
        let held =
            RecordPhase::Settled { outcome: Settled::Applied, kept: StoredBody::Whole, expiry: Expiry::HeldByMessage };
        assert_eq!(phase, Some(held));
        let work = fixture.claim_one().await;
        fixture.send(&work).await;
        fixture.pass(DAY);
        assert_eq!(fixture.sweep().await, 1);
    }

    #[test]
    async fn sweep_continues_behind_keys_that_messages_use(fixture: StoreFixture) {
        for number in 0..5 {
            let id = fixture.enqueue(&format!("m{number}")).await;
            let used = format!("used{number}");
            let fence = fixture.run(&used, OperationGuarantee::None).await;
            let _ = fixture.report(&used, fence, keep_with(b"queued", id)).await;
        }
        fixture.settled("old", OperationGuarantee::None, b"old").await;
        fixture.pass(TTL);
        assert_eq!(fixture.store.keys().sweep(2).await.unwrap(), 1);
        assert_eq!(fixture.phase("old").await, None);
        assert!(fixture.phase("used0").await.is_some());
    }

    #[test]
    async fn a_key_is_kept_while_its_message_is_dead_and_may_be_requeued(fixture: StoreFixture) {
        let id = fixture.dead("m1", Effect::NotDone).await;
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let _ = fixture.report("k1", fence, keep_with(b"queued", id)).await;
        fixture.pass(TTL);
        assert_eq!(fixture.sweep().await, 0);
        assert!(fixture.phase("k1").await.is_some());
    }

    #[test]
    async fn key_of_a_cancelled_message_expires(fixture: StoreFixture) {
        let id = fixture.enqueue("m1").await;
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let _ = fixture.report("k1", fence, keep_with(b"queued", id)).await;
        let cancelled = fixture.step(id, Event::Cancelled).await;
        assert!(matches!(cancelled, StepResult::Now(_)), "{cancelled:?}");
        fixture.pass(TTL);
        assert_eq!(fixture.sweep().await, 1);
    }

    #[test]
    async fn the_same_key_under_another_operation_or_identity_is_another_action(fixture: StoreFixture) {
        fixture.settled("k1", OperationGuarantee::None, b"alice's").await;
        let of = |operation: &str, identity: &str| KeyClaim {
            name: RecordName {
                operation: operation.to_owned(),
                identity: identity.to_owned(),
                key: key("k1"),
            },
            ..request("k1", OperationGuarantee::None)
        };
        for (operation, identity) in
            [("orders.create", "bob"), ("orders.cancel", "alice"), ("orders.createalic", "e")]
        {
            let claimed = fixture.arrive(of(operation, identity)).await;
            assert!(matches!(claimed, KeyClaimed::Run { .. }), "{operation} {identity}: {claimed:?}");
        }
    }

    #[test]
    async fn keyed_action_is_unknown_after_upstream_drops_the_key(fixture: StoreFixture) {
        let first = fixture.run("k1", OperationGuarantee::Keyed).await;
        fixture.pass(Duration::from_hours(23));
        let second = fixture.run("k1", OperationGuarantee::Keyed).await;
        assert!(first < second);
        fixture.pass(Duration::from_hours(2));
        let third = fixture.arrive(request("k1", OperationGuarantee::Keyed)).await;
        assert_eq!(third, KeyClaimed::Unknown { fence: second }, "the day counts from the first claim");
    }

    #[test]
    async fn record_returns_every_stored_field(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let id = fixture.enqueue("m1").await;
        let digest = Digest::of_bytes(b"result");
        fixture.pass(Duration::from_secs(7));
        let outcome = KeyOutcome::Keep {
            settled: Settled::Applied,
            response: response(b"done"),
            result_digest: Some(digest),
            message_id: Some(id),
            ttl: TTL,
        };
        let _ = fixture.report("k1", fence, outcome).await;
        fixture.send(&fixture.claim_one().await).await;
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        assert_eq!(found.name, name("k1"));
        assert_eq!((found.record.fence, found.record.fingerprint), (fence, print("10 EUR")));
        assert_eq!(found.request_digest, Digest::of_bytes(b"10 EUR"));
        assert_eq!(found.response, Some(response(b"done")));
        assert_eq!((found.result_digest, found.message_id), (Some(digest), Some(id)));
        let completed_at = found.completed_at.unwrap();
        assert!(Duration::from_secs(7) <= completed_at.since(found.record.first_claimed_at));
        let expiry = Expiry::At(completed_at.plus(TTL));
        let settled = RecordPhase::Settled { outcome: Settled::Applied, kept: StoredBody::Whole, expiry };
        assert_eq!(found.record.phase, settled);
    }

    #[test]
    async fn a_key_is_claimed_settled_and_replayed_by_different_nodes(fixture: StoreFixture) {
        let (second, third) = (fixture.another_node().await, fixture.another_node().await);
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        assert_eq!(second.keys().renew(&[(name("k1"), fence, LEASE)]).await.unwrap(), [true]);
        let settle = KeySettle { name: name("k1"), fence, outcome: keep(response(b"ok")) };
        assert_eq!(second.keys().settle(settle).await.unwrap(), KeySettled::Settled);
        let replay = third.keys().claim(request("k1", OperationGuarantee::None)).await.unwrap();
        assert_eq!(replay, KeyClaimed::Replay(response(b"ok")));
    }

    #[test]
    async fn key_of_a_deleted_message_expires_on_schedule(fixture: StoreFixture) {
        let id = fixture.enqueue("m1").await;
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let _ = fixture.report("k1", fence, keep_with(b"queued", id)).await;
        fixture.send(&fixture.claim_one().await).await;
        let moment = fixture.row(id).await.updated_at.plus(DAY);
        assert_eq!(fixture.store.messages().delete_finished(moment, 10).await.unwrap(), 1);
        let replay = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert_eq!(replay, KeyClaimed::Replay(response(b"queued")));
        fixture.pass(TTL);
        assert_eq!(fixture.sweep().await, 1);
    }

    #[test]
    async fn identity_keys_are_deleted_unless_in_use(fixture: StoreFixture) {
        let id = fixture.enqueue("m1").await;
        for (key, outcome) in [("plain", keep(response(b"ok"))), ("used", keep_with(b"queued", id))] {
            let fence = fixture.run(key, OperationGuarantee::None).await;
            let _ = fixture.report(key, fence, outcome).await;
        }
        fixture.run("running", OperationGuarantee::None).await;
        assert_eq!(fixture.store.keys().delete_of_identity("mallory", 10).await.unwrap(), 0);
        assert_eq!(fixture.store.keys().delete_of_identity(name("plain").identity.as_str(), 10).await.unwrap(), 1);
        assert!(fixture.store.keys().get(&name("plain")).await.unwrap().is_none());
        for kept in ["used", "running"] {
            assert!(fixture.store.keys().get(&name(kept)).await.unwrap().is_some(), "{kept}");
        }
        fixture.send(&fixture.claim_one().await).await;
        assert_eq!(fixture.store.keys().delete_of_identity(name("used").identity.as_str(), 10).await.unwrap(), 1);
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.store.keys().delete_of_identity(name("running").identity.as_str(), 10).await.unwrap(), 1, "its owner is gone");
    }

    #[test]
    async fn unused_key_has_no_record(fixture: StoreFixture) {
        assert!(fixture.store.keys().get(&name("k1")).await.unwrap().is_none());
    }

    #[test]
    async fn fences_only_grow(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let mut last = None;
        for number in 0..20 {
            let store = if number % 2 == 0 { &fixture.store } else { &other };
            let claimed = store.keys().claim(request(&format!("k{number}"), OperationGuarantee::None)).await.unwrap();
            let KeyClaimed::Run { fence, .. } = claimed else { panic!("{claimed:?}") };
            assert!(last < Some(fence), "{last:?} then {fence:?}");
            last = Some(fence);
        }
    }

    #[test]
    async fn one_of_a_hundred_simultaneous_claims_runs(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let arrivals: Vec<_> = (0..100)
            .map(|number| {
                let store = if number % 2 == 0 { fixture.store.clone() } else { other.clone() };
                tokio::spawn(async move {
                    while_busy(|| store.keys().claim(request("k1", OperationGuarantee::Keyed))).await
                })
            })
            .collect();
        let mut run = 0;
        let mut in_flight = 0;
        for arrival in arrivals {
            match arrival.await.unwrap() {
                KeyClaimed::Run { .. } => run += 1,
                KeyClaimed::InFlight { .. } => in_flight += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((run, in_flight), (1, 99));
    }

    #[test]
    async fn one_of_a_hundred_claims_takes_over_a_lapsed_key(fixture: StoreFixture) {
        fixture.run("k1", OperationGuarantee::Keyed).await;
        fixture.pass(AFTER_LEASE);
        let arrivals: Vec<_> = (0..100)
            .map(|_| {
                let store = fixture.store.clone();
                tokio::spawn(async move {
                    while_busy(|| store.keys().claim(request("k1", OperationGuarantee::Keyed))).await
                })
            })
            .collect();
        let mut run = 0;
        for arrival in arrivals {
            run += usize::from(matches!(arrival.await.unwrap(), KeyClaimed::Run { .. }));
        }
        assert_eq!(run, 1);
    }

    #[test]
    async fn claims_of_different_keys_at_once_all_run(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let arrivals: Vec<_> = (0..500)
            .map(|number| {
                let store = if number % 2 == 0 { fixture.store.clone() } else { other.clone() };
                let claim = request(&format!("k{number}"), OperationGuarantee::None);
                tokio::spawn(async move { while_busy(|| store.keys().claim(claim.clone())).await })
            })
            .collect();
        let mut fences = BTreeSet::new();
        for arrival in arrivals {
            match arrival.await.unwrap() {
                KeyClaimed::Run { fence, .. } => assert!(fences.insert(fence.get()), "a fence came twice"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(fences.len(), 500);
    }

    #[test]
    async fn simultaneous_settles_of_one_key_get_their_own_results(fixture: StoreFixture) {
        for round in 0..10 {
            let text = format!("k{round}");
            let stale = fixture.run(&text, OperationGuarantee::Keyed).await;
            fixture.pass(AFTER_LEASE);
            let owner = fixture.run(&text, OperationGuarantee::Keyed).await;
            let reports: Vec<_> = (0..20)
                .map(|number| {
                    let store = fixture.store.clone();
                    let fence = if number % 2 == 0 { stale } else { owner };
                    let outcome = keep(response(format!("{number}").as_bytes()));
                    let settle = KeySettle { name: name(&text), fence, outcome };
                    tokio::spawn(async move { (number, while_busy(|| store.keys().settle(settle.clone())).await) })
                })
                .collect();
            let mut stands = Vec::new();
            for report in reports {
                match report.await.unwrap() {
                    (number, KeySettled::Settled) => stands.push(number),
                    (number, KeySettled::AlreadySettled) => assert_eq!(number % 2, 1),
                    (number, KeySettled::Stale) => assert_eq!(number % 2, 0),
                }
            }
            assert_eq!(stands.len(), 1, "{stands:?}");
            let replay = fixture.arrive(request(&text, OperationGuarantee::Keyed)).await;
            assert_eq!(replay, KeyClaimed::Replay(response(format!("{}", stands[0]).as_bytes())));
        }
    }
}
