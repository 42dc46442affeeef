//! A wall clock that is set ahead and back again: leases lapse, dead nodes are dead, and no key is deleted early.

use std::time::Duration;

use ichido_core::ledger::OperationGuarantee;
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::answer::{AskOutcome, QuestionId};
use ichido_store::ledger::KeyClaimed;
use ichido_store::message::{Enqueued, QueueName};
use ichido_store::node::SingletonTask;
use uuid::Uuid;

use super::audit::write;
use super::ledger::{TTL, request};
use super::outbox::with_same_content;
use crate::both_databases;
use crate::fixture::{DAY, KEYED, StoreFixture, many, message, new_id, queue, terms};

const MONTH: Duration = Duration::from_hours(30 * 24);
/// How long messages are kept.
const KEPT: Duration = Duration::from_hours(90 * 24);
/// How far the clock was ahead when keys were deleted.
const LONG_AHEAD: Duration = Duration::from_hours(100 * 24);

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap()
}

/// Opens a node whose clock is ahead.
async fn ahead_by(fixture: &StoreFixture, time: Duration) -> Store {
    let node = fixture.another_node().await;
    node.step_clock(micros(time));
    node
}

/// Runs a round of retention. Returns how much it deleted.
async fn retain(store: &Store) -> u64 {
    let now = store.now().await.unwrap();
    let before = Timestamp::from_micros(now.as_micros() - micros(KEPT));
    let keys = store.keys().sweep(100).await.unwrap();
    let contents = store.messages().sweep_contents(100).await.unwrap();
    keys + contents + store.messages().delete_finished(before, 100).await.unwrap()
}

/// Settles a key and sends a message.
async fn settle_and_send(fixture: &StoreFixture) {
    fixture.settled("k1", OperationGuarantee::None, b"done").await;
    fixture.enqueue("sent").await;
    fixture.send(&fixture.claim_one().await).await;
}

/// Asserts that neither takes effect again.
async fn assert_done(fixture: &StoreFixture) {
    assert_done_on(&fixture.store).await;
}

async fn assert_done_on(store: &Store) {
    let claimed = store.keys().claim(request("k1", OperationGuarantee::None)).await.unwrap();
    assert!(matches!(claimed, KeyClaimed::Replay(_)), "{claimed:?}");
    let enqueued = store.messages().enqueue(message("sent")).await.unwrap();
    assert!(matches!(enqueued, Enqueued::Replay { .. }), "{enqueued:?}");
}

/// Moves all timestamps back, as if everything had been written earlier.
async fn backdate_rows(fixture: &StoreFixture, time: Duration) {
    let by = micros(time);
    let by =
        if fixture.store.is_sqlite() { by.to_string() } else { format!("{by} * interval '1 microsecond'") };
    for (table, column) in
        [("ledger", "expires_at"), ("contents", "until"), ("singleton_tasks", "lease_until")]
    {
        write(fixture, &format!("UPDATE {{t}}{table} SET {column} = {column} - {by}")).await;
    }
}

