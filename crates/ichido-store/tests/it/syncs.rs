//! What is acknowledged is on disk: counts the syncs that the kernel was asked for.
//!
//! Killing a process cannot show that a sync is missing, because the kernel keeps what the process wrote. So a child process
//! writes through the store under `strace`, and the syncs of SQLite's log are counted between one acknowledgement and the next.
//! PostgreSQL counts its own.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Settled};
use ichido_core::lifecycle::{Event, State};
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, KeySettled, StoredResponse};
use ichido_store::message::{ClaimOptions, Enqueued, NewMessage, Note, QueueName, Settlement, StepResult};
use ichido_store::testing::postgres::Cluster;
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

/// How the child finds the database.
const URL: &str = "ICHIDO_SYNCS_URL";
const ROUNDS: usize = 10;
/// The writes of one round: enqueue, claim, settle, and a key's claim and settle.
const WRITES: usize = 5;
const CALLERS: usize = 64;
/// The maximum number of syncs for 64 concurrent callers: the first may go alone, and the rest share one. Occasionally one
/// more, when the log is checkpointed.
const MAX_SHARED: usize = 4;
const LEASE: Duration = Duration::from_secs(30);
/// How often opening is measured. The minimum counts: on a slow machine the server may sync on its own meanwhile, which only
/// adds.
const OPENINGS: usize = 3;
/// How long connections may take to end: far beyond what they need.
const PATIENCE: Duration = Duration::from_mins(2);

/// Marks in the trace that everything up to here was acknowledged. Nobody else changes to the root folder.
fn mark() {
    std::env::set_current_dir("/").unwrap();
}

/// Counts the syncs of the log before the first mark, between marks, and after the last.
fn syncs_between_marks(trace: &str) -> Vec<usize> {
    let mut syncs = vec![0];
    for line in trace.lines() {
        let is_sync = line.contains(" fdatasync(") || line.contains(" fsync(");
        if line.contains(" chdir(\"/\"") {
            syncs.push(0);
        } else if is_sync && line.contains("-wal>") {
            // An unfinished call is counted here and not where it resumes: the caller waits for its end.
            *syncs.last_mut().unwrap() += 1;
        }
    }
    syncs
}

