//! Batches with one locked or bad row: it fails alone, and the others get their own results.

use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::KeySettled;
use ichido_store::message::Enqueued;
use ichido_store::testing::postgres::fresh_database;
use sqlx::Connection as _;

use super::proxy::FaultProxy;
use super::words::{WAITING, hold, keep, number, other, release, run, until};
use crate::fixture::{message, with_time_limit};

/// Cancels the waits for locks, as if they had timed out, and counts them.
const END_WAITS: &str = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// One part of a batch was written, another met a locked row, and the batch is retried in halves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn committed_settle_is_reported_despite_a_locked_row() {
    with_time_limit(Box::pin(async {
        let database = fresh_database().await;
        let store = Store::open(&database.url, 1).await.unwrap();
        // Its only connection waits long: the test decides when a wait ends.
        let mut connection = store.postgres_pool().unwrap().acquire().await.unwrap();
        sqlx::query("SET lock_timeout = '1min'").execute(&mut *connection).await.unwrap();
        drop(connection);
        let mut fences = Vec::new();
        for key in ["first", "kept", "let-go", "held"] {
            fences.push(run(&store, key).await);
        }
        let (mut theirs, mut watching) = (other(&database.url).await, other(&database.url).await);
        let mut open = theirs.begin().await.unwrap();
        sqlx::query("SELECT 1 FROM ichido.ledger WHERE key IN ('first', 'held') FOR UPDATE")
            .fetch_all(&mut *open)
            .await
            .unwrap();
        // The first one keeps the stream busy until the other three have gathered behind it.
        let first = tokio::spawn({
            let (store, settle) = (store.clone(), keep("first", fences[0]));
            async move { store.keys().settle(settle).await }
        });
        until("the first one waits", async || number(&mut watching, WAITING).await == 1).await;
        let [kept, released, held] =
            [keep("kept", fences[1]), release("let-go", fences[2]), hold("held", fences[3])]
                .map(|settle| Box::pin(store.keys().settle(settle)));
        let end_both_waits = async {
            until("the first one's wait is ended", async || number(&mut watching, END_WAITS).await == 1)
                .await;
            assert!(matches!(first.await.unwrap(), Err(StoreError::Busy)));
            until("that of the three is ended", async || number(&mut watching, END_WAITS).await == 1).await;
        };
        // In this order: each of the three is submitted when it is first polled, before the first one's wait ends.
        let (kept, released, held, ()) = tokio::join!(biased; kept, released, held, end_both_waits);
        assert_eq!(kept.unwrap(), KeySettled::Settled, "kept");
        assert_eq!(released.unwrap(), KeySettled::Settled, "let go");
        assert!(matches!(held, Err(StoreError::Busy)), "held");
        open.rollback().await.unwrap();
    }))
    .await;
}

/// The server still executes a statement of a lost connection; a retry finds it busy. That does not prove that nothing was
/// done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_after_a_lost_response_is_not_reported_as_undone() {
    with_time_limit(async {
        let database = fresh_database().await;
        let proxy = FaultProxy::to(&database.url).await;
        let store = Store::open(&proxy.url, 4).await.unwrap();
        let mut administrator = other(&database.url).await;
        for sql in [
            // Like a slow standby or a slow disk: the commit takes time, until the administrator releases it.
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN SET LOCAL lock_timeout = 0; PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$",
            "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON ichido.messages DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()",
            "SELECT pg_advisory_lock(1)",
        ] {
            sqlx::query(sql).execute(&mut administrator).await.unwrap();
        }
        proxy.hang_up_after("slow-key");
        let answer = store.messages().enqueue(message("slow-key")).await;
        assert!(matches!(answer, Err(StoreError::Unknown(_))), "{answer:?}");
        assert_eq!(proxy.met(), 1);
        sqlx::query("SELECT pg_advisory_unlock(1)").execute(&mut administrator).await.unwrap();
        let count = "SELECT count(*) FROM ichido.messages";
        until("it is done", async || number(&mut administrator, count).await == 1).await;
        let again = store.messages().enqueue(message("slow-key")).await;
        assert!(matches!(again, Ok(Enqueued::Replay { .. })), "{again:?}");
    })
    .await;
}

/// A row that no server survives affects no other row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_breaks_every_connection_fails_alone() {
    with_time_limit(async {
        let database = fresh_database().await;
        let store = Store::open(&database.url, 4).await.unwrap();
        let mut administrator = other(&database.url).await;
        for sql in [
            "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
            "CREATE TRIGGER bad AFTER INSERT ON ichido.messages FOR EACH ROW WHEN (NEW.key = 'bad') EXECUTE FUNCTION bad()",
        ] {
            sqlx::query(sql).execute(&mut administrator).await.unwrap();
        }
        let keys = (0..30).map(|number| format!("good-{number}")).chain(["bad".to_owned()]);
        let mut answers = store.messages().enqueue_all(keys.map(|key| message(&key)).collect()).await;
        let bad = answers.pop().unwrap();
        assert!(matches!(bad, Err(StoreError::Unknown(_))), "{bad:?}");
        assert!(answers.iter().all(|answer| matches!(answer, Ok(Enqueued::New { .. }))), "{answers:?}");
    })
    .await;
}
