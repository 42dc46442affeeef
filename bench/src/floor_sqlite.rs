//! SQLite's floors: a bare loop that writes the rows of the same work on one connection, one or 64 per commit.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::RecordName;
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use sqlx::query::Query;
use sqlx::sqlite::{
    Sqlite, SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool,
    SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};
use uuid::Uuid;

use crate::report::Stopwatch;

const NOW: i64 = 1_760_000_000_000_000;
const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";

type Statement = Query<'static, Sqlite, SqliteArguments>;

/// Creates a fresh file, and a connection with the store's write settings.
async fn fresh() -> (SqliteTestFile, SqliteConnection) {
    let file = fresh_file();
    let mut connection = options(&file.url).connect().await.expect("a file");
    connection.execute(include_str!("../floor/sqlite.sql")).await.expect("the floor's tables");
    (file, connection)
}

fn options(url: &str) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::from_str(url).expect("an address").create_if_missing(true);
    options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full)
}

/// Returns the pool of a service written by hand, on a file with this table.
pub(crate) async fn pool(url: &str, table: &'static str) -> SqlitePool {
    let options = options(url).busy_timeout(Duration::from_secs(30));
    // One connection: SQLite has one writer, and waiting for a connection is fairer than waiting for its lock.
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.expect("a pool");
    sqlx::query(table).execute(&pool).await.expect("a table");
    pool
}

/// Returns the messages per second, with this many per transaction: one statement for them, and one that makes them
/// claimable.
pub(crate) async fn enqueue(seconds: u32, group: usize) -> f64 {
    let (_file, mut connection) = fresh().await;
    let messages = rows(
        "INSERT INTO floor_messages VALUES",
        "(?, ?, ?, ?, ?, ?, ?, NULL, 2, 9, NULL, NULL, ?)",
        "ON CONFLICT DO NOTHING",
        group,
    );
    let ready = rows("INSERT INTO floor_ready VALUES", "(?, 2, ?)", "", group);
    let (watch, mut done) = (Stopwatch::start(), 0);
    while watch.elapsed() < Duration::from_secs(u64::from(seconds)) {
        let ids: Vec<Uuid> = (0..group).map(|_| Uuid::now_v7()).collect();
        let (mut message, mut ready_row) = (query(&messages), query(&ready));
        for id in &ids {
            message = message
                .bind(id)
                .bind("orders")
                .bind("alice")
                .bind(Uuid::now_v7().to_string())
                .bind([7_u8; 32].as_slice())
                .bind("application/json")
                .bind([b'x'; 200].as_slice())
                .bind(NOW);
            ready_row = ready_row.bind("orders").bind(id);
        }
        run(&mut connection, sqlx::query(BEGIN)).await;
        assert_eq!(run(&mut connection, message).await, group);
        assert_eq!(run(&mut connection, ready_row).await, group);
        run(&mut connection, sqlx::query(COMMIT)).await;
        done += group;
    }
    watch.rate(done)
}

/// Returns the claims with settles per second: this many claims in one transaction, then as many settles in another,
/// one statement each.
pub(crate) async fn ledger(seconds: u32, group: usize) -> f64 {
    let (_file, mut connection) = fresh().await;
    let claims = rows(
        "INSERT INTO floor_ledger (name, operation, identity, key, fingerprint, request_digest, state, fence, claim_id, lease_until, \
         created_at, claimed_at) VALUES",
        "(?, ?, ?, ?, ?, ?, 'claimed', ?, ?, ?, ?, ?)",
        "ON CONFLICT DO NOTHING",
        group,
    );
    let settles = rows(
        "WITH i (name, fence, body, completed_at, expires_at) AS (VALUES",
        "(?, ?, ?, ?, ?)",
        ") UPDATE floor_ledger AS l SET state = 'applied', lease_until = NULL, status = 201, headers = x'00', body = i.body, \
         completed_at = i.completed_at, expires_at = i.expires_at FROM i WHERE l.name = i.name AND l.fence = i.fence AND l.state = 'claimed'",
        group,
    );
    let (watch, mut done) = (Stopwatch::start(), 0);
    let mut fence = 0_i64;
    while watch.elapsed() < Duration::from_secs(u64::from(seconds)) {
        let (mut claim, mut settle) = (query(&claims), query(&settles));
        for name in (0..group).map(|_| name()) {
            fence += 1;
            claim = bind_claim(claim, &name, fence);
            settle = settle
                .bind(name.hash().as_slice())
                .bind(fence)
                .bind([b'x'; 200].as_slice())
                .bind(NOW)
                .bind(NOW + 259_200_000_000);
        }
        for statement in [claim, settle] {
            run(&mut connection, sqlx::query(BEGIN)).await;
            assert_eq!(run(&mut connection, statement).await, group);
            run(&mut connection, sqlx::query(COMMIT)).await;
        }
        done += group;
    }
    watch.rate(done)
}

fn name() -> RecordName {
    RecordName {
        operation: "orders.create".into(),
        identity: "alice".into(),
        key: IdempotencyKey::parse(&Uuid::now_v7().to_string()).expect("a key"),
    }
}

fn bind_claim(claim: Statement, name: &RecordName, fence: i64) -> Statement {
    claim
        .bind(name.hash().as_slice())
        .bind(&name.operation)
        .bind(&name.identity)
        .bind(name.key.as_str())
        .bind([7_u8; 32].as_slice())
        .bind([7_u8; 32].as_slice())
        .bind(fence)
        .bind(Uuid::now_v7())
        .bind(NOW + 30_000_000)
        .bind(NOW)
        .bind(NOW)
}

/// Builds a statement with this many rows.
fn rows(head: &str, row: &str, tail: &str, count: usize) -> Arc<str> {
    format!("{head} {} {tail}", vec![row; count].join(", ")).into()
}

fn query(sql: &Arc<str>) -> Statement {
    sqlx::query(AssertSqlSafe(Arc::clone(sql)))
}

/// Runs a statement and returns how many rows it wrote.
async fn run(connection: &mut SqliteConnection, statement: Statement) -> usize {
    let done = statement.execute(connection).await.expect("written");
    usize::try_from(done.rows_affected()).expect("few")
}
