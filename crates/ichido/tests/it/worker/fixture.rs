//! A fresh database, workers on it, and the vocabulary of the tests.

use crate::handler_gate::HandlerGate;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ichido::destination::{Handler, Job, JobError, JobSuccess};
use ichido::worker::{DestinationConfig, Paces, QueueConfig, Worker, WorkerHandle};
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::retry::{Jitter, Retry, Schedule};
use ichido_store::Store;
use ichido_store::message::{Enqueued, MessageFilter, MessageRow, NewMessage, QueueName, Transition};
use ichido_store::testing::{postgres, sqlite, while_busy};
use uuid::Uuid;

pub(crate) const QUEUE: &str = "orders";
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Longer than any lease here.
pub(crate) const AFTER_LEASE: Duration = Duration::from_secs(31);
pub(crate) const DAY: Duration = Duration::from_hours(24);
/// How long a failed message waits: so long that no test reaches it without moving the clock.
pub(crate) const BACKOFF: Duration = Duration::from_mins(10);
/// The polling interval of the workers here. Each poll costs several statements, and many tests run at once.
pub(crate) const IDLE: Duration = Duration::from_millis(25);
/// How often a condition is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The longest that a test may take, beside compilers on a small machine.
const MAX_CASE: Duration = Duration::from_mins(5);

/// A fresh database and one node on it.
pub(crate) struct WorkerFixture {
    pub(crate) store: Store,
    pub(crate) url: String,
    /// Whether the test wrote what the store would not.
    pub(crate) is_touched: Arc<AtomicBool>,
    database: Option<Arc<WorkerDatabase>>,
}

/// Removed with the fixture.
enum WorkerDatabase {
    Postgres { _database: postgres::PgTestDatabase },
    Sqlite { _file: sqlite::SqliteTestFile },
}

impl WorkerFixture {
    pub(crate) async fn postgres() -> Self {
        let database = postgres::fresh_database().await;
        let url = database.url.clone();
        Self::at(&url, Some(WorkerDatabase::Postgres { _database: database })).await
    }

    pub(crate) async fn sqlite() -> Self {
        let file = sqlite::fresh_file();
        let url = file.url.clone();
        Self::at(&url, Some(WorkerDatabase::Sqlite { _file: file })).await
    }

    async fn at(url: &str, database: Option<WorkerDatabase>) -> Self {
        let store = Store::open(url, 4).await.expect("the store opens");
        let (url, is_touched) = (url.to_owned(), Arc::default());
        Self { store, url, is_touched, database: database.map(Arc::new) }
    }

    /// The same database as another node sees it. It has its own clock.
    pub(crate) async fn another_node(&self) -> Self {
        Self::at(&self.url, None).await
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, time: Duration) {
        self.store.advance_clock(time);
    }

    /// A builder of a worker that polls often.
    pub(crate) fn builder(&self) -> Worker {
        Worker::new(self.store.clone()).idle_sleep(IDLE).stop_timeout(MAX_CASE)
    }

    /// A worker of one queue with a handler.
    pub(crate) fn work(&self, handler: Handler) -> WorkerHandle {
        self.work_as(handler, |_| ())
    }

    /// The same with changed settings.
    pub(crate) fn work_as(&self, handler: Handler, change: impl FnOnce(&mut QueueConfig)) -> WorkerHandle {
        self.builder_with(handler, change).start().expect("a worker")
    }

    pub(crate) fn builder_with(&self, handler: Handler, change: impl FnOnce(&mut QueueConfig)) -> Worker {
        let mut queue = QueueConfig { lease: LEASE, retry: backoff(), ..QueueConfig::new(QUEUE, QUEUE) };
        change(&mut queue);
        self.builder().destination(DestinationConfig::new(QUEUE, handler)).queue(queue)
    }

    /// Enqueues a message of alice's.
    pub(crate) async fn put(&self, key: &str) -> Uuid {
        self.put_in(message(key)).await
    }

    pub(crate) async fn put_in(&self, message: NewMessage) -> Uuid {
        match while_busy(|| self.store.messages().enqueue(message.clone())).await {
            Enqueued::New { id } => id,
            other => panic!("not new: {other:?}"),
        }
    }

    pub(crate) async fn row(&self, id: Uuid) -> MessageRow {
        while_busy(|| self.store.messages().get(id)).await.expect("it is there")
    }

    pub(crate) async fn transitions(&self, id: Uuid) -> Vec<Transition> {
        while_busy(|| self.store.messages().transitions(id)).await
    }

    /// The kinds of a message's transitions.
    pub(crate) async fn kinds(&self, id: Uuid) -> Vec<String> {
        self.transitions(id).await.into_iter().map(|step| step.kind).collect()
    }

    /// Waits until a message is in a state.
    pub(crate) async fn until(&self, id: Uuid, stage: StateName) -> MessageRow {
        self.until_row(id, |row| row.status == stage).await
    }

    pub(crate) async fn until_row(&self, id: Uuid, is: impl Fn(&MessageRow) -> bool) -> MessageRow {
        loop {
            let row = self.row(id).await;
            if is(&row) {
                return row;
            }
            poll_pause().await;
        }
    }

