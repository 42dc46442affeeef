//! The store beside its floors, on one PostgreSQL in one run.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Settled};
use ichido_core::lifecycle::Event;
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use ichido_store::message::{ClaimOptions, NewMessage, Note, QueueName, Settlement};
use ichido_store::testing::postgres::Cluster;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::floor;
use crate::report::{ReportLine, Stopwatch, joined, median};

const CALLERS: usize = 64;
const ROUNDS: usize = 3;
const SECONDS: u32 = 4;
const DRAIN: usize = 60_000;
const OLD_SNAPSHOT_ROUNDS: usize = 16;

pub(crate) async fn run() -> Vec<ReportLine> {
    let cluster = Cluster::start(&floor::SERVER).expect("a PostgreSQL server");
    let database = cluster.database().await.expect("a database");
    let url = database.url.clone();
    let store = Store::open(&url, 8).await.expect("the store opens");
    let pool =
        PgPoolOptions::new().test_before_acquire(false).connect(&url).await.expect("the floor's connections");
    floor::tables(&pool).await;
    // The first run writes fresh WAL segments, which is slower than recycling them.
    floor::enqueue_bulk(&pool, 100).await;
    let mut lines = Vec::new();
    lines.push(bulk(&store, &pool).await);
    lines.push(single(&store, &url).await);
    lines.extend(drain(&store, &pool).await);
    lines.push(ledger(&store, &url).await);
    lines.push(replay(&store, &pool, &url).await);
    lines.push(with_history(&store, &pool).await);
    lines.extend(with_an_old_snapshot(&store, &pool).await);
    lines
}

/// Claim and settle after a million finished messages, beside the same on an empty store.
async fn with_history(store: &Store, pool: &PgPool) -> ReportLine {
    let (mut bare, mut behind) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        empty(pool).await;
        bare.push(fill_and_drain(store, pool).await);
    }
    for statement in
        include_str!("../floor/history.sql").split(";\n").filter(|statement| !statement.trim().is_empty())
    {
        sqlx::query(AssertSqlSafe(statement.to_owned())).execute(pool).await.expect("history");
    }
    for _ in 0..ROUNDS {
        behind.push(fill_and_drain(store, pool).await);
    }
    let work = "claim and settle with 1,000,000 finished behind, against an empty store".into();
    ReportLine { work, ours: median(behind), floor: median(bare), target: 0.9 }
}

/// Claim and settle repeatedly while a snapshot is open, beside the same without it.
async fn with_an_old_snapshot(store: &Store, pool: &PgPool) -> Vec<ReportLine> {
    empty(pool).await;
    let before = fill_and_drain(store, pool).await;
    let mut open = pool.begin().await.expect("begun");
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *open).await.expect("set");
    sqlx::query("SELECT count(*) FROM ichido.ready").execute(&mut *open).await.expect("a snapshot");
    let mut rates = Vec::new();
    for _ in 0..OLD_SNAPSHOT_ROUNDS {
        rates.push(fill_and_drain(store, pool).await);
    }
    drop(open);
    let half = rates.split_off(rates.len() / 2);
    let line = |work: &str, ours, floor, target| ReportLine { work: work.into(), ours, floor, target };
    let (first, last) = (median(rates), median(half));
    vec![
        line("claim and settle under an old snapshot, later rounds, against without", last, before, 0.6),
        line("claim and settle under an old snapshot, later rounds, against earlier ones", last, first, 0.9),
    ]
}

async fn fill_and_drain(store: &Store, pool: &PgPool) -> f64 {
    for _ in 0..DRAIN / 1_000 {
        let messages = (0..1_000).map(|_| message()).collect();
        assert!(store.messages().enqueue_all(messages).await.iter().all(Result::is_ok));
    }
    vacuum(pool).await;
    let watch = Stopwatch::start();
    let clients = (0..2).map(|_| tokio::spawn(drain_all(store.clone())));
    let drained: usize = joined(clients).await.into_iter().sum();
    assert_eq!(drained, DRAIN);
    watch.rate(drained)
}

async fn bulk(store: &Store, pool: &PgPool) -> ReportLine {
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(floor::enqueue_bulk(pool, 20).await);
        let watch = Stopwatch::start();
        for _ in 0..20 {
            let messages = (0..1_000).map(|_| message()).collect();
            assert!(store.messages().enqueue_all(messages).await.iter().all(Result::is_ok));
        }
        ours.push(watch.rate(20_000));
        empty(pool).await;
    }
    ReportLine {
        work: "enqueue in bulk, 1,000 a call".into(),
        ours: median(ours),
        floor: median(floors),
        target: 0.8,
    }
}

pub(crate) async fn enqueue_one(store: Store) {
    store.messages().enqueue(message()).await.expect("enqueued");
}

async fn single(store: &Store, url: &str) -> ReportLine {
    let floor = floor::pgbench(url, "enqueue_one.sql", CALLERS, SECONDS);
    let ours = callers(store, SECONDS, enqueue_one).await;
    ReportLine { work: "enqueue singly, 64 callers".into(), ours, floor, target: 2.0 }
}

