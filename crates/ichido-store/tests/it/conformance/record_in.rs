//! Recording an outcome without a claim: a unique index decides whose transaction commits.

use std::time::Duration;

use ichido_core::ledger::{OperationGuarantee, RecordPhase, Settled};
use ichido_store::error::StoreError;
use ichido_store::ledger::{
    KeyClaim, KeyClaimed, KeyLookup, KeyOutcome, KeyRecorded, KeyRecording, KeySettled, StoredResponse,
};
use uuid::Uuid;

use super::ledger::{TTL, name, print, request, response};
use super::transaction::Business;
use crate::both_databases;
use crate::fixture::{AFTER_LEASE, StoreFixture};
use crate::wire::words::{WAITING, number, other, until};

fn asked(key: &str) -> KeyClaim {
    request(key, OperationGuarantee::Transactional)
}

fn recording(key: &str, body: &[u8]) -> KeyRecording {
    KeyRecording {
        request: asked(key),
        attempt: Uuid::now_v7(),
        settled: Settled::Applied,
        response: response(body),
        result_digest: None,
        message_id: None,
        ttl: TTL,
    }
}

impl StoreFixture {
    async fn look_up(&self, claim: &KeyClaim) -> KeyLookup {
        self.store.keys().look_up(&claim.name, claim.fingerprint, &claim.policy).await.expect("an answer")
    }

    /// Places an order and records its outcome.
    async fn record(&self, business: &Business, recording: &KeyRecording) -> KeyRecorded {
        let mut open = business.begin().await;
        open.order().await;
        let recorded = open.record(&self.store, recording).await.expect("an answer");
        match recorded {
            KeyRecorded::Recorded => open.commit().await,
            KeyRecorded::Taken => open.roll_back().await,
        }
        recorded
    }
}

