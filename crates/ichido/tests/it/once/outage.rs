//! Cases 26 and 27: the store fails before the effect, during a write, and after the effect.

use std::sync::Arc;
use std::time::Duration;

use ichido::once::{Guarantee, Pool};
use ichido_core::ledger::RecordPhase;
use ichido_store::Store;
use ichido_store::ledger::KeyRecord;
use ichido_store::testing::postgres::{Cluster, StopMode};
use sqlx::postgres::PgPool;
use sqlx::{Executor as _, Transaction};

use super::fixture::{IN_TRANSACTION, Mode, OnceFixture, SHORT_LEASE, both_databases, in_time, keyed};
use super::relay::{Cut, Relay};
use crate::handler_gate::HandlerGate;

fn is_settled(record: Option<&KeyRecord>) -> bool {
    record.is_some_and(|record| matches!(record.record.phase, RecordPhase::Settled { .. }))
}

/// Blocks all writes to the ledger until it is dropped.
pub(crate) enum Blocked {
    Postgres { _open: Transaction<'static, sqlx::Postgres> },
    Sqlite { _open: Transaction<'static, sqlx::Sqlite> },
}

impl Blocked {
    pub(crate) async fn by(pool: &Pool) -> Self {
        match pool {
            Pool::Postgres(pool) => {
                let mut open = pool.begin().await.unwrap();
                open.execute("LOCK TABLE ichido.ledger IN EXCLUSIVE MODE").await.unwrap();
                Self::Postgres { _open: open }
            }
            Pool::Sqlite(pool) => Self::Sqlite { _open: Store::begin_immediate(pool).await.unwrap() },
        }
    }
}

both_databases! {
    #[test]
    async fn without_the_store_nothing_is_run(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        fixture.close_store().await;
        let answer = keyed("k1").send(&orders).await;
        answer.assert_problem(503, "store_unavailable");
        assert_eq!(answer.field("retry-after"), Some("5"));
        fixture.assert_effects(0).await;
    }

    #[test]
    async fn case_27_store_lost_after_effect_stores_response_later(fixture: OnceFixture) {
        let blocked = Arc::new(tokio::sync::Mutex::new(None));
        let (pool, blocking) = (fixture.business.clone(), Arc::clone(&blocked));
        let handler = fixture.handler(move |run| {
            let (pool, blocking) = (pool.clone(), Arc::clone(&blocking));
            async move {
                run.order().await;
                *blocking.lock().await = Some(Blocked::by(&pool).await);
                run.created()
            }
        });
        let once = fixture.once(Mode::Opaque).in_flight_wait(Duration::ZERO);
        let orders = fixture.serve(once, handler.clone());
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        assert!(matches!(fixture.phase("k1").await, Some(RecordPhase::Claimed { .. })), "it is not stored yet");
        assert_eq!(fixture.keeper.in_flight(), 1, "and the layer is at it");
        let duplicate = keyed("k1").send(&orders).await;
        assert!(matches!(duplicate.status(), 202 | 503), "{duplicate:?}");
        drop(blocked.lock().await.take());
        fixture.until("k1", is_settled).await;
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        assert_eq!(handler.runs(), 1);
        fixture.keeper.drained().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_27_server_down_after_effect_recovers() {
    in_time(async {
        let cluster = Arc::new(Cluster::start(&[]).expect("a PostgreSQL server"));
        let database = cluster.database().await.expect("a database");
        let fixture = OnceFixture::open(&database.url, None).await;
        let stopping = Arc::clone(&cluster);
        let handler = fixture.handler(move |run| {
            let cluster = Arc::clone(&stopping);
            async move {
                run.order().await;
                tokio::task::spawn_blocking(move || cluster.stop(StopMode::Immediate))
                    .await
                    .unwrap()
                    .unwrap();
                run.created()
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler.clone());
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        let meanwhile = keyed("k2").send(&fixture.orders(Mode::Opaque)).await;
        meanwhile.assert_problem(503, "store_unavailable");
        let starting = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || starting.start_again()).await.unwrap().unwrap();
        fixture.keeper.drained().await;
        assert!(is_settled(fixture.record("k1").await.as_ref()));
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        assert_eq!(handler.runs(), 1);
        fixture.assert_effects(1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_26_claim_with_lost_response_is_recognized() {
    in_time(async {
        let fixture = OnceFixture::postgres().await;
        let relay = Relay::before(&fixture.url).await;
        let node = OnceFixture::at(fixture.location().by(relay.url(&fixture.url))).await;
        let orders = node.orders(Mode::Opaque);
        // Prepared once, so the next claim is a single message.
        keyed("warm").send(&orders).await.assert_first(201, "order 1");
        relay.arm("the-lost-claim", Cut::After);
        keyed("the-lost-claim").send(&orders).await.assert_first(201, "order 2");
        assert!(relay.has_cut());
        keyed("the-lost-claim").send(&orders).await.assert_replay(201, "order 2");
        fixture.assert_effects(2).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commit_with_unknown_outcome_is_read_back() {
    in_time(async {
        let fixture = OnceFixture::postgres().await;
        let relay = Relay::before(&fixture.url).await;
        let pool = PgPool::connect_with(relay.options(&fixture.url)).await.unwrap();
        for mode in IN_TRANSACTION {
            let before = fixture.effects().await;
            let (done, not_done) = (format!("done-{mode:?}"), format!("not-done-{mode:?}"));
            let once = fixture.once(mode).guarantee(Guarantee::Transactional(pool.clone().into()));
            let orders = fixture.serve(once, fixture.ordering());
            relay.arm("COMMIT", Cut::After);
            keyed(&done).send(&orders).await.assert_first(201, "order 1");
            assert!(relay.has_cut());
            fixture.assert_effects(before + 1).await;
            keyed(&done).send(&orders).await.assert_replay(201, "order 1");
            relay.arm("COMMIT", Cut::Before);
            let answer = keyed(&not_done).send(&orders).await;
            answer.assert_problem(503, "store_unavailable");
            assert!(relay.has_cut());
            fixture.keeper.drained().await;
            fixture.assert_effects(before + 1).await;
            assert_eq!(fixture.phase(&not_done).await, None);
            keyed(&not_done).send(&orders).await.assert_first(201, "order 3");
            fixture.assert_effects(before + 2).await;
        }
    })
    .await;
}

/// A node whose connection to the store can go silent, with leases so short that it does not wait long.
async fn node_behind(relay: &Relay, fixture: &OnceFixture) -> OnceFixture {
    OnceFixture::at(fixture.location().by(relay.url(&fixture.url))).await
}

/// The server is reachable and silent: no connection breaks, so nothing fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_silent_before_claim_returns_problem_and_runs_nothing() {
    in_time(async {
        let fixture = OnceFixture::postgres().await;
        let relay = Relay::before(&fixture.url).await;
        let node = node_behind(&relay, &fixture).await;
        let orders = node.serve(node.once(Mode::Opaque).lease(SHORT_LEASE), node.ordering());
        // A recently used connection is not pinged.
        keyed("warm").send(&orders).await.assert_first(201, "order 1");
        relay.fall_silent();
        keyed("k1").send(&orders).await.assert_problem(503, "store_unavailable");
        fixture.assert_effects(1).await;
        assert_eq!(node.keeper.in_flight(), 1, "the claim may still be written");
        relay.speak();
        node.keeper.drained().await;
        assert_eq!(fixture.phase("k1").await, None, "and was released, so it does not look like a crash");
        keyed("k1").send(&orders).await.assert_first(201, "order 2");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_silent_after_effect_does_not_delay_response() {
    in_time(async {
        let fixture = OnceFixture::postgres().await;
        let relay = Relay::before(&fixture.url).await;
        let node = node_behind(&relay, &fixture).await;
        let silenced = relay.clone();
        let handler = node.handler(move |run| {
            let relay = silenced.clone();
            async move {
                run.order().await;
                relay.fall_silent();
                run.created()
            }
        });
        let orders = node.serve(node.once(Mode::Opaque).lease(SHORT_LEASE), handler.clone());
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        assert_eq!(node.keeper.in_flight(), 1, "it is not stored yet");
        relay.speak();
        node.keeper.drained().await;
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        assert_eq!(handler.runs(), 1);
    })
    .await;
}

/// Separate polls would be separate messages; claims are batched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_duplicates_share_store_queries() {
    const MANY: usize = 1_000;
    in_time(async {
        let fixture = OnceFixture::postgres().await;
        let relay = Relay::before(&fixture.url).await;
        let node = node_behind(&relay, &fixture).await;
        let gate = HandlerGate::shut();
        let handler = node.created_after(&gate);
        let once = node.once(Mode::Opaque).in_flight_wait(Duration::from_secs(1));
        let orders = node.serve(once, handler);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let before = relay.asked();
        let waiting: Vec<_> = (0..MANY).map(|_| keyed("k1").start(&orders)).collect();
        for duplicate in waiting {
            duplicate.await.unwrap().assert_problem(202, "key_in_flight");
        }
        let asked = relay.asked() - before;
        assert!(asked < MANY, "{asked} messages for {MANY} duplicates");
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
    })
    .await;
}
