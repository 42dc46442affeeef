//! Connections that die silently: waiting callers get a result, and the store continues.
//!
//! If a timeout must pass, the clock is paused and jumps to it, until the dead connection was closed.

use std::time::Duration;

use ichido_core::ledger::OperationGuarantee;
use ichido_core::lifecycle::{Event, State};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::KeyClaimed;
use ichido_store::message::{Note, StepResult};
use ichido_store::testing::postgres::{PgTestDatabase, fresh_database};
use uuid::Uuid;

use super::proxy::FaultProxy;
use super::words::{claim, number, other, run, until};
use crate::fixture::{message, new_id, queue, with_time_limit};

/// Opens a store with a single connection, over the proxy.
async fn store() -> (PgTestDatabase, FaultProxy, Store) {
    let database = fresh_database().await;
    let proxy = FaultProxy::to(&database.url).await;
    let store = Store::open(&proxy.url, 1).await.unwrap();
    (database, proxy, store)
}

/// Waits until the connection is back in the pool. Asking for the pool gives it back.
async fn at_rest(store: &Store) {
    until("the connection is idle", async || 0 < store.postgres_pool().unwrap().num_idle()).await;
}

/// Lets timeouts pass, until this many dead connections were closed.
async fn pass_until_closed(proxy: &FaultProxy, count: usize) {
    tokio::time::pause();
    proxy.has_closed(count).await;
    tokio::time::resume();
}

async fn cancel(store: Store, id: Uuid) -> Result<StepResult, StoreError> {
    store.messages().step(id, |_| Event::Cancelled, &Note::default()).await
}

#[tokio::test]
async fn a_batch_is_written_again_over_another_connection() {
    with_time_limit(async {
        let (_database, proxy, store) = store().await;
        run(&store, "before").await;
        at_rest(&store).await;
        proxy.silence();
        let caught = tokio::spawn({
            let store = store.clone();
            async move { store.keys().claim(claim("caught", OperationGuarantee::None)).await }
        });
        pass_until_closed(&proxy, 1).await;
        let caught = caught.await.unwrap();
        assert!(matches!(caught, Ok(KeyClaimed::Run { .. })), "{caught:?}");
        run(&store, "after").await;
    })
    .await;
}

#[tokio::test]
async fn unbatched_call_ends_and_its_connection_is_replaced() {
    with_time_limit(async {
        let (_database, proxy, store) = store().await;
        let id = new_id(store.messages().enqueue(message("k")).await.unwrap());
        at_rest(&store).await;
        proxy.silence();
        let caught = tokio::spawn(cancel(store.clone(), id));
        pass_until_closed(&proxy, 1).await;
        let caught = caught.await.unwrap();
        assert!(matches!(caught, Err(StoreError::Unknown(_))), "{caught:?}");
        let after = cancel(store, id).await;
        assert!(matches!(after, Ok(StepResult::Now(State::Cancelled { .. }))), "{after:?}");
    })
    .await;
}

/// The pool pings a connection that is returned.
#[tokio::test]
async fn a_connection_that_dies_while_it_is_given_back_is_replaced() {
    with_time_limit(async {
        let (_database, proxy, store) = store().await;
        proxy.die_after("INSERT 0");
        run(&store, "before").await;
        // Gives it back, instead of keeping it for the next call.
        store.postgres_pool().unwrap();
        pass_until_closed(&proxy, 1).await;
        run(&store, "after").await;
        assert_eq!(proxy.met(), 1);
    })
    .await;
}

/// sqlx does not know that a transaction is open if the answer to `BEGIN` was not awaited: the next caller's writes would join
/// it.
#[tokio::test]
async fn a_connection_whose_caller_went_away_is_not_used_again() {
    with_time_limit(async {
        let (database, proxy, store) = store().await;
        let id = new_id(store.messages().enqueue(message("k")).await.unwrap());
        at_rest(&store).await;
        proxy.hold_after("BEGIN");
        let gone = tokio::spawn(cancel(store.clone(), id));
        proxy.has_met(1).await;
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        proxy.release_held();
        run(&store, "after").await;
        let mut theirs = other(&database.url).await;
        assert_eq!(number(&mut theirs, "SELECT count(*) FROM ichido.ledger").await, 1, "acknowledged");
    })
    .await;
}

/// A dead connection is as silent as an idle one.
#[tokio::test]
async fn wake_ups_from_other_nodes_resume() {
    /// Longer than the server may be silent, plus the timeout of the ping.
    const SILENT: Duration = Duration::from_secs(36);
    with_time_limit(async {
        let (database, proxy, store) = store().await;
        let node = Store::open(&database.url, 1).await.unwrap();
        at_rest(&store).await;
        proxy.silence();
        // The clock jumps.
        tokio::time::pause();
        tokio::time::sleep(SILENT).await;
        tokio::time::resume();
        until("a wake-up of another node is heard", async || {
            node.queues().wake(&queue());
            store.queues().wait(&queue(), Duration::from_millis(100)).await
        })
        .await;
    })
    .await;
}
