//! What is specific to SQLite: one file, one writer, immediate transactions, the machine's own clock.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, OperationGuarantee, Policy, PolicyDraft, RecordName, RecordPhase, Settled};
use ichido_core::lifecycle::{Event, State};
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, KeySettled, StoredResponse};
use ichido_store::message::{ClaimOptions, Enqueued, NewMessage, Note, QueueName, Settlement, StepResult};
use ichido_store::rescue::RescueOptions;
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use ichido_store::testing::while_busy;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);

async fn opened() -> (SqliteTestFile, Store) {
    let file = fresh_file();
    let store = Store::open(&file.url, 4).await.unwrap();
    (file, store)
}

/// Opens the caller's own pool on the same file, with a table.
async fn callers(file: &SqliteTestFile) -> SqlitePool {
    let options = SqliteConnectOptions::from_str(&file.url).unwrap().busy_timeout(LEASE);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("CREATE TABLE orders (id INTEGER PRIMARY KEY)").execute(&pool).await.unwrap();
    pool
}

async fn count(pool: &SqlitePool, sql: &'static str) -> i64 {
    sqlx::query(sql).fetch_one(pool).await.unwrap().get(0)
}

fn queue() -> QueueName {
    QueueName::parse("orders").unwrap()
}

fn message(key: &str) -> NewMessage {
    NewMessage::new(queue(), "alice", IdempotencyKey::parse(key).unwrap(), key.as_bytes().to_vec())
}

fn claim() -> KeyClaim {
    claim_of("k1")
}

fn claim_of(key: &str) -> KeyClaim {
    let mode = Some(OperationGuarantee::Keyed);
    let draft =
        PolicyDraft { guarantee: mode, lease: Some(LEASE), ..PolicyDraft::new(Class::ExternalEffect) };
    KeyClaim {
        name: RecordName {
            operation: "orders.create".to_owned(),
            identity: "alice".to_owned(),
            key: IdempotencyKey::parse(key).unwrap(),
        },
        fingerprint: Fingerprint::from_bytes([1; 32]),
        request_digest: Digest::of_bytes(b"request"),
        policy: Arc::new(Policy::build(draft).unwrap()),
        hops: None,
        trace: None,
    }
}

async fn claimed(store: &Store, key: &str) -> Fence {
    match store.keys().claim(claim_of(key)).await.unwrap() {
        KeyClaimed::Run { fence, .. } => fence,
        other => panic!("{key}: {other:?}"),
    }
}

fn keep(status: u16) -> KeyOutcome {
    KeyOutcome::Keep {
        settled: Settled::Applied,
        response: StoredResponse { status, headers: Vec::new(), body: Some(Vec::new()) },
        result_digest: None,
        message_id: None,
        ttl: LEASE * 1_000,
    }
}

/// Lets every ready task run as far as it can: there is one thread.
async fn all_wait() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

fn terms() -> ClaimOptions {
    ClaimOptions {
        node: Uuid::from_u128(1),
        lease: LEASE,
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    }
}

#[tokio::test]
async fn a_transaction_that_reads_first_keeps_its_place_when_begun_as_immediate() {
    let (file, store) = opened().await;
    let pool = callers(&file).await;
    // The trap: a plain BEGIN reads, somebody else writes, and the write fails at once, whatever the timeout.
    let mut deferred = pool.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM orders").fetch_one(&mut *deferred).await.unwrap();
    store.messages().enqueue(message("k1")).await.unwrap();
    let refused = store.messages().enqueue_in(&mut *deferred, message("k2")).await;
    assert!(matches!(refused, Err(StoreError::Busy)), "{refused:?}");
    deferred.rollback().await.unwrap();
    let mut immediate = Store::begin_immediate(&pool).await.unwrap();
    sqlx::query("SELECT count(*) FROM orders").fetch_one(&mut *immediate).await.unwrap();
    let other = tokio::spawn({
        let store = store.clone();
        async move { while_busy(|| store.messages().enqueue(message("k3"))).await }
    });
    store.messages().enqueue_in(&mut *immediate, message("k2")).await.unwrap();
    immediate.commit().await.unwrap();
    assert!(matches!(other.await.unwrap(), Enqueued::New { .. }));
}

/// Two hundred writers and a caller's transaction: the store has one writer connection, so its calls queue instead of failing.
#[tokio::test]
async fn writers_of_one_process_do_not_see_busy() {
    let (file, store) = opened().await;
    let pool = callers(&file).await;
    let mut open = Store::begin_immediate(&pool).await.unwrap();
    let writers: Vec<_> = (0..200)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.messages().enqueue(message(&format!("k{number}"))).await })
        })
        .collect();
    all_wait().await;
    sqlx::query("INSERT INTO orders VALUES (1)").execute(&mut *open).await.unwrap();
    assert!(writers.iter().all(|writer| !writer.is_finished()), "they wait for the file");
    open.commit().await.unwrap();
    for writer in writers {
        let enqueued = writer.await.unwrap();
        assert!(matches!(enqueued, Ok(Enqueued::New { .. })), "{enqueued:?}");
    }
}