both_databases! {
    #[test]
    async fn a_lease_taken_while_the_clock_was_ahead_is_rescued_once_it_is_set_back(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let ahead = ahead_by(&fixture, MONTH).await;
        let work = ahead.claims().claim(&queue(), many(1), terms()).await.unwrap();
        assert_eq!(work.len(), 1);
        drop(ahead);
        let elsewhere = fixture.store.claims().list_unserved(&[], Duration::ZERO).await.unwrap();
        assert_eq!(elsewhere.len(), 1, "a node that does not serve it reports it");
        assert_eq!(fixture.rescue(Guarantee::Idempotent).await, Some(1));
        assert_eq!(fixture.rescue(Guarantee::Idempotent).await, None);
        fixture.pass(DAY);
        fixture.promote().await;
        assert_eq!(fixture.claim_one().await.id, id);
    }

    #[test]
    async fn longest_lease_is_not_mistaken_for_a_clock_ahead(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let terms = ichido_store::message::ClaimOptions { lease: MONTH, ..terms() };
        let other = fixture.another_node().await;
        assert_eq!(other.claims().claim(&queue(), many(1), terms).await.unwrap().len(), 1);
        assert_eq!(fixture.rescue(Guarantee::Idempotent).await, None, "it was cut to the longest");
        fixture.pass(DAY + Duration::from_secs(1));
        assert_eq!(fixture.rescue(Guarantee::Idempotent).await, Some(1));
    }

    /// The receiver keeps keys for a day, and it is unknown whether that is over.
    #[test]
    async fn call_from_a_clock_ahead_is_not_repeated_by_key(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let ahead = ahead_by(&fixture, MONTH).await;
        assert_eq!(ahead.claims().claim(&queue(), many(1), terms()).await.unwrap().len(), 1);
        drop(ahead);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        fixture.pass(DAY);
        fixture.promote().await;
        let now = fixture.store.now().await.unwrap();
        assert_eq!(fixture.claim_one().await.history.safety(KEYED, now), Safety::None);
    }

    #[test]
    async fn a_key_claimed_while_the_clock_was_ahead_has_lapsed(fixture: StoreFixture) {
        let ahead = ahead_by(&fixture, MONTH).await;
        for (key, mode) in
            [("rolled-back", OperationGuarantee::Transactional), ("asked", OperationGuarantee::None), ("listed", OperationGuarantee::None)]
        {
            let claimed = ahead.keys().claim(request(key, mode)).await.unwrap();
            assert!(matches!(claimed, KeyClaimed::Run { .. }), "{claimed:?}");
        }
        drop(ahead);
        let claimed = fixture.arrive(request("rolled-back", OperationGuarantee::Transactional)).await;
        assert!(matches!(claimed, KeyClaimed::Run { .. }), "{claimed:?}");
        let claimed = fixture.arrive(request("asked", OperationGuarantee::None)).await;
        assert!(matches!(claimed, KeyClaimed::Unknown { .. }), "{claimed:?}");
        assert_eq!(fixture.store.keys().mark_lapsed_unknown(&["orders.create".to_owned()], 100).await.unwrap(), 1);
        assert_eq!(fixture.store.keys().list_unknown(None, 10).await.unwrap().len(), 2);
    }

    #[test]
    async fn task_claimed_with_clock_ahead_can_be_taken_over(fixture: StoreFixture) {
        let (lease, all) = (Duration::from_secs(30), SingletonTask::DeadLetters(None));
        let ahead = ahead_by(&fixture, MONTH).await;
        for duty in [SingletonTask::Ledger, all] {
            assert!(ahead.nodes().claim_task(duty, Uuid::from_u128(1), lease).await.unwrap());
        }
        drop(ahead);
        assert!(fixture.store.nodes().bulk_leases().await.unwrap().is_empty());
        for duty in [SingletonTask::Ledger, all] {
            assert!(fixture.store.nodes().claim_task(duty, Uuid::from_u128(2), lease).await.unwrap());
            assert!(!fixture.store.nodes().claim_task(duty, Uuid::from_u128(3), lease).await.unwrap());
        }
    }

    #[test]
    async fn question_claimed_with_clock_ahead_can_be_taken_over(fixture: StoreFixture) {
        let (question, lease) = (QuestionId::from_bytes([1; 32]), Duration::from_secs(30));
        let ask = async |store: &Store, run| store.answers().ask(question, "articles", Uuid::from_u128(run), lease).await.unwrap();
        let ahead = ahead_by(&fixture, MONTH).await;
        assert_eq!(ask(&ahead, 1).await, AskOutcome::Run { lost: 0 });
        drop(ahead);
        assert_eq!(ask(&fixture.store, 2).await, AskOutcome::Run { lost: 1 });
        assert!(matches!(ask(&fixture.store, 3).await, AskOutcome::InFlight { .. }));
    }

    #[test]
    async fn a_node_that_beat_while_the_clock_was_ahead_is_not_alive(fixture: StoreFixture) {
        let ahead = ahead_by(&fixture, MONTH).await;
        ahead.nodes().heartbeat(Uuid::from_u128(1), "ahead").await.unwrap();
        fixture.store.nodes().heartbeat(Uuid::from_u128(2), "here").await.unwrap();
        let nodes = fixture.store.nodes().list().await.unwrap();
        let now = fixture.store.now().await.unwrap();
        let alive = |name: &str| {
            let node = nodes.iter().find(|node| node.name == name).unwrap();
            node.is_alive(now)
        };
        assert_eq!((alive("ahead"), alive("here")), (false, true));
    }

    #[test]
    async fn brief_clock_jump_deletes_nothing(fixture: StoreFixture) {
        settle_and_send(&fixture).await;
        assert_eq!(retain(&fixture.store).await, 0);
        fixture.store.step_clock(micros(LONG_AHEAD));
        for _ in 0..3 {
            assert_eq!(retain(&fixture.store).await, 0);
            fixture.pass(Duration::from_secs(5));
        }
        fixture.store.step_clock(-micros(LONG_AHEAD));
        for _ in 0..3 {
            assert_eq!(retain(&fixture.store).await, 0);
        }
        assert_done(&fixture).await;
    }

    #[test]
    async fn key_replays_with_clock_ahead_and_reruns_after_expiry(fixture: StoreFixture) {
        settle_and_send(&fixture).await;
        let first = new_id(fixture.put(with_same_content("first")).await);
        for rounds in [false, true] {
            fixture.store.step_clock(micros(LONG_AHEAD));
            for _ in 0..3 {
                if rounds {
                    retain(&fixture.store).await;
                }
                assert_done(&fixture).await;
                assert_eq!(fixture.put(with_same_content("second")).await, Enqueued::SameContent { id: first });
                fixture.pass(Duration::from_secs(5));
            }
            fixture.store.step_clock(-micros(LONG_AHEAD));
            assert_done(&fixture).await;
            assert_eq!(fixture.put(with_same_content("second")).await, Enqueued::SameContent { id: first });
        }
        for _ in 0..3 {
            assert_done(&fixture).await;
            fixture.pass(TTL / 3);
            retain(&fixture.store).await;
        }
        let claimed = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert!(matches!(claimed, KeyClaimed::Run { .. }), "{claimed:?}");
        new_id(fixture.put(with_same_content("second")).await);
    }

    #[test]
    async fn a_key_is_replayed_by_a_process_that_starts_while_the_clock_is_ahead(fixture: StoreFixture) {
        settle_and_send(&fixture).await;
        backdate_rows(&fixture, LONG_AHEAD).await;
        for _ in 0..2 {
            let ahead = fixture.another_node().await;
            assert_done_on(&ahead).await;
            assert_eq!(retain(&ahead).await, 0);
            assert_done_on(&ahead).await;
        }
    }

    #[test]
    async fn node_started_with_clock_ahead_deletes_nothing_at_once(fixture: StoreFixture) {
        settle_and_send(&fixture).await;
        assert_eq!(retain(&fixture.store).await, 0);
        for _ in 0..3 {
            let ahead = ahead_by(&fixture, LONG_AHEAD).await;
            for _ in 0..3 {
                assert_eq!(retain(&ahead).await, 0);
                ahead.advance_clock(Duration::from_secs(5));
            }
        }
        assert_done(&fixture).await;
    }

    #[test]
    async fn retention_deletes_at_most_a_day_per_hour(fixture: StoreFixture) {
        settle_and_send(&fixture).await;
        assert_eq!(retain(&fixture.store).await, 0);
        fixture.store.step_clock(micros(LONG_AHEAD));
        retain(&fixture.store).await;
        // The key is kept for three days: it must survive two hours, and be gone after four.
        fixture.pass(Duration::from_hours(2));
        assert_eq!(retain(&fixture.store).await, 0);
        fixture.pass(Duration::from_hours(2));
        assert_eq!(retain(&fixture.store).await, 1);
    }

    #[test]
    async fn truly_old_rows_are_deleted(fixture: StoreFixture) {
        settle_and_send(&fixture).await;
        assert_eq!(retain(&fixture.store).await, 0);
        fixture.pass(TTL);
        assert_eq!(retain(&fixture.store).await, 1, "the key");
        fixture.pass(KEPT);
        assert_eq!(retain(&fixture.store).await, 1, "the message");
        let queue = QueueName::parse("orders").unwrap();
        assert_eq!(fixture.store.queues().oldest(&queue).await.unwrap(), None);
    }
}