async fn drain(store: &Store, pool: &PgPool) -> Vec<ReportLine> {
    let (mut ours, mut plain, mut leanest) = (Vec::new(), Vec::new(), Vec::new());
    empty(pool).await;
    for _ in 0..ROUNDS {
        plain.push(floor::drain_plain(pool, i64::try_from(DRAIN).expect("small")).await);
        leanest.push(floor::drain_leanest(pool, i64::try_from(DRAIN).expect("small")).await);
        ours.push(fill_and_drain(store, pool).await);
    }
    let ours = median(ours);
    let line = |work: &str, floor, target| ReportLine { work: work.into(), ours, floor, target };
    vec![
        line("claim and settle, against the plain layout", median(plain), 1.2),
        line("claim and settle, against the leanest layout", median(leanest), 0.5),
    ]
}

async fn drain_all(store: Store) -> usize {
    let terms = ClaimOptions {
        node: Uuid::now_v7(),
        lease: Duration::from_secs(30),
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    let batch = NonZeroU32::new(1_000).expect("not zero");
    let mut drained = 0;
    loop {
        let work = store.claims().claim(&queue(), batch, terms).await.expect("claimed");
        if work.is_empty() {
            return drained;
        }
        drained += work.len();
        let settlements = work
            .iter()
            .map(|work| Settlement::new(work, Event::Succeeded { fence: work.fence }, Note::default()))
            .collect();
        assert!(store.claims().settle_all(settlements).await.iter().all(Result::is_ok));
    }
}

fn claim_of(key: &str) -> KeyClaim {
    KeyClaim {
        name: RecordName {
            operation: "orders.create".into(),
            identity: "alice".into(),
            key: IdempotencyKey::parse(key).expect("a key"),
        },
        fingerprint: Fingerprint::from_bytes([7; 32]),
        request_digest: Digest::from_bytes([7; 32]),
        policy: Arc::new(Policy::build(PolicyDraft::new(Class::Mutate)).expect("a policy")),
        hops: None,
        trace: None,
    }
}

pub(crate) async fn claim_and_settle_new(store: Store) {
    claim_and_settle(&store, &Uuid::now_v7().to_string()).await;
}

async fn claim_and_settle(store: &Store, key: &str) {
    let claim = claim_of(key);
    let name = claim.name.clone();
    let KeyClaimed::Run { fence, .. } = store.keys().claim(claim).await.expect("claimed") else {
        panic!("a new key runs")
    };
    let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(vec![b'x'; 200]) };
    let outcome = KeyOutcome::Keep {
        settled: Settled::Applied,
        response,
        result_digest: None,
        message_id: None,
        ttl: Duration::from_hours(72),
    };
    let _ = store.keys().settle(KeySettle { name, fence, outcome }).await.expect("settled");
}

async fn ledger(store: &Store, url: &str) -> ReportLine {
    let floor = floor::pgbench(url, "ledger_two.sql", CALLERS, SECONDS);
    let ours = callers(store, SECONDS, claim_and_settle_new).await;
    ReportLine { work: "ledger claim and settle, 64 callers".into(), ours, floor, target: 2.0 }
}

async fn replay(store: &Store, pool: &PgPool, url: &str) -> ReportLine {
    sqlx::query("INSERT INTO floor_ledger SELECT sha256(convert_to('replay-' || n, 'UTF8')), sha256('f'), 'applied', 1, NULL, 201, convert_to(repeat('x', 200), 'UTF8'), clock_timestamp(), clock_timestamp() FROM generate_series(1, 10000) n")
        .execute(pool).await.expect("filled");
    let keys: Vec<String> = (0..2_000).map(|n| format!("replay-{n}")).collect();
    for key in &keys {
        claim_and_settle(store, key).await;
    }
    let floor = floor::pgbench(url, "ledger_replay.sql", CALLERS, SECONDS);
    let keys = Arc::new(keys);
    let next = Arc::new(AtomicUsize::new(0));
    let ours = callers(store, SECONDS, move |store| {
        let claim = claim_of(&keys[next.fetch_add(1, Ordering::Relaxed) % keys.len()]);
        async move {
            let claimed = store.keys().claim(claim).await.expect("replayed");
            assert!(matches!(claimed, KeyClaimed::Replay(_)));
        }
    })
    .await;
    ReportLine { work: "replay look-up, 64 callers".into(), ours, floor, target: 0.8 }
}

/// Returns the calls per second of 64 callers who each wait for their response.
pub(crate) async fn callers<F, W>(store: &Store, seconds: u32, work: F) -> f64
where
    F: Fn(Store) -> W + Clone + Send + 'static,
    W: Future<Output = ()> + Send,
{
    let watch = Stopwatch::start();
    let end = Duration::from_secs(u64::from(seconds));
    let tasks = (0..CALLERS).map(|_| {
        let (store, work) = (store.clone(), work.clone());
        tokio::spawn(async move {
            let (watch, mut done) = (Stopwatch::start(), 0_usize);
            while watch.elapsed() < end {
                work(store.clone()).await;
                done += 1;
            }
            done
        })
    });
    watch.rate(joined(tasks).await.into_iter().sum())
}

fn queue() -> QueueName {
    QueueName::parse("orders").expect("a name")
}

fn message() -> NewMessage {
    let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).expect("a key");
    NewMessage::new(queue(), "alice", key, vec![b'x'; 200])
}

async fn empty(pool: &PgPool) {
    sqlx::query("TRUNCATE ichido.messages, ichido.ready, ichido.events, ichido.leases, ichido.count_deltas, floor_messages")
        .execute(pool)
        .await
        .expect("emptied");
}

pub(crate) async fn vacuum(pool: &PgPool) {
    for table in ["VACUUM ANALYZE ichido.messages", "VACUUM ANALYZE ichido.ready"] {
        sqlx::query(table).execute(pool).await.expect("vacuumed");
    }
}