both_databases! {
    #[test]
    async fn recorded_outcome_commits_with_its_writes(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        assert_eq!(fixture.look_up(&asked("k1")).await, KeyLookup::Free);
        let recording = recording("k1", b"done");
        let mut open = business.begin().await;
        open.order().await;
        assert_eq!(open.record(&fixture.store, &recording).await.unwrap(), KeyRecorded::Recorded);
        assert_eq!(fixture.look_up(&asked("k1")).await, KeyLookup::Free, "nobody else sees it yet");
        open.commit().await;
        assert_eq!(business.orders().await, 1);
        let replay = KeyClaimed::Replay(response(b"done"));
        assert_eq!(fixture.look_up(&asked("k1")).await, KeyLookup::Blocked(replay.clone()));
        assert_eq!(fixture.arrive(asked("k1")).await, replay, "a claim finds it too");
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        assert_eq!(found.attempt, recording.attempt, "the attempt recognizes its own record");
        assert!(found.completed_at.is_some());
    }

    #[test]
    async fn recording_that_is_rolled_back_leaves_the_key_free(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let mut open = business.begin().await;
        open.order().await;
        let _ = open.record(&fixture.store, &recording("k1", b"done")).await.unwrap();
        open.roll_back().await;
        assert_eq!(fixture.look_up(&asked("k1")).await, KeyLookup::Free);
        assert_eq!(fixture.phase("k1").await, None);
        assert_eq!(business.orders().await, 0);
    }

    #[test]
    async fn second_recording_finds_the_key_taken(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        assert_eq!(fixture.record(&business, &recording("k1", b"first")).await, KeyRecorded::Recorded);
        assert_eq!(fixture.record(&business, &recording("k1", b"second")).await, KeyRecorded::Taken);
        assert_eq!(business.orders().await, 1);
        let replay = KeyClaimed::Replay(response(b"first"));
        assert_eq!(fixture.look_up(&asked("k1")).await, KeyLookup::Blocked(replay));
        assert_eq!(fixture.record(&business, &recording("k2", b"other")).await, KeyRecorded::Recorded);
    }

    #[test]
    async fn claimed_key_is_taken_and_keeps_its_owner(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let fence = fixture.run("k1", OperationGuarantee::Keyed).await;
        let found = fixture.look_up(&asked("k1")).await;
        assert!(matches!(found, KeyLookup::Blocked(KeyClaimed::InFlight { .. })), "{found:?}");
        assert_eq!(fixture.record(&business, &recording("k1", b"done")).await, KeyRecorded::Taken);
        assert_eq!(fixture.report("k1", fence, KeyOutcome::Release).await, KeySettled::Settled);
        assert_eq!(fixture.record(&business, &recording("k1", b"done")).await, KeyRecorded::Recorded);
        assert_eq!(business.orders().await, 1);
    }

    #[test]
    async fn look_up_decides_as_a_claim_would(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let _ = fixture.record(&business, &recording("k1", b"done")).await;
        let different = KeyClaim { fingerprint: print("99 EUR"), ..asked("k1") };
        assert_eq!(fixture.look_up(&different).await, KeyLookup::Blocked(KeyClaimed::Conflict));
        let without_body = StoredResponse { body: None, ..response(b"") };
        let _ = fixture.record(&business, &KeyRecording { response: without_body, ..recording("k2", b"") }).await;
        let not_stored = KeyClaimed::ReplayNotStored { status: 201 };
        assert_eq!(fixture.look_up(&asked("k2")).await, KeyLookup::Blocked(not_stored));
        let _ = fixture.run("k3", OperationGuarantee::Transactional).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.look_up(&asked("k3")).await, KeyLookup::NeedsClaim, "its owner is gone");
        assert!(matches!(fixture.phase("k3").await, Some(RecordPhase::Claimed { .. })), "nothing was written");
        fixture.pass(TTL);
        assert_eq!(fixture.look_up(&asked("k1")).await, KeyLookup::NeedsClaim, "it has expired");
        let claimed = fixture.arrive(asked("k1")).await;
        assert!(matches!(claimed, KeyClaimed::Run { .. }), "a claim replaces it: {claimed:?}");
    }

    #[test]
    async fn look_ups_that_arrive_together_each_get_their_own_result(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        for number in (0..40).step_by(2) {
            let _ = fixture.record(&business, &recording(&format!("k{number}"), format!("{number}").as_bytes())).await;
        }
        let looking = (0..40).map(|number| {
            let (store, claim) = (fixture.store.clone(), asked(&format!("k{number}")));
            tokio::spawn(async move {
                store.keys().look_up(&claim.name, claim.fingerprint, &claim.policy).await.expect("an answer")
            })
        });
        for (number, found) in looking.collect::<Vec<_>>().into_iter().enumerate() {
            let expected = match number % 2 {
                0 => KeyLookup::Blocked(KeyClaimed::Replay(response(format!("{number}").as_bytes()))),
                _ => KeyLookup::Free,
            };
            assert_eq!(found.await.unwrap(), expected);
        }
    }

    #[test]
    async fn recorded_outcome_expires_and_is_swept(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let short = KeyRecording { ttl: Duration::from_secs(1), ..recording("k1", b"done") };
        let _ = fixture.record(&business, &short).await;
        fixture.pass(Duration::from_hours(1));
        assert_eq!(fixture.store.keys().sweep(10).await.unwrap(), 1);
        assert_eq!(fixture.look_up(&asked("k1")).await, KeyLookup::Free);
    }

    #[test]
    async fn commit_with_a_recording_waits_for_the_disk_however_the_connection_is_set_up(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let mut open = business.begin_careless().await;
        let _ = open.record(&fixture.store, &recording("k1", b"done")).await.unwrap();
        assert!(open.is_durable().await);
        open.commit().await;
    }

    #[test]
    async fn recording_that_cannot_be_read_back_is_refused(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let mut open = business.begin().await;
        let bad = KeyRecording { response: StoredResponse { status: 7, ..response(b"") }, ..recording("k1", b"") };
        let refused = open.record(&fixture.store, &bad).await;
        assert!(matches!(refused, Err(StoreError::OutOfRange { .. })), "{refused:?}");
    }

    #[test]
    async fn another_database_of_the_same_kind_is_recognized(fixture: StoreFixture) {
        let other =
            if fixture.store.is_sqlite() { StoreFixture::sqlite().await } else { StoreFixture::postgres().await };
        let mut open = Business::open(&fixture).await.begin().await;
        assert!(open.is_on(&fixture.store).await.unwrap());
        assert!(!open.is_on(&other.store).await.unwrap());
    }
}

/// On SQLite the second transaction cannot begin before the first has ended.
#[tokio::test]
async fn recording_waits_for_another_of_the_same_key() {
    let fixture = StoreFixture::postgres().await;
    let business = Business::open(&fixture).await;
    let mut watching = other(fixture.url()).await;
    for (key, commits) in [("k1", true), ("k2", false)] {
        let mut first = business.begin().await;
        assert_eq!(first.record(&fixture.store, &recording(key, b"1")).await.unwrap(), KeyRecorded::Recorded);
        let (store, mut second) = (fixture.store.clone(), business.begin().await);
        let waiting = tokio::spawn(async move {
            let recorded = second.record(&store, &recording(key, b"2")).await.unwrap();
            second.commit().await;
            recorded
        });
        until("the second waits", async || number(&mut watching, WAITING).await == 1).await;
        if commits {
            first.commit().await;
            assert_eq!(waiting.await.unwrap(), KeyRecorded::Taken);
        } else {
            first.roll_back().await;
            assert_eq!(waiting.await.unwrap(), KeyRecorded::Recorded);
        }
    }
}
