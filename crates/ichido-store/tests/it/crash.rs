//! Killed at any moment, nothing acknowledged is lost and nothing is incomplete.
//!
//! A child process enqueues and sends messages and settles keys, and prints what was acknowledged to it. The parent kills it
//! with SIGKILL in the middle, repeatedly, on the same database, and then checks the database. A server that is restarted under
//! load is the same with the roles reversed: the callers stay, the database dies.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::num::NonZeroU32;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, OperationGuarantee, Policy, PolicyDraft, RecordName, Settled};
use ichido_core::lifecycle::{Event, State, StateName};
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use ichido_store::message::{
    ClaimOptions, Enqueued, MessageFilter, NewMessage, Note, QueueName, Settlement, StepResult, limits,
};
use ichido_store::rescue::RescueOptions;
use ichido_store::testing::postgres::Cluster;
use uuid::Uuid;

use crate::wire::words::{other, until_alone};

const LEASE: Duration = Duration::from_secs(30);
/// How the child finds the database, and which keys are its own.
const URL: &str = "ICHIDO_CRASH_URL";
const ROUND: &str = "ICHIDO_CRASH_ROUND";

fn kills() -> u64 {
    // `cargo xtask soak` sets more.
    std::env::var("ICHIDO_CRASH_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(10)
}

fn queue() -> QueueName {
    QueueName::parse("orders").expect("a name")
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect("a key")
}

fn name(text: &str) -> RecordName {
    RecordName { operation: "orders.create".into(), identity: "alice".into(), key: key(text) }
}

fn claim(text: &str) -> KeyClaim {
    let draft =
        PolicyDraft { guarantee: Some(OperationGuarantee::Transactional), ..PolicyDraft::new(Class::Mutate) };
    KeyClaim {
        name: name(text),
        fingerprint: Fingerprint::from_bytes([7; 32]),
        request_digest: Digest::of_bytes(text.as_bytes()),
        policy: Arc::new(Policy::build(draft).expect("a policy")),
        hops: None,
        trace: None,
    }
}

fn response(text: &str) -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("location".into(), text.as_bytes().to_vec())],
        body: Some(text.as_bytes().to_vec()),
    }
}

fn message(text: &str) -> NewMessage {
    let max_attempts = NonZeroU32::new(1_000).expect("not zero");
    NewMessage { max_attempts, ..NewMessage::new(queue(), "alice", key(text), text.as_bytes().to_vec()) }
}

/// Everything that was acknowledged, parsed from the child's lines.
#[derive(Debug, Default)]
struct Acknowledged {
    enqueued: BTreeMap<String, Uuid>,
    sent: BTreeSet<Uuid>,
    keys: BTreeSet<String>,
}

impl Acknowledged {
    fn line(&mut self, line: &str) {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("enqueued"), Some(key), Some(id)) => {
                self.enqueued.insert(key.to_owned(), id.parse().expect("an id"));
            }
            (Some("sent"), Some(id), None) => drop(self.sent.insert(id.parse().expect("an id"))),
            (Some("key"), Some(key), None) => drop(self.keys.insert(key.to_owned())),
            // Lines of the test harness, and a last line cut off by the kill.
            _ => (),
        }
    }
}

/// Runs several callers of each kind, until an error ends them, or forever.
async fn load(store: Store, prefix: String, print_line: impl Fn(String) + Clone + Send + Sync + 'static) {
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..4 {
        let (store, prefix, print_line) = (store.clone(), format!("{prefix}-{caller}"), print_line.clone());
        tasks.spawn(async move {
            for n in 0.. {
                enqueue_one(&store, &format!("{prefix}-m{n}"), &print_line).await;
            }
        });
    }
    for caller in 0..4 {
        let (store, prefix, print_line) = (store.clone(), format!("{prefix}-{caller}"), print_line.clone());
        tasks.spawn(async move {
            for n in 0.. {
                settle_key(&store, &format!("{prefix}-k{n}"), &print_line).await;
            }
        });
    }
    for _ in 0..2 {
        let (store, print_line) = (store.clone(), print_line.clone());
        tasks.spawn(async move {
            loop {
                send_some(&store, &print_line).await;
                tokio::task::yield_now().await;
            }
        });
    }
    tasks.join_all().await;
}

async fn enqueue_one(store: &Store, key: &str, print_line: &impl Fn(String)) {
    match store.messages().enqueue(message(key)).await {
        Ok(Enqueued::New { id } | Enqueued::Replay { id }) => print_line(format!("enqueued {key} {id}")),
        Ok(other) => panic!("{key}: {other:?}"),
        Err(error) => expected(&error),
    }
}