    /// How many messages of the queue are in a state.
    pub(crate) async fn count(&self, stage: StateName) -> i64 {
        let counts = while_busy(|| self.store.queues().counts()).await;
        counts.into_iter().filter(|count| count.state == stage).map(|count| count.count).sum()
    }

    pub(crate) async fn until_count(&self, stage: StateName, expected: i64) {
        while self.count(stage).await != expected {
            poll_pause().await;
        }
    }
}

/// A message of alice's.
pub(crate) fn message(key: &str) -> NewMessage {
    message_of("alice", key)
}

pub(crate) fn message_of(identity: &str, key: &str) -> NewMessage {
    NewMessage::new(queue(QUEUE), identity, self::key(key), format!("{{\"n\":\"{key}\"}}").into_bytes())
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::parse(name).expect("a name")
}

pub(crate) fn key(key: &str) -> IdempotencyKey {
    IdempotencyKey::parse(key).expect("a key")
}

/// The same wait after every failure.
pub(crate) fn backoff() -> Retry {
    Retry { schedule: Schedule::List(vec![BACKOFF]), jitter: Jitter::None, ..Retry::ORDER }
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("some")
}

pub(crate) fn only<T: std::fmt::Debug>(mut all: Vec<T>) -> T {
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// A fake receiver: records calls and responds to them.
#[derive(Clone, Default)]
pub(crate) struct FakeReceiver {
    calls: Arc<Mutex<Vec<ReceivedCall>>>,
    count: Arc<AtomicUsize>,
}

/// One call as the receiver saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedCall {
    pub(crate) message: Uuid,
    pub(crate) identity: String,
    pub(crate) key: String,
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
    pub(crate) body: Bytes,
}

impl FakeReceiver {
    /// A handler that records each call and responds with `answer`, given the call's number from 1.
    pub(crate) fn handler<A>(
        &self,
        answer: impl Fn(usize, Job<Bytes>) -> A + Send + Sync + 'static,
    ) -> Handler
    where
        A: Future<Output = Result<JobSuccess, JobError>> + Send + 'static,
    {
        let receiver = self.clone();
        Handler::bytes(move |job: Job<Bytes>| {
            let seen = ReceivedCall {
                message: job.message,
                identity: job.identity.clone(),
                key: job.key.as_str().to_owned(),
                fence: job.fence.get(),
                attempt: job.attempt,
                body: job.payload.clone(),
            };
            receiver.calls.lock().unwrap().push(seen);
            answer(receiver.count.fetch_add(1, Ordering::SeqCst) + 1, job)
        })
    }

    /// A handler that always succeeds.
    pub(crate) fn done(&self) -> Handler {
        self.handler(|_, _| async { Ok(JobSuccess::default()) })
    }

    /// A handler that succeeds once the gate lets it pass.
    pub(crate) fn done_after(&self, gate: &HandlerGate) -> Handler {
        let gate = gate.clone();
        self.handler(move |_, _| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok(JobSuccess::default())
            }
        })
    }

    pub(crate) fn calls(&self) -> Vec<ReceivedCall> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// How often a message was called.
    pub(crate) fn calls_of(&self, id: Uuid) -> usize {
        self.calls().iter().filter(|seen| seen.message == id).count()
    }
}

/// The pause between two checks of a condition, which leaves the machine to the workers.
pub(crate) async fn poll_pause() {
    tokio::time::sleep(LOOK_EVERY).await;
}

/// Fails a test that waits forever, and prints the state of its messages.
pub(crate) async fn in_time<A: Future<Output = ()>>(
    fixture: WorkerFixture,
    case: impl FnOnce(WorkerFixture) -> A,
) {
    let (store, is_touched) = (fixture.store.clone(), Arc::clone(&fixture.is_touched));
    let _database = fixture.database.clone();
    if tokio::time::timeout(MAX_CASE, case(fixture)).await.is_ok() {
        if is_touched.load(Ordering::Relaxed) {
            return;
        }
        // Everything that workers do follows the rules. Spec: F5.
        let report = while_busy(|| store.audit().verify(None, None)).await;
        assert_eq!(report.findings, [], "the audit finds nothing");
        return;
    }
    let now = store.now().await.expect("a response");
    let rows = store.messages().list(&MessageFilter::default(), 100).await.expect("a response");
    for row in rows {
        println!("{row:?}");
        for step in store.messages().transitions(row.id).await.expect("a response") {
            println!("    {step:?}");
        }
    }
    println!("{:?}", Paces::new(store).read("broker").await.expect("a response"));
    panic!("the case does not end; it is {now} now");
}

/// One behaviour, one test per database.
macro_rules! both_databases {
    ($($(#[doc = $doc:literal])* #[test] async fn $name:ident($fixture:ident: WorkerFixture) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            async fn case($fixture: WorkerFixture) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $crate::worker::fixture::in_time(WorkerFixture::postgres().await, case).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $crate::worker::fixture::in_time(WorkerFixture::sqlite().await, case).await;
            }
        }
    )+ };
}

pub(crate) use both_databases;