/// Runs a child of this program on a file under strace. Returns the syncs between its marks.
fn trace(child: &str, file: &SqliteTestFile) -> Vec<usize> {
    may_trace();
    let trace = file.folder().join("trace");
    let output = strace(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", child, "--nocapture"])
        .env(URL, &file.url)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{child}: {}", String::from_utf8_lossy(&said));
    syncs_between_marks(&std::fs::read_to_string(trace).unwrap())
}

/// All threads, with the path of each file.
fn strace(trace: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-e", "trace=fdatasync,fsync,chdir", "-o"]).arg(trace);
    strace
}

/// Fails if tracing is not allowed: not being able to look is not the same as having seen nothing.
fn may_trace() {
    match strace(Path::new("/dev/null")).arg("true").output() {
        Err(error) => panic!(
            "strace does not start ({error}), and without it syncs cannot be counted: `cargo xtask test` installs it as root on \
             Debian; elsewhere install the package `strace`"
        ),
        Ok(output) => assert!(
            output.status.success(),
            "strace may not trace a process here, so syncs cannot be counted. Allow ptrace: in a container with \
             `--cap-add=SYS_PTRACE`, elsewhere with `sysctl kernel.yama.ptrace_scope=1`. It says: {}",
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}

/// Not a test: the child that is traced.
#[tokio::test]
#[ignore = "run by the tests below as a process of its own, under strace"]
async fn child_one_after_another() {
    let Ok(url) = std::env::var(URL) else { return };
    let store = Store::open(&url, 2).await.unwrap();
    mark();
    for _ in 0..ROUNDS {
        assert!(matches!(store.messages().enqueue(message()).await.unwrap(), Enqueued::New { .. }));
        mark();
        let terms = ClaimOptions {
            node: Uuid::from_u128(1),
            lease: LEASE,
            start_marks: false,
            guarantee: Guarantee::Idempotent,
            max_time_in_flight: Duration::ZERO,
        };
        let work = store.claims().claim(&queue(), NonZeroU32::MIN, terms).await.unwrap().remove(0);
        mark();
        let settlement = Settlement::new(&work, Event::Succeeded { fence: work.fence }, Note::default());
        assert_eq!(store.claims().settle(settlement).await.unwrap(), StepResult::Now(State::Sent));
        mark();
        let claim = claim();
        let name = claim.name.clone();
        let KeyClaimed::Run { fence, .. } = store.keys().claim(claim).await.unwrap() else {
            panic!("not run")
        };
        mark();
        let outcome = KeyOutcome::Keep {
            settled: Settled::Applied,
            response: StoredResponse { status: 200, headers: Vec::new(), body: None },
            result_digest: None,
            message_id: None,
            ttl: Duration::from_hours(72),
        };
        let settled = store.keys().settle(KeySettle { name, fence, outcome }).await.unwrap();
        assert_eq!(settled, KeySettled::Settled);
        mark();
    }
}

/// Not a test: the child that is traced.
#[tokio::test]
#[ignore = "run by the tests below as a process of its own, under strace"]
async fn child_at_once() {
    let Ok(url) = std::env::var(URL) else { return };
    let store = Store::open(&url, 2).await.unwrap();
    mark();
    for _ in 0..ROUNDS {
        let mut callers = tokio::task::JoinSet::new();
        for number in 0..CALLERS {
            let store = store.clone();
            callers.spawn(async move {
                // Different kinds of jobs share a commit too: there is one writer for all.
                if number % 2 == 0 {
                    assert!(matches!(store.messages().enqueue(message()).await, Ok(Enqueued::New { .. })));
                } else {
                    assert!(matches!(store.keys().claim(claim()).await, Ok(KeyClaimed::Run { .. })));
                }
            });
        }
        callers.join_all().await;
        mark();
    }
}

fn queue() -> QueueName {
    QueueName::parse("orders").unwrap()
}

fn key() -> IdempotencyKey {
    IdempotencyKey::parse(&Uuid::now_v7().to_string()).unwrap()
}

fn message() -> NewMessage {
    NewMessage::new(queue(), "alice", key(), b"request".to_vec())
}

fn claim() -> KeyClaim {
    KeyClaim {
        name: RecordName { operation: "orders.create".to_owned(), identity: "alice".to_owned(), key: key() },
        fingerprint: Fingerprint::from_bytes([1; 32]),
        request_digest: Digest::of_bytes(b"request"),
        policy: Arc::new(Policy::build(PolicyDraft::new(Class::Mutate)).unwrap()),
        hops: None,
        trace: None,
    }
}

#[test]
fn a_trace_is_read_by_its_marks() {
    let trace = r#"
1 fdatasync(3</a/ichido.db-wal>) = 0
1 chdir("/")                        = 0
2 fdatasync(3</a/ichido.db-wal> <unfinished ...>
1 chdir("/a")                       = 0
2 <... fdatasync resumed>)          = 0
2 fsync(4</a/ichido.db>)            = 0
1 chdir("/")                        = 0
1 chdir("/" <unfinished ...>
2 fsync(3</a/ichido.db-wal>)        = 0
1 <... chdir resumed>)              = 0"#;
    assert_eq!(syncs_between_marks(trace), [1, 1, 0, 1]);
}

#[test]
fn every_sqlite_response_follows_its_own_sync() {
    let file = fresh_file();
    let syncs = trace("syncs::child_one_after_another", &file);
    let writes = &syncs[1..syncs.len() - 1];
    assert_eq!(writes.len(), ROUNDS * WRITES);
    assert!(writes.iter().all(|syncs| 1 <= *syncs), "syncs before each answer: {writes:?}");
}

#[test]
fn callers_at_once_share_the_syncs_of_sqlite() {
    let file = fresh_file();
    let syncs = trace("syncs::child_at_once", &file);
    let groups = &syncs[1..syncs.len() - 1];
    assert_eq!(groups.len(), ROUNDS);
    let shared = 1..=MAX_SHARED;
    assert!(groups.iter().all(|syncs| shared.contains(syncs)), "syncs for {CALLERS} callers: {groups:?}");
}

/// Returns how often a server has synced its log, by the counters of all ended sessions.
async fn wal_syncs(connection: &mut PgConnection) -> i64 {
    // Since PostgreSQL 18 the counter is elsewhere.
    let version: i32 = sqlx::query("SELECT current_setting('server_version_num')::integer")
        .fetch_one(&mut *connection)
        .await
        .unwrap()
        .get(0);
    let sql = if version < 180_000 {
        "SELECT wal_sync FROM pg_stat_wal"
    } else {
        "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
    };
    sqlx::query(sql).fetch_one(connection).await.unwrap().get(0)
}

/// Waits until this connection is the last: ending sessions publish their counters first.
async fn wait_until_last(connection: &mut PgConnection) {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let gone = async {
        while 0 < sqlx::query(others).fetch_one(&mut *connection).await.unwrap().get::<i64, _>(0) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the connections of a closed store end");
}

/// Returns how many syncs a store takes from opening to closing, with this many writes.
async fn syncs_of_lifetime(url: &str, connection: &mut PgConnection, rounds: usize) -> i64 {
    let before = wal_syncs(connection).await;
    let store = Store::open(url, 1).await.unwrap();
    for _ in 0..rounds {
        // Neither of the two wakes anybody: a NOTIFY would be one more commit.
        assert!(matches!(store.keys().claim(claim()).await.unwrap(), KeyClaimed::Run { .. }));
        let later = NewMessage { delay: LEASE, ..message() };
        assert!(matches!(store.messages().enqueue(later).await.unwrap(), Enqueued::New { .. }));
    }
    store.postgres_pool().unwrap().close().await;
    drop(store);
    wait_until_last(connection).await;
    wal_syncs(connection).await - before
}

#[tokio::test]
async fn every_postgres_response_follows_its_own_sync() {
    // Its own server, whose background writer does not sync while we count.
    let cluster = Cluster::start(&[("wal_writer_delay", "10s"), ("autovacuum", "off")]).unwrap();
    let database = cluster.database().await.unwrap();
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    // The first run creates the schema; later ones show the cost of opening alone.
    syncs_of_lifetime(&database.url, &mut connection, 0).await;
    let mut opened = i64::MAX;
    for _ in 0..OPENINGS {
        opened = opened.min(syncs_of_lifetime(&database.url, &mut connection, 0).await);
    }
    let written = syncs_of_lifetime(&database.url, &mut connection, ROUNDS).await;
    let writes = i64::try_from(2 * ROUNDS).unwrap();
    assert!(writes <= written - opened, "{writes} answers; {written} syncs, {opened} of them for opening");
}
