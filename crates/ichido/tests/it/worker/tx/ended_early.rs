//! Transactions that end before their handler does.
// Spec: H1.

use std::time::Duration;

use ichido::Pool;
use ichido::destination::JobError;
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;

use super::super::fixture::{WorkerFixture, both_databases, in_time};
use super::business::{Business, Order, Receipt};
use super::{handler, place, start};

/// More than the business has connections.
const LATER_ORDERS: std::ops::Range<i64> = 10..22;

both_databases! {
    /// Its rows may be committed or lost. Settled alone, its message would be sent without them, or done twice.
    #[test]
    async fn transaction_that_its_handler_ended_parks_the_message(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let _worker = start(&fixture, &business, |_, job, tx| async move {
            let n = job.payload.n;
            place(job, tx.clone()).await?;
            match n {
                1 | 2 => tx.execute("COMMIT").await?,
                3 | 4 => tx.execute("ROLLBACK").await?,
                _ => (),
            }
            if matches!(n, 2 | 4) { Err(JobError::retry("the printer is on fire")) } else { Ok(()) }
        });
        for n in 1..=4 {
            let id = fixture.put_in(Order { n }.draft()).await;
            let row = fixture.until(id, StateName::Parked).await;
            assert_eq!((row.attempts, row.effect), (1, Effect::Unknown), "order {n}");
            let why = row.last_error_text.unwrap();
            assert!(why.contains("run no COMMIT or ROLLBACK in a handler"), "{why}");
        }
        // The connections are as good as before.
        for n in LATER_ORDERS {
            let id = fixture.put_in(Order { n }.draft()).await;
            assert_eq!(fixture.until(id, StateName::Sent).await.attempts, 1, "order {n}");
        }
        let expected: Vec<i64> = [1, 2].into_iter().chain(LATER_ORDERS).collect();
        business.assert_orders(&expected).await;
    }
}

/// A transaction is open when it is settled, but not the one that was begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_transaction_of_a_handler_parks_the_message_on_postgres() {
    in_time(WorkerFixture::postgres().await, |fixture| async move {
        let business = Business::open(&fixture).await;
        let _worker = start(&fixture, &business, |_, job, tx| async move {
            tx.order(job.payload.n).await?;
            tx.execute(if job.payload.n == 1 { "COMMIT; BEGIN" } else { "ROLLBACK AND CHAIN" }).await
        });
        for n in 1..=2 {
            let id = fixture.put_in(Order { n }.draft()).await;
            let row = fixture.until(id, StateName::Parked).await;
            assert_eq!((row.attempts, row.effect), (1, Effect::Unknown), "order {n}");
        }
        business.assert_orders(&[1]).await;
    })
    .await;
}

/// SQLite says that a transaction is open, but not which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_transaction_of_a_handler_parks_the_message_on_sqlite() {
    in_time(WorkerFixture::sqlite().await, |fixture| async move {
        let business = Business::open(&fixture).await;
        let _worker = start(&fixture, &business, |_, job, tx| async move {
            let n = job.payload.n;
            tx.order(n).await?;
            tx.execute(if n == 1 { "ROLLBACK; BEGIN" } else { "COMMIT; BEGIN" }).await?;
            // Its statement finds a transaction open.
            tx.enqueue(&Receipt { order: n }).await?;
            if n == 3 { Err(JobError::retry("the printer is on fire")) } else { Ok(()) }
        });
        for n in 1..=3 {
            let id = fixture.put_in(Order { n }.draft()).await;
            let row = fixture.until(id, StateName::Parked).await;
            assert_eq!((row.attempts, row.effect), (1, Effect::Unknown), "order {n}");
        }
        business.assert_orders(&[2, 3]).await;
    })
    .await;
}

/// Its transaction is marked without a query, after which the level could not be chosen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handler_chooses_its_isolation_level_on_postgres() {
    in_time(WorkerFixture::postgres().await, |fixture| async move {
        let business = Business::open(&fixture).await;
        let _worker = start(&fixture, &business, |_, job, tx| async move {
            tx.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").await?;
            tx.execute("SAVEPOINT a; SELECT 1; ROLLBACK TO a").await?;
            tx.order(job.payload.n).await
        });
        let id = fixture.put_in(Order { n: 1 }.draft()).await;
        assert_eq!(fixture.until(id, StateName::Sent).await.attempts, 1);
        business.assert_orders(&[1]).await;
    })
    .await;
}

/// Longer than the worker waits for a rollback. The audit trail of other tests waits for it.
const STATEMENT: &str = "SELECT pg_sleep(30)";

/// Its rollback waits for the statement, and the message does not wait for the rollback.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_that_runs_on_does_not_hold_its_message() {
    let fixture = WorkerFixture::postgres().await;
    let business = Business::open(&fixture).await;
    let sleeping = handler(&business, |_, job, tx| async move {
        tx.order(job.payload.n).await?;
        tx.execute(STATEMENT).await
    });
    // Long enough for the statement to be sent, on a slow machine too.
    let sleeping = sleeping.timeout(Duration::from_secs(2));
    let _worker = fixture.builder_with(sleeping, |_| ()).pool(business.pool.clone()).start().unwrap();
    let id = fixture.put_in(Order { n: 1 }.draft()).await;
    let row = fixture.until(id, StateName::Failed).await;
    assert_eq!((row.attempts, row.effect), (1, Effect::NotDone));
    let Pool::Postgres(pool) = &business.pool else { unreachable!("it is on PostgreSQL") };
    let still_runs = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'active' AND query = $1";
    let ended: Vec<bool> = sqlx::query_scalar(still_runs).bind(STATEMENT).fetch_all(pool).await.unwrap();
    assert_eq!(ended, [true], "the statement ran until now");
    business.assert_orders(&[]).await;
}
