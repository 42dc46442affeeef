//! Transactional mode: outcome and writes commit together, or neither.
// Spec: A3.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use ichido::once::{Pool, RetryTransaction, Tx, TxError, limits};
use ichido_core::ledger::RecordPhase;
use sqlx::{Executor as _, Postgres, Sqlite};

use super::fixture::{HandlerRun, IN_TRANSACTION, Mode, OnceFixture, both_databases, keyed, respond};
use crate::handler_gate::HandlerGate;

/// A lock on a handler's transaction, on either database.
enum TxHold {
    Postgres { _guard: ichido::once::TxGuard<Postgres> },
    Sqlite { _guard: ichido::once::TxGuard<Sqlite> },
}

#[derive(Clone)]
enum AnyTx {
    Postgres(Tx<Postgres>),
    Sqlite(Tx<Sqlite>),
}

impl AnyTx {
    fn of(run: &HandlerRun) -> Self {
        let extensions = run.request.extensions();
        match (extensions.get(), extensions.get()) {
            (Some(tx), _) => Self::Postgres(Tx::clone(tx)),
            (_, Some(tx)) => Self::Sqlite(Tx::clone(tx)),
            (None, None) => panic!("no transaction"),
        }
    }

    async fn lock(&self) -> Result<TxHold, TxError> {
        Ok(match self {
            Self::Postgres(tx) => TxHold::Postgres { _guard: tx.lock().await? },
            Self::Sqlite(tx) => TxHold::Sqlite { _guard: tx.lock().await? },
        })
    }

    async fn execute(&self, sql: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(tx) => tx.lock().await.unwrap().execute(sql).await.map(drop),
            Self::Sqlite(tx) => tx.lock().await.unwrap().execute(sql).await.map(drop),
        }
    }
}

