//! Cases 28 to 30: the store's clock counts, and an unreadable record is not run.
// Spec: A2, A5.

use std::time::Duration;

use ichido_core::ledger::RecordPhase;
use ichido_store::testing::while_busy;
use sqlx::Row as _;

use super::fixture::{Mode, OnceFixture, both_databases, keyed};
use crate::handler_gate::HandlerGate;

const TTL: Duration = Duration::from_hours(72);
/// A minute before that.
const JUST_BEFORE: Duration = Duration::from_mins(72 * 60 - 1);

both_databases! {
    #[test]
    async fn case_28_a_key_expires_by_the_stores_clock_alone(fixture: OnceFixture) {
        let other = fixture.another_node().await;
        let (here, there) = (fixture.orders(Mode::Opaque), other.orders(Mode::Opaque));
        keyed("k1").send(&here).await.assert_first(201, "order 1");
        // Shortly before it expires it is there, on every node.
        fixture.pass(JUST_BEFORE);
        keyed("k1").send(&here).await.assert_replay(201, "order 1");
        keyed("k1").send(&there).await.assert_replay(201, "order 1");
        fixture.pass(Duration::from_mins(2));
        keyed("k1").send(&here).await.assert_first(201, "order 2");
    }

    #[test]
    async fn case_28_a_clock_that_is_set_ahead_for_a_moment_makes_no_key_new(fixture: OnceFixture) {
        const AHEAD_MICROS: i64 = 100 * 24 * 3_600 * 1_000_000;
        let orders = fixture.orders(Mode::Opaque);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        fixture.store.step_clock(AHEAD_MICROS);
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        fixture.pass(Duration::from_secs(15));
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        fixture.store.step_clock(-AHEAD_MICROS);
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        fixture.assert_effects(1).await;
        fixture.pass(TTL);
        keyed("k1").send(&orders).await.assert_first(201, "order 2");
    }

    #[test]
    async fn case_28_a_jump_of_the_clock_makes_nothing_run_twice(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let inside = gate.clone();
        let handler = fixture.handler(move |run| {
            let gate = inside.clone();
            async move {
                run.order().await;
                gate.pass().await;
                run.created()
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        // An hour, as another node sees it: the claim has lapsed, so its outcome is unknown; it is not run again.
        let other = fixture.another_node().await;
        other.pass(Duration::from_hours(1));
        keyed("k1").send(&other.orders(Mode::Opaque)).await.assert_problem(409, "outcome_unknown");
        // Its owner is alive, and settles it.
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn case_29_replay_survives_a_running_sweep_then_key_is_new(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        fixture.pass(JUST_BEFORE);
        let sweeping = fixture.store.clone();
        let sweeps = tokio::spawn(async move {
            for _ in 0..20 {
                assert_eq!(while_busy(|| sweeping.keys().sweep(100)).await, 0, "its time is not over");
            }
        });
        for _ in 0..20 {
            keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        }
        sweeps.await.unwrap();
        fixture.pass(Duration::from_mins(2));
        keyed("k1").send(&orders).await.assert_first(201, "order 2");
        fixture.pass(TTL + Duration::from_secs(1));
        // The layer deletes it.
        fixture.until("k1", |record| record.is_none()).await;
        keyed("k1").send(&orders).await.assert_first(201, "order 3");
    }

    #[test]
    async fn expired_key_can_be_used_for_another_request(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        keyed("k1").body("99 EUR").send(&orders).await.assert_problem(409, "key_conflict");
        fixture.pass(TTL + Duration::from_secs(1));
        keyed("k1").body("99 EUR").send(&orders).await.assert_first(201, "order 2");
    }

    #[test]
    async fn in_flight_or_unknown_key_never_expires(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let handler = fixture.created_after(&gate);
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let other = fixture.another_node().await;
        other.pass(TTL * 2);
        assert_eq!(other.store.keys().sweep(100).await.unwrap(), 0);
        keyed("k1").send(&other.orders(Mode::Opaque)).await.assert_problem(409, "outcome_unknown");
        other.pass(TTL * 2);
        assert_eq!(other.store.keys().sweep(100).await.unwrap(), 0);
        assert_eq!(fixture.phase("k1").await, Some(RecordPhase::Unknown));
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
    }

    #[test]
    async fn case_30_a_record_that_cannot_be_read_is_not_run_again(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        for (postgres, sqlite) in [
            // Headers of an unknown version, truncated headers, an invalid status, an invalid header name.
            ("UPDATE ichido.ledger SET headers = '\\x09'", "UPDATE ichido_ledger SET headers = x'09'"),
            ("UPDATE ichido.ledger SET headers = '\\x01000000ff'", "UPDATE ichido_ledger SET headers = x'01000000ff'"),
            (
                "UPDATE ichido.ledger SET headers = '\\x01', status = 7",
                "UPDATE ichido_ledger SET headers = x'01', status = 7",
            ),
            (
                "UPDATE ichido.ledger SET headers = '\\x0100000001200000000120', status = 200",
                "UPDATE ichido_ledger SET headers = x'0100000001200000000120', status = 200",
            ),
        ] {
            fixture.sql(postgres, sqlite).await;
            keyed("k1").send(&orders).await.assert_problem(500, "record_unreadable");
        }
        fixture.assert_effects(1).await;
        // Another key is not affected.
        keyed("k2").send(&orders).await.assert_first(201, "order 2");
    }

    #[test]
    async fn the_keys_of_a_batch_are_read_one_by_one(fixture: OnceFixture) {
        // An unreadable record does not affect other keys of the same batch.
        let orders = fixture.orders(Mode::Opaque);
        keyed("bad").send(&orders).await.assert_first(201, "order 1");
        fixture.sql("UPDATE ichido.ledger SET headers = '\\x09'", "UPDATE ichido_ledger SET headers = x'09'").await;
        let bad: Vec<_> = (0..10).map(|_| keyed("bad").start(&orders)).collect();
        let good: Vec<_> = (0..10).map(|number| keyed(&format!("k{number}")).start(&orders)).collect();
        for call in bad {
            call.await.unwrap().assert_problem(500, "record_unreadable");
        }
        for call in good {
            assert_eq!(call.await.unwrap().status(), 201);
        }
    }

    #[test]
    async fn key_of_unfinished_message_is_kept(fixture: OnceFixture) {
        use ichido::once::EnqueuedMessage;
        use ichido_core::key::IdempotencyKey;
        use ichido_store::message::{Enqueued, NewMessage, QueueName};
        let store = fixture.store.clone();
        let handler = fixture.handler(move |run| {
            let store = store.clone();
            async move {
                let key = IdempotencyKey::parse("m1").unwrap();
                let message = NewMessage::new(QueueName::parse("mails").unwrap(), "alice", key, b"hello".to_vec());
                let Ok(Enqueued::New { id }) = store.messages().enqueue(message).await else { panic!("not new") };
                let mut response = run.created();
                response.extensions_mut().insert(EnqueuedMessage(id));
                response
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        assert!(fixture.record("k1").await.unwrap().message_id.is_some());
        fixture.pass(TTL * 2);
        assert_eq!(fixture.store.keys().sweep(100).await.unwrap(), 0);
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_of_postgres_compares_keys_byte_by_byte() {
    let fixture = OnceFixture::postgres().await;
    let ichido::once::Pool::Postgres(pool) = &fixture.business else { panic!("not PostgreSQL") };
    let collation = "SELECT collname FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation \
                     WHERE a.attrelid = 'ichido.ledger'::regclass AND a.attname = 'key'";
    let row = sqlx::query(collation).fetch_one(pool).await.unwrap();
    assert_eq!(row.get::<String, _>(0), "C");
}
