//! The traps of batching on PostgreSQL, each with a test that fails without its fix.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, OperationGuarantee, Policy, PolicyDraft, RecordName, Settled};
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, KeySettled, StoredResponse};
use ichido_store::message::{ClaimOptions, Enqueued, NewMessage, QueueName};
use ichido_store::testing::postgres::{durable_database, fresh_database};
use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use crate::conformance;
use crate::fixture::StoreFixture;
use crate::wire::words::assert_never_deadlocked;

fn message(key: &str) -> NewMessage {
    let queue = QueueName::parse("orders").expect("a name");
    NewMessage::new(queue, "alice", IdempotencyKey::parse(key).expect("a key"), key.as_bytes().to_vec())
}

/// One key in somebody's open transaction must not stall the whole batch: that row is retried alone and gets `Busy`, and the
/// others are enqueued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_in_an_open_transaction_does_not_block_its_batch() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 4).await.expect("the store opens");
    let mut theirs = PgConnection::connect(&database.url).await.expect("connected");
    let mut open = theirs.begin().await.expect("begun");
    let first =
        store.messages().enqueue_in(&mut *open, message("held")).await.expect("enqueued, not committed");
    let Enqueued::New { id } = first else { panic!("{first:?}") };

    let keys = (0..50).map(|n| format!("free-{n}")).chain(["held".to_owned()]);
    let answers = store.messages().enqueue_all(keys.map(|key| message(&key)).collect()).await;
    let (held, free) = answers.split_last().expect("51 answers");
    assert!(free.iter().all(|answer| matches!(answer, Ok(Enqueued::New { .. }))), "{free:?}");
    assert!(matches!(held, Err(StoreError::Busy)), "{held:?}");

    open.commit().await.expect("committed");
    assert_eq!(store.messages().enqueue(message("held")).await.expect("found"), Enqueued::Replay { id });
}

/// Two batches with the same keys in opposite order must not deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_batches_with_the_same_keys_in_opposite_order_both_succeed() {
    let database = durable_database().await;
    let mut administrator = PgConnection::connect(&database.url).await.expect("connected");
    // The server looks for deadlocks before a lock wait times out: it counts them, and a slow machine has none.
    let at_once =
        sqlx::AssertSqlSafe(format!("ALTER DATABASE \"{}\" SET deadlock_timeout = '1ms'", database.name));
    sqlx::query(at_once).execute(&mut administrator).await.expect("the database looks for deadlocks at once");
    administrator.close().await.expect("closed");
    let store = Store::open(&database.url, 4).await.expect("the store opens");
    let other = Store::open(&database.url, 4).await.expect("another node");
    for round in 0..20 {
        let forth: Vec<_> = (0..200).map(|n| message(&format!("{round}-{n}"))).collect();
        let back: Vec<_> = forth.iter().rev().cloned().collect();
        let (one, two) = tokio::join!(enqueue_all(&store, forth), enqueue_all(&other, back));
        assert_eq!(one + two, 200, "round {round}");
    }
    assert_never_deadlocked([store, other], &database.url).await;
}

/// Enqueues messages, retrying those whose row another batch locked for too long. Returns how many were new.
async fn enqueue_all(store: &Store, mut messages: Vec<NewMessage>) -> usize {
    let mut new = 0;
    while !messages.is_empty() {
        let answers = store.messages().enqueue_all(messages.clone()).await;
        let mut busy = Vec::new();
        for (message, answer) in messages.into_iter().zip(answers) {
            match answer {
                Ok(Enqueued::New { .. }) => new += 1,
                Ok(Enqueued::Replay { .. }) => (),
                Err(StoreError::Busy) => busy.push(message),
                other => panic!("{other:?}"),
            }
        }
        messages = busy;
    }
    new
}

/// `now()` is the transaction's start: a lease taken at the end of a long transaction must not start out lapsed.
#[tokio::test]
async fn a_lease_runs_from_the_moment_of_the_claim() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    store.messages().enqueue(message("k")).await.expect("enqueued");
    let node = Uuid::from_u128(1);
    let terms = ClaimOptions {
        node,
        lease: Duration::from_secs(30),
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    let queue = QueueName::parse("orders").expect("a name");
    let work = store.claims().claim(&queue, NonZeroU32::MIN, terms).await.expect("claimed");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let row = sqlx::query("SELECT lease_until - claimed_at = interval '30 s' AS whole, claimed_at <= clock_timestamp() AS past FROM ichido.leases")
        .fetch_one(&mut connection)
        .await
        .expect("the lease");
    assert!(row.get::<bool, _>("whole") && row.get::<bool, _>("past"));
    for sql in [
        include_str!("../../src/postgres/sql/work_claim.sql"),
        include_str!("../../src/postgres/sql/key_claim.sql"),
    ] {
        assert!(sql.contains("clock_timestamp()") && !sql.contains(" now()"), "{sql}");
    }
    assert_eq!(work.len(), 1);
}