#[tokio::test]
async fn a_claim_of_this_process_does_not_lapse_when_the_wall_clock_is_set() {
    let (file, store) = opened().await;
    let pool = callers(&file).await;
    let KeyClaimed::Run { fence, .. } = store.keys().claim(claim()).await.unwrap() else { panic!("not run") };
    store.messages().enqueue(message("k1")).await.unwrap();
    let work = store.claims().claim(&queue(), NonZeroU32::MIN, terms()).await.unwrap();
    assert_eq!(work.len(), 1);
    // A clock set a day ahead sees the leases as these statements make them.
    sqlx::query("UPDATE ichido_ledger SET lease_until = 1").execute(&pool).await.unwrap();
    sqlx::query("UPDATE ichido_leases SET lease_until = 1").execute(&pool).await.unwrap();
    let rescue = |_: &QueueName| RescueOptions {
        guarantee: Guarantee::Idempotent,
        wait: Duration::ZERO,
        max_time_in_flight: Duration::ZERO,
    };
    assert!(matches!(store.keys().claim(claim()).await.unwrap(), KeyClaimed::InFlight { .. }));
    assert_eq!(store.claims().rescue(&rescue).await.unwrap(), None);
    // Its own clock continues: once the lease has passed on it, the claims are free.
    store.advance_clock(LEASE);
    assert_eq!(store.claims().rescue(&rescue).await.unwrap(), Some(1));
    let KeyClaimed::Run { fence: next, .. } = store.keys().claim(claim()).await.unwrap() else {
        panic!("not run")
    };
    assert!(fence < next);
    // Another process knows only the wall clock.
    sqlx::query("UPDATE ichido_ledger SET lease_until = 1").execute(&pool).await.unwrap();
    let other = Store::open(&file.url, 2).await.unwrap();
    assert!(matches!(other.keys().claim(claim()).await.unwrap(), KeyClaimed::Run { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_open_a_new_file_at_once_and_write_it_together() {
    let file = fresh_file();
    let stores = (0..8).map(|number| {
        let url = file.url.clone();
        tokio::spawn(async move {
            let store = Store::open(&url, 1).await.unwrap();
            for count in 0..10 {
                let new = message(&format!("k{number}-{count}"));
                let enqueued = while_busy(|| store.messages().enqueue(new.clone())).await;
                assert!(matches!(enqueued, Enqueued::New { .. }));
            }
            store
        })
    });
    let mut last = None;
    for store in stores.collect::<Vec<_>>() {
        last = Some(store.await.unwrap());
    }
    let counts = last.unwrap().queues().counts().await.unwrap();
    assert_eq!((counts.len(), counts[0].count), (1, 80));
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let (file, store) = opened().await;
    drop(store);
    let pool = callers(&file).await;
    sqlx::query(
        "INSERT INTO ichido_migrations (version, description, success, checksum, execution_time) VALUES (99, 'later', 1, x'00', 0)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let refused = Store::open(&file.url, 2).await.map(drop);
    assert!(matches!(refused, Err(StoreError::TooNew { found: 99, known: 13 })), "{refused:?}");
}

#[tokio::test]
async fn every_table_has_our_prefix() {
    let (file, _store) = opened().await;
    let pool = callers(&file).await;
    let others = "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'ichido\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'orders'";
    assert_eq!(count(&pool, others).await, 0);
}

#[tokio::test]
async fn the_file_and_its_log_are_for_their_owner_alone() {
    let (file, _store) = opened().await;
    for name in ["ichido.db", "ichido.db-wal"] {
        let mode = std::fs::metadata(file.folder().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn full_disk_is_reported_and_the_writer_recovers() {
    let (_file, store) = opened().await;
    let writer = store.sqlite_writer().unwrap();
    let limit = |pages: i64| sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}")));
    let pages = sqlx::query("PRAGMA page_count").fetch_one(writer).await.unwrap().get(0);
    limit(pages).execute(writer).await.unwrap();
    let large = NewMessage { request: vec![7; 1 << 20].into(), ..message("large") };
    let refused = store.messages().enqueue(large.clone()).await;
    assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
    assert!(matches!(store.check_ready().await, Err(StoreError::Full)), "readiness says so");
    limit(pages * 1_000).execute(writer).await.unwrap();
    let enqueued = store.messages().enqueue(large).await;
    assert!(matches!(enqueued, Ok(Enqueued::New { .. })), "{enqueued:?}");
    store.advance_clock(LEASE);
    store.nodes().heartbeat(Uuid::nil(), "n").await.unwrap();
    store.check_ready().await.unwrap();
}

#[tokio::test]
async fn automatic_rollback_does_not_stop_the_writer() {
    let (file, store) = opened().await;
    let pool = callers(&file).await;
    // As SQLite does on some disk failures.
    sqlx::query(
        "CREATE TRIGGER ichido_fail BEFORE INSERT ON ichido_messages WHEN NEW.key = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
    )
    .execute(&pool)
    .await
    .unwrap();
    let refused = store.messages().enqueue(message("bad")).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    let enqueued = store.messages().enqueue(message("good")).await;
    assert!(matches!(enqueued, Ok(Enqueued::New { .. })), "{enqueued:?}");
}

#[tokio::test]
async fn a_relative_path_and_one_with_slashes_both_name_a_file() {
    let file = fresh_file();
    for url in [file.url.clone(), file.url.replacen("sqlite:", "sqlite://", 1)] {
        Store::open(&url, 1).await.unwrap();
    }
    assert!(file.path().exists());
}

#[tokio::test]
async fn outcomes_written_together_get_their_own_results() {
    let (file, store) = opened().await;
    let pool = callers(&file).await;
    let mut fences = HashMap::new();
    for key in ["first", "late", "kept", "twice", "released", "held"] {
        fences.insert(key, claimed(&store, key).await);
    }
    let late = fences["late"];
    let settled = store.keys().settle(KeySettle {
        name: claim_of("late").name,
        fence: late,
        outcome: KeyOutcome::Release,
    });
    assert_eq!(settled.await.unwrap(), KeySettled::Settled);
    fences.insert("late", claimed(&store, "late").await);
    // The first waits for the caller's transaction to end; the others wait behind it and are written in one transaction.
    let open = Store::begin_immediate(&pool).await.unwrap();
    let mut waiting = Vec::new();
    for (key, fence, outcome) in [
        ("first", fences["first"], keep(200)),
        ("kept", fences["kept"], keep(201)),
        ("late", late, keep(202)),
        ("twice", fences["twice"], keep(203)),
        ("twice", fences["twice"], keep(204)),
        ("released", fences["released"], KeyOutcome::Release),
        ("held", fences["held"], KeyOutcome::Hold),
    ] {
        let (store, settle) = (store.clone(), KeySettle { name: claim_of(key).name, fence, outcome });
        waiting.push(tokio::spawn(async move { store.keys().settle(settle).await }));
        all_wait().await;
    }
    open.rollback().await.unwrap();
    let mut answers = Vec::new();
    for answer in waiting {
        answers.push(answer.await.unwrap().unwrap());
    }
    let [stands, stale, again] = [KeySettled::Settled, KeySettled::Stale, KeySettled::AlreadySettled];
    assert_eq!(answers, [stands, stands, stale, stands, again, stands, stands]);
    let mut found = Vec::new();
    for key in ["kept", "late", "twice", "released", "held"] {
        let record = store.keys().get(&claim_of(key).name).await.unwrap();
        found.push(
            record.map(|record| (record.record.phase, record.response.map(|response| response.status))),
        );
    }
    assert!(matches!(found[0], Some((RecordPhase::Settled { .. }, Some(201)))), "{found:?}");
    assert!(matches!(found[1], Some((RecordPhase::Claimed { .. }, None))), "{found:?}");
    assert!(matches!(found[2], Some((RecordPhase::Settled { .. }, Some(203)))), "{found:?}");
    assert!(found[3].is_none(), "{found:?}");
    assert!(matches!(found[4], Some((RecordPhase::Unknown, None))), "{found:?}");
}

#[tokio::test]
async fn a_row_that_is_refused_fails_alone_among_work_of_every_kind() {
    let (file, store) = opened().await;
    let pool = callers(&file).await;
    let refuse = "CREATE TRIGGER ichido_fail BEFORE INSERT ON ichido_messages WHEN NEW.key = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END";
    sqlx::query(refuse).execute(&pool).await.unwrap();
    let fence = claimed(&store, "settled").await;
    store.messages().enqueue(message("sent")).await.unwrap();
    let work = store.claims().claim(&queue(), NonZeroU32::MIN, terms()).await.unwrap().remove(0);
    // The first waits for the caller's transaction to end; the others wait behind it and are written in one transaction.
    let open = Store::begin_immediate(&pool).await.unwrap();
    let put = |key: &'static str| {
        let store = store.clone();
        tokio::spawn(async move { store.messages().enqueue(message(key)).await })
    };
    let first = put("first");
    all_wait().await;
    let (good, bad) = (put("good"), put("bad"));
    let claim = tokio::spawn({
        let store = store.clone();
        async move { store.keys().claim(claim_of("claimed")).await }
    });
    let settle = tokio::spawn({
        let (store, name) = (store.clone(), claim_of("settled").name);
        async move { store.keys().settle(KeySettle { name, fence, outcome: keep(200) }).await }
    });
    let send = tokio::spawn({
        let store = store.clone();
        let settlement = Settlement::new(&work, Event::Succeeded { fence: work.fence }, Note::default());
        async move { store.claims().settle(settlement).await }
    });
    all_wait().await;
    open.rollback().await.unwrap();
    for enqueued in [first, good] {
        assert!(matches!(enqueued.await.unwrap(), Ok(Enqueued::New { .. })));
    }
    assert!(matches!(bad.await.unwrap(), Err(StoreError::Refused(_))));
    assert!(matches!(claim.await.unwrap(), Ok(KeyClaimed::Run { .. })));
    assert!(matches!(settle.await.unwrap(), Ok(KeySettled::Settled)));
    assert!(matches!(send.await.unwrap(), Ok(StepResult::Now(State::Sent))));
}
