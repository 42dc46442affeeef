//! A transactional handler without a claim: nothing is written before its outcome, and one transaction commits.
// Spec: A3, C6.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use ichido::once::{Pool, Tx};
use ichido_core::ledger::RecordPhase;
use sqlx::{Executor as _, Postgres};

use super::fixture::{
    Mode, OnceFixture, ProtectedService, SHORT_LEASE, TestHandler, both_databases, in_time, keyed, respond,
};
use super::outage::Blocked;
use crate::handler_gate::HandlerGate;

/// A handler that waits at a gate, and then places its order.
fn waiting_at(fixture: &OnceFixture, gate: &HandlerGate) -> TestHandler {
    let gate = gate.clone();
    fixture.handler(move |run| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            run.order().await;
            run.created()
        }
    })
}

fn served(fixture: &OnceFixture, handler: &TestHandler) -> ProtectedService {
    fixture.serve(fixture.once(Mode::Transactional), handler.clone())
}

both_databases! {
    #[test]
    async fn nothing_is_written_before_the_handler_ends(fixture: OnceFixture) {
        let (gate, handler) = (HandlerGate::shut(), fixture.ordering());
        let first = keyed("k1").start(&served(&fixture, &waiting_at(&fixture, &gate)));
        gate.reached(1).await;
        assert_eq!(fixture.phase("k1").await, None);
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
        assert!(matches!(fixture.phase("k1").await, Some(RecordPhase::Settled { .. })));
        keyed("k1").send(&served(&fixture, &handler)).await.assert_replay(201, "order 1");
        assert_eq!(handler.runs(), 0);
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn claim_first_keeps_other_nodes_from_running(fixture: OnceFixture) {
        let other = fixture.another_node().await;
        let (gate, idle) = (HandlerGate::shut(), other.ordering());
        let first = keyed("k1").start(&fixture.serve(fixture.once(Mode::Claimed), waiting_at(&fixture, &gate)));
        gate.reached(1).await;
        assert!(matches!(fixture.phase("k1").await, Some(RecordPhase::Claimed { .. })));
        // A node without the setting, as during its change, waits for the claim as well.
        for mode in [Mode::Claimed, Mode::Transactional] {
            let once = other.once(mode).in_flight_wait(Duration::ZERO);
            keyed("k1").send(&other.serve(once, idle.clone())).await.assert_problem(202, "key_in_flight");
        }
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
        keyed("k1").send(&served(&other, &idle)).await.assert_replay(201, "order 1");
        assert_eq!(idle.runs(), 0);
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn duplicates_on_one_node_wait_and_never_run(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let handler = waiting_at(&fixture, &gate);
        let orders = served(&fixture, &handler);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let duplicates: Vec<_> = (0..50).map(|_| keyed("k1").start(&orders)).collect();
        keyed("k1").body("99 EUR").send(&orders).await.assert_problem(409, "key_conflict");
        let hasty = fixture.once(Mode::Transactional).in_flight_wait(Duration::ZERO);
        keyed("k1").send(&fixture.serve(hasty, handler.clone())).await.assert_problem(202, "key_in_flight");
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
        for duplicate in duplicates {
            duplicate.await.unwrap().assert_replay(201, "order 1");
        }
        assert_eq!(handler.runs(), 1);
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn a_duplicate_that_waited_runs_when_the_first_was_rolled_back(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let inside = gate.clone();
        let handler = fixture.handler(move |run| {
            let gate = inside.clone();
            async move {
                if run.number == 1 {
                    gate.pass().await;
                    return respond(StatusCode::BAD_GATEWAY, "failed");
                }
                run.order().await;
                run.created()
            }
        });
        let orders = served(&fixture, &handler);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let waiting: Vec<_> = (0..5).map(|_| keyed("k1").start(&orders)).collect();
        gate.open(1);
        first.await.unwrap().assert_first(502, "failed");
        for waiter in waiting {
            let answer = waiter.await.unwrap();
            assert_eq!((answer.status(), answer.text()), (201, "order 2"));
        }
        assert_eq!(handler.runs(), 2);
        fixture.assert_effects(1).await;
    }

    /// Both run, under one key. One takes effect; the other is refused, as if it had come later.
    #[test]
    async fn different_request_on_another_node_is_rolled_back_and_refused(fixture: OnceFixture) {
        let other = fixture.another_node().await;
        let gate = HandlerGate::shut();
        let slow = waiting_at(&fixture, &gate);
        let first = keyed("k1").start(&served(&fixture, &slow));
        gate.reached(1).await;
        keyed("k1").body("99 EUR").send(&other.orders(Mode::Transactional)).await.assert_first(201, "order 1");
        gate.open(1);
        first.await.unwrap().assert_problem(409, "key_conflict");
        assert_eq!(slow.runs(), 1, "its transaction was rolled back");
        fixture.assert_effects(1).await;
    }

    /// Nothing was done, so nothing is lost if the caller tries again.
    #[test]
    async fn refusal_that_cannot_be_stored_is_not_returned(fixture: OnceFixture) {
        let blocked = Arc::new(tokio::sync::Mutex::new(None));
        let (pool, blocking) = (fixture.business.clone(), Arc::clone(&blocked));
        let handler = fixture.handler(move |run| {
            let (pool, blocking) = (pool.clone(), Arc::clone(&blocking));
            async move {
                if run.number == 1 {
                    *blocking.lock().await = Some(Blocked::by(&pool).await);
                }
                respond(StatusCode::UNPROCESSABLE_ENTITY, format!("no {}", run.number))
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Transactional).lease(SHORT_LEASE), handler);
        keyed("k1").send(&orders).await.assert_problem(503, "store_unavailable");
        drop(blocked.lock().await.take());
        fixture.keeper.drained().await;
        assert_eq!(fixture.phase("k1").await, None);
        keyed("k1").send(&orders).await.assert_first(422, "no 2");
        keyed("k1").send(&orders).await.assert_replay(422, "no 2");
    }

    #[test]
    async fn expired_record_is_replaced(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Transactional);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        fixture.pass(Duration::from_hours(73));
        keyed("k1").send(&orders).await.assert_first(201, "order 2");
        keyed("k1").send(&orders).await.assert_replay(201, "order 2");
        fixture.assert_effects(2).await;
    }
}

/// The insert of its outcome fails instead of finding the winner's, which is newer than its snapshot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loser_with_an_older_snapshot_replays_the_winner() {
    in_time(async {
        let fixture = OnceFixture::postgres().await;
        let other = fixture.another_node().await;
        let gate = HandlerGate::shut();
        let inside = gate.clone();
        let handler = fixture.handler(move |run| {
            let gate = inside.clone();
            async move {
                let tx = run.request.extensions().get::<Tx<Postgres>>().unwrap().clone();
                let mut open = tx.lock().await.unwrap();
                open.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").await.unwrap();
                open.execute("SELECT count(*) FROM orders").await.unwrap();
                drop(open);
                gate.pass().await;
                run.order().await;
                run.created()
            }
        });
        let first = keyed("k1").start(&served(&fixture, &handler));
        gate.reached(1).await;
        let winner = other.handler(|run| async move {
            run.order().await;
            respond(StatusCode::OK, "the winner's")
        });
        keyed("k1").send(&served(&other, &winner)).await.assert_first(200, "the winner's");
        gate.open(1);
        first.await.unwrap().assert_replay(200, "the winner's");
        assert_eq!(handler.runs(), 1);
        fixture.assert_effects(1).await;
    })
    .await;
}

/// The pool is on a database of the same kind that has the store's tables, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pool_on_another_file_is_detected_before_the_handler_runs() {
    let (fixture, elsewhere) = (OnceFixture::sqlite().await, OnceFixture::sqlite().await);
    let Pool::Sqlite(pool) = elsewhere.business.clone() else { panic!("not SQLite") };
    let once =
        fixture.once(Mode::Transactional).guarantee(ichido::once::Guarantee::Transactional(pool.into()));
    let handler = fixture.ordering();
    keyed("k1").send(&fixture.serve(once, handler.clone())).await.assert_problem(500, "transaction_failed");
    assert_eq!(handler.runs(), 0);
    elsewhere.assert_effects(0).await;
}
