//! The layer maintains its ledger: no worker and no proxy runs here.
// Spec: A5, F2, F5.

use std::time::Duration;

use ichido::once::LeaseKeeper;
use ichido_core::ledger::RecordPhase;
use ichido_store::node::SingletonTask;
use ichido_store::testing::while_busy;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::fixture::{Mode, OnceFixture, both_databases, keyed};
use crate::handler_gate::HandlerGate;
use crate::worker::fixture::poll_pause;

/// Longer than any key is kept here.
const AFTER_TTL: Duration = Duration::from_hours(73);
/// Longer than the layer waits between two rounds, and than any lease here.
const AFTER_ROUND: Duration = Duration::from_secs(40);

both_databases! {
    #[test]
    async fn layer_deletes_expired_keys_without_a_worker(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Transactional);
        keyed("old").send(&orders).await.assert_first(201, "order 1");
        fixture.pass(AFTER_TTL);
        keyed("new").send(&orders).await.assert_first(201, "order 2");
        fixture.until("old", |record| record.is_none()).await;
        keyed("new").send(&orders).await.assert_replay(201, "order 2");
        // It continues: the next key expires, too.
        fixture.pass(AFTER_TTL);
        fixture.until("new", |record| record.is_none()).await;
    }

    #[test]
    async fn one_process_at_a_time_deletes_expired_keys(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        fixture.pass(AFTER_TTL);
        fixture.until("k1", |record| record.is_none()).await;
        let (worker, lease) = (Uuid::now_v7(), Duration::from_secs(30));
        let task = SingletonTask::Ledger;
        let is_ours = while_busy(|| fixture.store.nodes().claim_task(task, worker, lease)).await;
        assert!(!is_ours, "one process at a time");
    }

    #[test]
    async fn layer_lists_claims_that_a_crash_left_behind(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let handler = fixture.created_after(&gate);
        let first = keyed("k1").start(&fixture.serve(fixture.once(Mode::Opaque), handler));
        gate.reached(1).await;
        // Nobody repeats the request. Another node has the operation, and sees that the lease has lapsed.
        let other = fixture.another_node().await;
        let _orders = other.orders(Mode::Opaque);
        other.pass(AFTER_ROUND);
        other.until("k1", |found| found.is_some_and(|found| found.record.phase == RecordPhase::Unknown)).await;
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
    }

    #[test]
    async fn maintenance_ends_with_the_last_keeper_and_layer(fixture: OnceFixture) {
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let node = fixture.another_node().await;
        let before = tasks();
        let keeper = LeaseKeeper::new(node.store.clone());
        let layer = node.once(Mode::Keyed).build(&keeper).unwrap();
        assert!(before < tasks(), "one renews leases, one maintains the ledger");
        drop(keeper);
        assert!(before < tasks(), "the layer still needs them");
        drop(layer);
        while before < tasks() {
            poll_pause().await;
        }
    }
}