async fn settle_key(store: &Store, key: &str, print_line: &impl Fn(String)) {
    let fence = match store.keys().claim(claim(key)).await {
        Ok(KeyClaimed::Run { fence, .. }) => fence,
        Ok(other) => panic!("{key}: {other:?}"),
        Err(error) => return expected(&error),
    };
    let outcome = KeyOutcome::Keep {
        settled: Settled::Applied,
        response: response(key),
        result_digest: None,
        message_id: None,
        ttl: Duration::from_hours(72),
    };
    match store.keys().settle(KeySettle { name: name(key), fence, outcome }).await {
        Ok(_) => print_line(format!("key {key}")),
        Err(error) => expected(&error),
    }
}

async fn send_some(store: &Store, print_line: &impl Fn(String)) {
    let terms = ClaimOptions {
        node: Uuid::now_v7(),
        lease: LEASE,
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    let work = match store.claims().claim(&queue(), NonZeroU32::new(7).expect("not zero"), terms).await {
        Ok(work) => work,
        Err(error) => return expected(&error),
    };
    for work in work {
        let settlement = Settlement::new(&work, Event::Succeeded { fence: work.fence }, Note::default());
        match store.claims().settle(settlement).await {
            Ok(StepResult::Now(State::Sent)) => print_line(format!("sent {}", work.id)),
            Ok(other) => panic!("{}: {other:?}", work.id),
            Err(error) => expected(&error),
        }
    }
}

/// A database that goes away may be unavailable, busy, or of unknown outcome; anything else is a bug.
fn expected(error: &StoreError) {
    assert!(
        matches!(error, StoreError::Busy | StoreError::Unavailable(_) | StoreError::Unknown(_)),
        "{error:?}"
    );
}

/// Not a test: the child that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests below as a process of its own"]
async fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let round = std::env::var(ROUND).expect("the round");
    let store = Store::open(&url, 4).await.expect("the store opens");
    load(store, round, |line| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent listens");
    })
    .await;
}

/// Starts a child on the database, reads its output, and kills it after this many lines.
fn run_and_kill(url: &str, round: u64, lines: u64, acknowledged: &mut Acknowledged) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "crash::child", "--nocapture"])
        .env(URL, url)
        .env(ROUND, format!("r{round}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the child starts");
    let mut said = BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok);
    let mut heard = 0;
    while heard < lines {
        let line = said.next().expect("the child is not done before it is killed");
        heard += u64::from(line.contains(' '));
        acknowledged.line(&line);
    }
    child.kill().expect("killed");
    // Everything it printed before it died counts; only the last line may be cut off.
    let rest: Vec<String> = said.collect();
    let whole = rest.split_last().map_or(&rest[..], |(_, whole)| whole);
    for line in whole {
        acknowledged.line(line);
    }
    child.wait().expect("gone");
}

async fn all_messages(store: &Store) -> Vec<ichido_store::message::MessageRow> {
    let mut all = Vec::new();
    let mut filter = MessageFilter::default();
    loop {
        let page = store.messages().list(&filter, limits::MAX_PAGE).await.expect("listed");
        let Some(last) = page.last() else { return all };
        filter.after = Some(last.id);
        all.extend(page);
    }
}

/// Asserts that everything acknowledged exists, everything is complete, and all of it can still be sent.
async fn check(store: &Store, acknowledged: &Acknowledged) {
    for (key, id) in &acknowledged.enqueued {
        let row = store.messages().get(*id).await.expect("read").unwrap_or_else(|| panic!("{key} is lost"));
        assert_eq!((row.key.as_str(), row.request.as_slice()), (key.as_str(), key.as_bytes()));
    }
    for id in &acknowledged.sent {
        let row = store.messages().get(*id).await.expect("read").expect("a message that was sent");
        assert_eq!(row.status, StateName::Sent, "{id}");
    }
    for key in &acknowledged.keys {
        match store.keys().claim(claim(key)).await.expect("claimed") {
            KeyClaimed::Replay(found) => assert_eq!(found, response(key)),
            other => panic!("{key}: {other:?}"),
        }
    }
    let all = all_messages(store).await;
    let mut by_status: BTreeMap<StateName, i64> = BTreeMap::new();
    for row in &all {
        assert_eq!(row.request, row.key.as_str().as_bytes(), "whole");
        *by_status.entry(row.status).or_default() += 1;
    }
    let counted: BTreeMap<StateName, i64> = store
        .queues()
        .counts()
        .await
        .expect("counted")
        .into_iter()
        .map(|count| (count.state, count.count))
        .collect();
    assert_eq!(by_status, counted, "the counts agree with the messages");
    is_whole(store).await;
}

