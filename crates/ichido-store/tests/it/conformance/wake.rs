//! Waiting: a waiter is woken by its event, or when its timeout expires.
//!
//! A wait that must be woken has a timeout far beyond the duration of any test, so the wake-up is observed, not timed.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{Class, OperationGuarantee, Policy, PolicyDraft, RecordName};
use ichido_core::lifecycle::Event;
use ichido_core::retry::Safety;
use ichido_core::verdict::Effect;
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, KeySettled};
use ichido_store::message::NewMessage;
use tokio::task::JoinHandle;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, KEYED, StoreFixture, given_back, ids, key, many, message, queue, queue_named,
    terms, will_retry,
};

/// A timeout that no test waits for.
const LONG: Duration = Duration::from_hours(1);
/// A timeout that expires.
const SHORT: Duration = Duration::from_millis(20);

fn name() -> RecordName {
    RecordName { operation: "orders.create".to_owned(), identity: "alice".to_owned(), key: key("k1") }
}

fn claim() -> KeyClaim {
    let draft = PolicyDraft { guarantee: Some(OperationGuarantee::Keyed), ..PolicyDraft::new(Class::Mutate) };
    KeyClaim {
        name: name(),
        fingerprint: Fingerprint::from_bytes([1; 32]),
        request_digest: Digest::of_bytes(b"request"),
        policy: Arc::new(Policy::build(draft).expect("a policy")),
        hops: None,
        trace: None,
    }
}

async fn claimed(store: &Store) -> Fence {
    match store.keys().claim(claim()).await.expect("an answer") {
        KeyClaimed::Run { fence, .. } => fence,
        other => panic!("{other:?}"),
    }
}

async fn release(store: &Store, fence: Fence) {
    let settle = KeySettle { name: name(), fence, outcome: KeyOutcome::Release };
    assert_eq!(store.keys().settle(settle).await.expect("an answer"), KeySettled::Settled);
}

/// Waits for work in its own task.
fn waiter(store: &Store, at_most: Duration) -> JoinHandle<bool> {
    let store = store.clone();
    tokio::spawn(async move { store.queues().wait(&queue(), at_most).await })
}

/// Waits for the key in its own task.
fn key_waiter(store: &Store, at_most: Duration) -> JoinHandle<bool> {
    let store = store.clone();
    tokio::spawn(async move { store.keys().wait(&name(), at_most).await })
}

/// Consumes all earlier wake-ups.
async fn drain_wake_ups(store: &Store) {
    while store.queues().wait(&queue(), SHORT).await {}
}

both_databases! {
    #[test]
    async fn a_waiter_is_woken_by_a_message(fixture: StoreFixture) {
        let waiter = waiter(&fixture.store, LONG);
        fixture.enqueue("m1").await;
        assert!(waiter.await.unwrap());
    }

    #[test]
    async fn every_waiter_is_woken(fixture: StoreFixture) {
        let waiters: Vec<_> = (0..4).map(|_| waiter(&fixture.store, LONG)).collect();
        // A waiter that starts after a message waits for the next one.
        for number in 0.. {
            if waiters.iter().all(JoinHandle::is_finished) {
                break;
            }
            fixture.enqueue(&format!("m{number}")).await;
        }
        for waiter in waiters {
            assert!(waiter.await.unwrap());
        }
    }

    #[test]
    async fn bulk_enqueue_wakes_waiters(fixture: StoreFixture) {
        let waiter = waiter(&fixture.store, LONG);
        fixture.enqueue_many(3).await;
        assert!(waiter.await.unwrap());
    }

    #[test]
    async fn message_between_claim_and_wait_is_not_missed(fixture: StoreFixture) {
        assert!(fixture.claim(1).await.is_empty());
        fixture.enqueue("m1").await;
        assert!(fixture.store.queues().wait(&queue(), LONG).await);
        assert!(!fixture.store.queues().wait(&queue(), SHORT).await, "remembered once");
    }

    #[test]
    async fn wait_ends_without_a_message(fixture: StoreFixture) {
        fixture.store.queues().wake(&queue_named("others"));
        let later = NewMessage { delay: BACKOFF, ..message("later") };
        fixture.put(later).await;
        assert!(!fixture.store.queues().wait(&queue(), SHORT).await);
    }

    #[test]
    async fn due_message_wakes_waiters(fixture: StoreFixture) {
        fixture.enqueue("m1").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, will_retry(&work)).await;
        drain_wake_ups(&fixture.store).await;
        let waiter = waiter(&fixture.store, LONG);
        fixture.pass(BACKOFF * 2);
        assert_eq!(fixture.promote().await, 1);
        assert!(waiter.await.unwrap());
    }

    #[test]
    async fn requeue_wakes_waiters(fixture: StoreFixture) {
        let id = fixture.dead("m1", Effect::NotDone).await;
        drain_wake_ups(&fixture.store).await;
        let waiter = waiter(&fixture.store, LONG);
        let _ = fixture.step(id, Event::Requeued { allowed: true, safety: Safety::Keyed }).await;
        assert!(waiter.await.unwrap());
    }

    #[test]
    async fn returned_or_rescued_message_wakes_waiters(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        drain_wake_ups(&fixture.store).await;
        let back = waiter(&fixture.store, LONG);
        let _ = fixture.settle(&work[0], given_back(&work[0])).await;
        assert!(back.await.unwrap());
        drain_wake_ups(&fixture.store).await;
        let rescued = waiter(&fixture.store, LONG);
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert!(rescued.await.unwrap());
    }

    #[test]
    async fn resumed_queue_wakes_waiters(fixture: StoreFixture) {
        fixture.store.queues().pause(&queue(), true, None).await.unwrap();
        drain_wake_ups(&fixture.store).await;
        let waiter = waiter(&fixture.store, LONG);
        fixture.store.queues().pause(&queue(), false, None).await.unwrap();
        assert!(waiter.await.unwrap());
    }

    #[test]
    async fn key_waiter_is_woken_when_settled(fixture: StoreFixture) {
        let fence = claimed(&fixture.store).await;
        assert!(!fixture.store.keys().wait(&name(), SHORT).await, "still claimed");
        let waiter = key_waiter(&fixture.store, LONG);
        release(&fixture.store, fence).await;
        assert!(waiter.await.unwrap());
    }

    #[test]
    async fn waiter_for_an_unclaimed_key_does_not_wait(fixture: StoreFixture) {
        assert!(fixture.store.keys().wait(&name(), LONG).await);
    }

    /// On PostgreSQL the other node is notified. On SQLite it checks again after its timeout, and finds the work.
    #[test]
    async fn a_waiter_on_another_node_finds_the_work(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let bound = if fixture.notifies_other_nodes() { LONG } else { SHORT };
        let waiter = waiter(&other, bound);
        let id = fixture.enqueue("m1").await;
        assert_eq!(waiter.await.unwrap(), fixture.notifies_other_nodes());
        let work = other.claims().claim(&queue(), many(1), terms()).await.unwrap();
        assert_eq!(ids(&work), [id]);
    }

    /// The same for a key.
    #[test]
    async fn key_waiter_on_another_node_finds_it_settled(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let fence = claimed(&fixture.store).await;
        let bound = if fixture.notifies_other_nodes() { LONG } else { SHORT };
        let waiter = key_waiter(&other, bound);
        release(&fixture.store, fence).await;
        let woken = waiter.await.unwrap();
        // On SQLite it depends on which was faster: the settle, or the waiter's first look.
        assert!(woken || !fixture.notifies_other_nodes());
        assert!(matches!(other.keys().claim(claim()).await.unwrap(), KeyClaimed::Run { .. }));
    }
}
