//! Servers that go away, or accept no more writes.

use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::Enqueued;
use ichido_store::testing::postgres::{Cluster, fresh_database};

use super::proxy::FaultProxy;
use crate::fixture::{message, new_id, with_time_limit};

/// After a failover the old leader accepts no writes. The request is not to blame, and the next connection may find the new
/// leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_server_is_unavailable_until_another_connects() {
    with_time_limit(async {
        let database = fresh_database().await;
        let store = Store::open(&database.url, 1).await.unwrap();
        let mut connection = store.postgres_pool().unwrap().acquire().await.unwrap();
        sqlx::query("SET default_transaction_read_only = on").execute(&mut *connection).await.unwrap();
        drop(connection);
        let refused = store.messages().enqueue(message("k1")).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        let enqueued = store.messages().enqueue(message("k1")).await;
        assert!(matches!(enqueued, Ok(Enqueued::New { .. })), "{enqueued:?}");
    })
    .await;
}

/// A read on a dead connection did not lose a write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_right_after_a_restart_succeed() {
    /// The maximum number of connections of the store.
    const CONNECTIONS: u32 = 4;
    with_time_limit(async {
        let cluster = Cluster::start(&[]).unwrap();
        let database = cluster.database().await.unwrap();
        let store = Store::open(&database.url, CONNECTIONS).await.unwrap();
        let id = new_id(store.messages().enqueue(message("k")).await.unwrap());
        for round in 0..3 {
            // Used just now, so not pinged.
            let reads: Vec<_> = (0..CONNECTIONS)
                .map(|_| {
                    let store = store.clone();
                    tokio::spawn(async move { store.messages().get(id).await })
                })
                .collect();
            for read in reads {
                read.await.unwrap().unwrap();
            }
            tokio::task::block_in_place(|| cluster.restart_immediate().unwrap());
            for _ in 0..CONNECTIONS {
                let read = store.messages().get(id).await;
                assert!(matches!(read, Ok(Some(_))), "round {round}: {read:?}");
            }
        }
    })
    .await;
}

/// Broken a second time, it is unavailable; nothing about it is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_is_never_of_unknown_outcome() {
    with_time_limit(async {
        let database = fresh_database().await;
        let proxy = FaultProxy::to(&database.url).await;
        let store = Store::open(&proxy.url, 1).await.unwrap();
        let id = new_id(store.messages().enqueue(message("k")).await.unwrap());
        // What the server sends before every row.
        proxy.cut_always_at("idempotency_key");
        let read = store.messages().get(id).await;
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
        assert_eq!(proxy.met(), 2, "it is asked once more");
    })
    .await;
}