/// Asserts that an audit finds nothing, however the process was killed.
// SPEC F5.
async fn is_whole(store: &Store) {
    let report = store.audit().verify(None, None).await.expect("it can be read");
    assert_eq!(report.findings, []);
}

/// Rescues and sends everything; every message ends sent, once.
async fn finish(store: &Store) {
    store.advance_clock(LEASE * 2);
    let guarantee = Guarantee::Keyed { keeps_for: Duration::from_hours(24) };
    let terms = RescueOptions { guarantee, wait: Duration::ZERO, max_time_in_flight: Duration::ZERO };
    loop {
        while store.claims().rescue(|_| terms).await.expect("rescued").is_some() {}
        store.claims().promote(10_000).await.expect("promoted");
        let terms = ClaimOptions {
            node: Uuid::now_v7(),
            lease: LEASE,
            start_marks: false,
            guarantee: Guarantee::Idempotent,
            max_time_in_flight: Duration::ZERO,
        };
        let work = store
            .claims()
            .claim(&queue(), NonZeroU32::new(500).expect("not zero"), terms)
            .await
            .expect("claimed");
        if work.is_empty() {
            break;
        }
        let settlements = work
            .iter()
            .map(|work| Settlement::new(work, Event::Succeeded { fence: work.fence }, Note::default()))
            .collect();
        for stepped in store.claims().settle_all(settlements).await {
            assert_eq!(stepped.expect("settled"), StepResult::Now(State::Sent));
        }
    }
    for row in all_messages(store).await {
        assert_eq!(row.status, StateName::Sent, "{}", row.id);
        let sent = store.messages().transitions(row.id).await.expect("read");
        assert_eq!(sent.iter().filter(|step| step.to == StateName::Sent).count(), 1, "{}", row.id);
    }
    is_whole(store).await;
}

/// The same sequence in every run, so a failure can be reproduced; the timing differs anyway.
fn dice(seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}

async fn killed_at_random(url: &str) {
    let mut acknowledged = Acknowledged::default();
    for round in 0..kills() {
        let lines = 1 + dice(round) % 200;
        run_and_kill(url, round, lines, &mut acknowledged);
    }
    if url.starts_with("postgres") {
        // The server may still be executing the last statement.
        until_alone(&mut other(url).await).await;
    }
    let store = Store::open(url, 4).await.expect("the store opens again");
    assert!(
        !acknowledged.enqueued.is_empty() && !acknowledged.sent.is_empty() && !acknowledged.keys.is_empty()
    );
    check(&store, &acknowledged).await;
    finish(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed_on_postgres() {
    let database = ichido_store::testing::postgres::durable_database().await;
    killed_at_random(&database.url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed_on_sqlite() {
    let file = ichido_store::testing::sqlite::fresh_file();
    killed_at_random(&file.url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_get_an_error_or_the_truth_when_the_server_is_restarted() {
    let cluster = Cluster::start(&[]).expect("a server of its own");
    let database = cluster.database().await.expect("a database");
    let store = Store::open(&database.url, 4).await.expect("the store opens");
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let loading = tokio::spawn(load(store.clone(), "restart".into(), move |line| drop(said.send(line))));
    let mut acknowledged = Acknowledged::default();
    let mut cluster = Some(cluster);
    for _ in 0..3 {
        for _ in 0..300 {
            acknowledged.line(&heard.recv().await.expect("the load continues automatically"));
        }
        let server = cluster.take().expect("the server");
        cluster = Some(
            tokio::task::spawn_blocking(move || {
                server.restart_immediate().expect("restarted");
                server
            })
            .await
            .expect("restarted"),
        );
    }
    for _ in 0..300 {
        acknowledged.line(&heard.recv().await.expect("work goes on after the last restart"));
    }
    loading.abort();
    assert!(loading.await.is_err_and(|error| error.is_cancelled()), "no caller got a wrong answer");
    while let Ok(line) = heard.try_recv() {
        acknowledged.line(&line);
    }
    // Everything in flight has ended when the last connection of the old store is gone.
    store.postgres_pool().expect("a store on PostgreSQL").close().await;
    drop(store);
    until_alone(&mut other(&database.url).await).await;
    let store = Store::open(&database.url, 4).await.expect("the store opens again");
    check(&store, &acknowledged).await;
    finish(&store).await;
}