both_databases! {
    #[test]
    async fn a_handler_that_fails_has_done_nothing(fixture: OnceFixture) {
        for mode in IN_TRANSACTION {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let handler = fixture.handler(|run| async move {
                run.order().await;
                match run.number {
                    1 => respond(StatusCode::INTERNAL_SERVER_ERROR, "failed"),
                    2 => panic!("a fault of the handler's"),
                    _ => run.created(),
                }
            });
            let orders = fixture.serve(fixture.once(mode), handler);
            keyed(&key).send(&orders).await.assert_first(500, "failed");
            fixture.assert_effects(before).await;
            keyed(&key).send(&orders).await.assert_problem(500, "handler_failed");
            fixture.assert_effects(before).await;
            keyed(&key).send(&orders).await.assert_first(201, "order 3");
            fixture.assert_effects(before + 1).await;
        }
    }

    #[test]
    async fn a_redirect_commits_as_well(fixture: OnceFixture) {
        let handler = fixture.handler(|run| async move {
            run.order().await;
            respond(StatusCode::SEE_OTHER, "")
        });
        let orders = fixture.serve(fixture.once(Mode::Transactional), handler);
        keyed("k1").send(&orders).await.assert_first(303, "");
        keyed("k1").send(&orders).await.assert_replay(303, "");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn transaction_held_after_response_is_rolled_back(fixture: OnceFixture) {
        for mode in IN_TRANSACTION {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let gate = HandlerGate::shut();
            let inside = gate.clone();
            let handler = fixture.handler(move |run| {
                let gate = inside.clone();
                async move {
                    run.order().await;
                    if run.number == 1 {
                        let hold = AnyTx::of(&run).lock().await.unwrap();
                        tokio::spawn(async move {
                            gate.pass().await;
                            drop(hold);
                        });
                    }
                    run.created()
                }
            });
            let orders = fixture.serve(fixture.once(mode), handler);
            let answer = keyed(&key).send(&orders).await;
            answer.assert_problem(500, "transaction_failed");
            gate.reached(1).await;
            gate.open(1);
            fixture.until(&key, |record| record.is_none()).await;
            fixture.assert_effects(before).await;
            keyed(&key).send(&orders).await.assert_first(201, "order 2");
            fixture.assert_effects(before + 1).await;
        }
    }

    /// Its rows may be committed or lost, so its response is not stored.
    #[test]
    async fn transaction_that_its_handler_ended_stores_no_response(fixture: OnceFixture) {
        for mode in IN_TRANSACTION {
            let before = fixture.effects().await;
            let handler = fixture.handler(|run| async move {
                run.order().await;
                if run.number == 1 {
                    AnyTx::of(&run).execute("ROLLBACK").await.unwrap();
                }
                run.created()
            });
            let orders = fixture.serve(fixture.once(mode), handler);
            let key = format!("{mode:?}");
            keyed(&key).send(&orders).await.assert_problem(500, "transaction_failed");
            fixture.assert_effects(before).await;
            assert_eq!(fixture.phase(&key).await, None);
            keyed(&key).send(&orders).await.assert_first(201, "order 2");
            keyed(&format!("{mode:?}-2")).send(&orders).await.assert_first(201, "order 3");
            fixture.assert_effects(before + 2).await;
        }
    }

    #[test]
    async fn transaction_ends_with_its_handler(fixture: OnceFixture) {
        let kept = Arc::new(Mutex::new(None));
        let keeping = Arc::clone(&kept);
        let handler = fixture.handler(move |run| {
            *keeping.lock().unwrap() = Some(AnyTx::of(&run));
            async move {
                run.order().await;
                run.created()
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Transactional), handler);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        let kept = kept.lock().unwrap().take().unwrap();
        assert!(matches!(kept.lock().await.map(drop), Err(TxError::Over)));
        fixture.assert_effects(1).await;
    }

    /// Until then, others can write: on SQLite an open transaction would block them.
    #[test]
    async fn transaction_begins_with_its_first_use(fixture: OnceFixture) {
        let store = fixture.store.clone();
        let handler = fixture.handler(move |run| {
            let store = store.clone();
            async move {
                store.nodes().heartbeat(uuid::Uuid::now_v7(), "other").await.unwrap();
                run.order().await;
                run.created()
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Transactional), handler);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn key_is_settled_although_the_transaction_was_not_used(fixture: OnceFixture) {
        let handler = fixture.handler(|run| async move { run.created() });
        let orders = fixture.serve(fixture.once(Mode::Transactional), handler);
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        assert!(matches!(fixture.phase("k1").await, Some(RecordPhase::Settled { .. })));
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        fixture.assert_effects(0).await;
    }

    #[test]
    async fn conflicting_transaction_reruns_if_handler_asks(fixture: OnceFixture) {
        for mode in IN_TRANSACTION {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let handler = fixture.handler(|run| async move {
                run.order().await;
                if run.number < 3 {
                    let mut response = respond(StatusCode::SERVICE_UNAVAILABLE, "met another");
                    response.extensions_mut().insert(RetryTransaction);
                    return response;
                }
                run.created()
            });
            let orders = fixture.serve(fixture.once(mode), handler);
            keyed(&key).send(&orders).await.assert_first(201, "order 3");
            fixture.assert_effects(before + 1).await;
            let always = fixture.handler(|run| async move {
                run.order().await;
                let mut response = respond(StatusCode::SERVICE_UNAVAILABLE, "met another");
                response.extensions_mut().insert(RetryTransaction);
                response
            });
            let orders = fixture.serve(fixture.once(mode), always.clone());
            keyed(&format!("{key}-always")).send(&orders).await.assert_first(503, "met another");
            assert_eq!(always.runs(), usize::try_from(limits::MAX_RUNS).unwrap());
            assert_eq!(fixture.phase(&format!("{key}-always")).await, None);
            fixture.assert_effects(before + 1).await;
        }
    }

    #[test]
    async fn refused_commit_is_reported_and_does_nothing(fixture: OnceFixture) {
        fixture.sql("CREATE TABLE parents (id INTEGER PRIMARY KEY)", "CREATE TABLE parents (id INTEGER PRIMARY KEY)").await;
        let children = "CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)";
        fixture.sql(children, children).await;
        for mode in IN_TRANSACTION {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let handler = fixture.handler(|run| async move {
                run.order().await;
                // Only the commit finds that the parent is missing.
                AnyTx::of(&run).execute("INSERT INTO children VALUES (7)").await.unwrap();
                run.created()
            });
            let orders = fixture.serve(fixture.once(mode), handler);
            keyed(&key).send(&orders).await.assert_problem(500, "transaction_failed");
            fixture.assert_effects(before).await;
            assert_eq!(fixture.phase(&key).await, None);
            keyed(&key).send(&fixture.orders(mode)).await.assert_first(201, "order 1");
        }
    }

    #[test]
    async fn unusable_pool_runs_nothing(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Transactional);
        match &fixture.business {
            Pool::Postgres(pool) => pool.close().await,
            Pool::Sqlite(pool) => pool.close().await,
        }
        let answer = keyed("k1").send(&orders).await;
        answer.assert_problem(503, "store_unavailable");
        assert_eq!(answer.field("retry-after"), Some("5"));
        assert_eq!(fixture.phase("k1").await, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serialization_failure_at_commit_reruns_handler() {
    let fixture = OnceFixture::postgres().await;
    let Pool::Postgres(pool) = fixture.business.clone() else { panic!("not PostgreSQL") };
    let handler = fixture.handler(move |run| {
        let pool = pool.clone();
        async move {
            let tx = AnyTx::of(&run);
            tx.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").await.unwrap();
            tx.execute("SELECT count(*) FROM orders").await.unwrap();
            let mut other = pool.begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE").await.unwrap();
            other.execute("SELECT count(*) FROM orders").await.unwrap();
            run.order().await;
            if run.number == 1 {
                // Each has read what the other writes: only one of them may commit, and `other` does.
                other.execute("INSERT INTO orders VALUES (2)").await.unwrap();
                other.commit().await.unwrap();
            }
            run.created()
        }
    });
    let orders = fixture.serve(fixture.once(Mode::Transactional), handler);
    keyed("k1").send(&orders).await.assert_first(201, "order 2");
    fixture.assert_effects(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handler_can_recognize_serialization_failure() {
    let fixture = OnceFixture::postgres().await;
    let Pool::Postgres(pool) = fixture.business.clone() else { panic!("not PostgreSQL") };
    fixture.sql("INSERT INTO orders VALUES (0)", "").await;
    let handler = fixture.handler(move |run| {
        let pool = pool.clone();
        async move {
            let tx = AnyTx::of(&run);
            tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await.unwrap();
            tx.execute("SELECT count(*) FROM orders").await.unwrap();
            if run.number == 1 {
                pool.execute("UPDATE orders SET number = number + 1").await.unwrap();
            }
            match tx.execute("UPDATE orders SET number = number + 1").await {
                Ok(()) => run.created(),
                Err(error) => {
                    assert!(RetryTransaction::is_needed_for(&error), "{error}");
                    let mut response = respond(StatusCode::SERVICE_UNAVAILABLE, "met another");
                    response.extensions_mut().insert(RetryTransaction);
                    response
                }
            }
        }
    });
    let orders = fixture.serve(fixture.once(Mode::Transactional), handler);
    keyed("k1").send(&orders).await.assert_first(201, "order 2");
    let other = fixture.handler(|run| async move {
        let error = AnyTx::of(&run).execute("SELECT 1 / 0").await.unwrap_err();
        assert!(!RetryTransaction::is_needed_for(&error), "{error}");
        // It responds although its transaction has failed.
        run.created()
    });
    let orders = fixture.serve(fixture.once(Mode::Transactional), other);
    keyed("k2").send(&orders).await.assert_problem(500, "transaction_failed");
    assert_eq!(fixture.phase("k2").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pool_on_another_database_is_detected() {
    let (fixture, elsewhere) = (OnceFixture::postgres().await, OnceFixture::postgres().await);
    let once = fixture.once(Mode::Transactional);
    let once = once.guarantee(ichido::once::Guarantee::Transactional(elsewhere.business.clone()));
    let orders = fixture.serve(once, fixture.ordering());
    keyed("k1").send(&orders).await.assert_problem(500, "transaction_failed");
    elsewhere.assert_effects(0).await;
    assert_eq!(fixture.phase("k1").await, None);
}

#[tokio::test]
async fn locking_a_transaction_twice_fails() {
    let fixture = OnceFixture::sqlite().await;
    let handler = fixture.handler(|run| async move {
        let tx = AnyTx::of(&run);
        let hold = tx.lock().await.unwrap();
        // From here on, time advances whenever nothing else happens.
        tokio::time::pause();
        let second = tx.lock().await.map(drop);
        tokio::time::resume();
        drop(hold);
        assert!(matches!(second, Err(TxError::Locked)), "{second:?}");
        run.order().await;
        run.created()
    });
    let orders = fixture.serve(fixture.once(Mode::Transactional), handler);
    keyed("k1").send(&orders).await.assert_first(201, "order 1");
    assert!(matches!(fixture.phase("k1").await, Some(RecordPhase::Settled { .. })));
}

/// The handler's transaction is on a file that the next start will not find.
#[tokio::test]
async fn removed_database_file_returns_problem() {
    let fixture = OnceFixture::sqlite().await;
    let file = std::path::PathBuf::from(fixture.url.strip_prefix("sqlite:").unwrap());
    let handler = fixture.handler(move |run| {
        let file = file.clone();
        async move {
            run.order().await;
            std::fs::remove_file(&file).unwrap();
            run.created()
        }
    });
    let orders = fixture.serve(fixture.once(Mode::Transactional), handler);
    keyed("k1").send(&orders).await.assert_problem(503, "store_unavailable");
    keyed("k2").send(&orders).await.assert_problem(503, "store_unavailable");
}
