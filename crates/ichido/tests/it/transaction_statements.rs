//! How many statements a handler's transaction costs on PostgreSQL, where each is a round trip. Counted at sqlx, without a clock.

use std::str::FromStr as _;
use std::sync::Mutex;
use std::time::Duration;

use ichido::destination::{Handler, Job, JobError};
use ichido::message::Message;
use ichido::{Pool, Tx};
use ichido_core::lifecycle::StateName;
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{ConnectOptions as _, Postgres};
use tracing::Level;

use crate::once::fixture::{Mode, OnceFixture, keyed};
use crate::worker::fixture::{QUEUE, WorkerFixture, message};
use process_for_tests::own_process;
use process_for_tests::statement_log::{Logged, for_each_statement};

/// The level at which the handlers' connections log. The store's own have another.
const OF_HANDLERS: Level = Level::INFO;
/// The handler's own statement, the settlement and COMMIT. sqlx does not log BEGIN.
const EXPECTED: usize = 3;

/// The statements of handlers since the last look.
static STATEMENTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn collect(statement: &Logged) {
    // A pool is checked once, in the background.
    if statement.level == OF_HANDLERS && !statement.text.contains("current_schema") {
        STATEMENTS.lock().unwrap().push(statement.text.clone());
    }
}

fn take() -> Vec<String> {
    std::mem::take(&mut *STATEMENTS.lock().unwrap())
}

/// Connections for handlers, whose statements are collected.
async fn logged(url: &str) -> Pool {
    let level = || OF_HANDLERS.as_str().parse().unwrap();
    let options = PgConnectOptions::from_str(url).unwrap();
    let options = options.log_statements(level()).log_slow_statements(level(), Duration::MAX);
    PgPool::connect_with(options).await.unwrap().into()
}

#[track_caller]
fn assert_expected(of: &str) {
    let statements = take();
    assert_eq!(statements.len(), EXPECTED, "{of}: {statements:#?}");
}

async fn endpoint() {
    let mut fixture = OnceFixture::postgres().await;
    fixture.business = logged(&fixture.url).await;
    for mode in [Mode::Transactional, Mode::Claimed] {
        let orders = fixture.orders(mode);
        // The first request also checks the pool.
        keyed(&format!("{mode:?}-1")).send(&orders).await.assert_first(201, "order 1");
        take();
        keyed(&format!("{mode:?}-2")).send(&orders).await.assert_first(201, "order 2");
        assert_expected(&format!("{mode:?}"));
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Parcel {}

impl Message for Parcel {
    const QUEUE: &str = QUEUE;
}

async fn job() {
    let fixture = WorkerFixture::postgres().await;
    let pool = logged(&fixture.url).await;
    let handler = Handler::transactional(|_: Job<Parcel>, tx: Tx<Postgres>| async move {
        sqlx::query("CREATE TABLE orders ()").execute(&mut *tx.lock().await?).await?;
        Ok::<_, JobError>(())
    });
    let worker = fixture.builder_with(handler, |_| ()).pool(pool).start().unwrap();
    take();
    let id = fixture.put_in(message("k1")).await;
    fixture.until(id, StateName::Sent).await;
    // Others see the commit before the worker knows of it, and logs it.
    worker.stop();
    worker.ended().await;
    assert_expected("a job");
}

#[test]
fn transaction_costs_one_statement_and_its_commit_on_postgres() {
    own_process::assert_passes("transaction_statements::child");
}

/// Not a test on its own: it changes the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above in its own process"]
async fn child() {
    if !own_process::is_own() {
        return;
    }
    for_each_statement(collect);
    // One after the other: the statements belong to the process.
    endpoint().await;
    job().await;
}