/// Acknowledged means durable, on every connection that the store writes with, whatever the role or the database is configured
/// for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_connection_waits_for_the_disk() {
    let database = durable_database().await;
    let mut administrator = PgConnection::connect(&database.url).await.expect("connected");
    let name = database.name.clone();
    let relaxed = sqlx::AssertSqlSafe(format!("ALTER DATABASE \"{name}\" SET synchronous_commit = off"));
    sqlx::query(relaxed).execute(&mut administrator).await.expect("the database setting is changed");
    let store = Store::open(&database.url, 4).await.expect("the store opens");
    let pool = store.postgres_pool().expect("a store on PostgreSQL");
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut connection = pool.acquire().await.expect("each of them");
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            let row = sqlx::query("SELECT current_setting($1)")
                .bind(setting)
                .fetch_one(&mut *connection)
                .await
                .expect("asked");
            assert_eq!(row.get::<&str, _>(0), "on", "{setting}");
        }
        connections.push(connection);
    }
}

/// A caller's connection keeps plans from when the ledger was small and a scan was cheapest. Settling there must not use them.
#[tokio::test]
async fn settling_in_a_callers_transaction_never_reads_the_ledger_whole() {
    /// From the sixth execution on, a statement's plan is cached.
    const TIMES: usize = 12;
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut theirs = PgConnection::connect(&database.url).await.expect("connected");
    for number in 0..TIMES {
        let name = RecordName {
            operation: "orders.create".to_owned(),
            identity: "alice".to_owned(),
            key: IdempotencyKey::parse(&format!("k{number}")).expect("a key"),
        };
        let policy = PolicyDraft {
            guarantee: Some(OperationGuarantee::Transactional),
            ..PolicyDraft::new(Class::Mutate)
        };
        let claim = KeyClaim {
            name: name.clone(),
            fingerprint: Fingerprint::from_bytes([1; 32]),
            request_digest: Digest::of_bytes(b"10 EUR"),
            policy: Arc::new(Policy::build(policy).expect("a policy")),
            hops: None,
            trace: None,
        };
        let KeyClaimed::Run { fence, .. } = store.keys().claim(claim).await.expect("claimed") else {
            panic!("not run")
        };
        let outcome = KeyOutcome::Keep {
            settled: Settled::Applied,
            response: StoredResponse { status: 200, headers: Vec::new(), body: Some(Vec::new()) },
            result_digest: None,
            message_id: None,
            ttl: Duration::from_hours(72),
        };
        let mut open = theirs.begin().await.expect("begun");
        let settle = KeySettle { name, fence, outcome };
        let settled = store.keys().settle_in(&mut *open, &settle).await.expect("settled");
        assert_eq!(settled, KeySettled::Settled);
        let scans =
            "SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relid = 'ichido.ledger'::regclass";
        let row = sqlx::query(scans).fetch_one(&mut *open).await.expect("counted");
        assert_eq!(row.get::<i64, _>(0), 0, "read whole, the time numbered {number}");
        assert!(0 < row.get::<i64, _>(1), "by its index");
        open.commit().await.expect("committed");
        sqlx::query("ANALYZE ichido.ledger").execute(&mut theirs).await.expect("its size is known");
    }
}

/// The table has no CHECK constraints, because the server plans them again for every statement.
#[tokio::test]
async fn record_that_breaks_a_rule_is_refused_by_its_readers() {
    let fixture = StoreFixture::postgres().await;
    let rules = [
        "state = 'settled'",
        "state = 'claimed'",
        "status = NULL",
        "headers = NULL",
        "expires_at = NULL",
        "guarantee = 'some'",
        "fingerprint = '\\x00'",
        "request_digest = '\\x00'",
    ];
    for (number, broken) in rules.into_iter().enumerate() {
        let key = format!("k{number}");
        fixture.settled(&key, OperationGuarantee::None, b"done").await;
        let update = format!("UPDATE ichido.ledger SET {broken} WHERE key = '{key}'");
        let pool = fixture.store.postgres_pool().expect("a pool");
        sqlx::query(sqlx::AssertSqlSafe(update)).execute(pool).await.expect("updated");
        let read = fixture.store.keys().get(&conformance::ledger::name(&key)).await;
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{broken}: {read:?}");
        let request = conformance::ledger::request(&key, OperationGuarantee::None);
        let claimed = fixture.store.keys().claim(request).await;
        assert!(matches!(claimed, Err(StoreError::Corrupt { .. })), "{broken}: {claimed:?}");
    }
}
