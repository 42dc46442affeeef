//! Side effects of a wake-up.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Guarantee;
use uuid::Uuid;

use super::Store;
use crate::driver::Driver;
use crate::message::{ClaimOptions, NewMessage, QueueName};
use crate::testing::postgres::fresh_database;

/// Longer than any wake-up takes.
const PATIENCE: Duration = Duration::from_mins(2);

fn message(key: &str) -> NewMessage {
    let queue = QueueName::parse("orders").unwrap();
    NewMessage::new(queue, "alice", IdempotencyKey::parse(key).unwrap(), Vec::new())
}

fn expect_expensive_rescan(store: &Store, key: &str) {
    let Driver::Postgres(postgres) = store.driver() else { panic!("it is on PostgreSQL") };
    postgres.expect_expensive_rescan(&message(key));
}

async fn claimed(store: &Store) -> usize {
    let terms = ClaimOptions {
        node: Uuid::nil(),
        lease: PATIENCE,
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    store.claims().claim(&message("k").queue, NonZeroU32::MIN, terms).await.unwrap().len()
}

/// Messages that were committed late or given back are before the cursor. A claim after a wake-up must find them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn woken_claim_scans_at_any_cost() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.unwrap();
    let node = Store::open(&database.url, 2).await.unwrap();
    let queue = message("k").queue;

    store.messages().enqueue(message("here")).await.unwrap();
    expect_expensive_rescan(&store, "here");
    assert_eq!(claimed(&store).await, 0, "the look is spared");
    store.queues().wake(&queue);
    assert_eq!(claimed(&store).await, 1, "woken by this process");

    // The wake-ups so far were about the first message.
    while store.queues().wait(&queue, Duration::ZERO).await {}
    expect_expensive_rescan(&store, "elsewhere");
    node.messages().enqueue(message("elsewhere")).await.unwrap();
    assert!(store.queues().wait(&queue, PATIENCE).await);
    assert_eq!(claimed(&store).await, 1, "woken by another node");
}
