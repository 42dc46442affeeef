//! Ichido as a contestant, on either database.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ichido::destination::{Handler, Job, JobError};
use ichido::worker::{DestinationConfig, QueueConfig, Worker};
use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::diagnostics::{self, DatabaseDiagnostics};
use ichido_store::message::{NewMessage, QueueName, RequestBody};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use super::protocol::{Part, Task, done, ready};
use crate::report::joined;

const CONNECTIONS: u32 = 8;
const PARALLELISM: u32 = 1_000;
const BATCH_SIZE: u32 = 1_000;
const QUEUE: &str = "orders";
/// Callers that enqueue at a rate, at most one message each at a time.
const CALLERS: usize = 64;

#[derive(Deserialize, Serialize)]
struct OrderPayload {
    number: usize,
    text: String,
}

pub(crate) async fn run(task: Task) {
    let store = Store::open(&task.url, CONNECTIONS).await.expect("the store opens");
    assert_durable(&task.url).await;
    match task.part {
        Part::EnqueueOne => enqueue_one(&store, &task).await,
        Part::EnqueueBulk => enqueue_bulk(&store, &task).await,
        Part::Drain => drain(&store, &task).await,
        Part::Pickup => pickup(store, &task).await,
        Part::Serve => panic!("the endpoint is a program of its own"),
    }
}

/// An acknowledged write is on the disk, or the numbers mean nothing.
async fn assert_durable(url: &str) {
    let open_for = Duration::from_hours(1);
    match diagnostics::inspect(url, || Timestamp::EPOCH, open_for).await.expect("diagnostics").database {
        DatabaseDiagnostics::Sqlite { synchronous, .. } => assert_eq!(synchronous, 2, "synchronous is FULL"),
        DatabaseDiagnostics::Postgres(server) => {
            assert!(server.fsync && server.full_page_writes && server.synchronous_commit == "on");
        }
    }
}

async fn enqueue_one(store: &Store, task: &Task) {
    let text = task.text();
    ready(None);
    for number in 0..task.count {
        store.messages().enqueue(message(number, &text)).await.expect("enqueued");
    }
    done(Vec::new());
}

async fn enqueue_bulk(store: &Store, task: &Task) {
    let (text, bulk) = (task.text(), task.bulk());
    ready(None);
    for first in (0..task.count).step_by(bulk) {
        let messages = (first..task.count.min(first + bulk)).map(|number| message(number, &text)).collect();
        assert!(store.messages().enqueue_all(messages).await.iter().all(Result::is_ok));
    }
    done(Vec::new());
}

async fn drain(store: &Store, task: &Task) {
    let counted = Arc::new(AtomicUsize::new(0));
    let before = sent(store).await;
    let mut stores = vec![store.clone()];
    while stores.len() < task.workers {
        stores.push(Store::open(&task.url, CONNECTIONS).await.expect("the store opens"));
    }
    ready(None);
    let workers: Vec<_> = stores
        .into_iter()
        .map(|store| {
            let counted = Arc::clone(&counted);
            let handler = Handler::json(move |job: Job<OrderPayload>| {
                let counted = Arc::clone(&counted);
                async move {
                    drop(job);
                    counted.fetch_add(1, Ordering::Relaxed);
                    Ok::<(), JobError>(())
                }
            });
            let destination = DestinationConfig::new(QUEUE, handler.idempotent());
            Worker::new(store).destination(destination).queue(queue()).start().expect("a worker")
        })
        .collect();
    while counted.load(Ordering::Relaxed) < task.count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // All have run; done when the last settle is written.
    while sent(store).await - before < task.count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    done(Vec::new());
    assert_eq!(counted.load(Ordering::Relaxed), task.count, "each ran once");
    drop(workers);
}

async fn sent(store: &Store) -> usize {
    let counts = store.queues().counts().await.expect("counts");
    let sent = counts.iter().filter(|line| line.state == StateName::Sent).map(|line| line.count).sum::<i64>();
    usize::try_from(sent).expect("positive")
}

/// Another node enqueues on PostgreSQL: this process's own wake-ups would be faster.
async fn pickup(store: Store, task: &Task) {
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = Handler::json(move |job: Job<OrderPayload>| {
        let _sent = started.send((job.payload.number, Instant::now()));
        async move { Ok::<(), JobError>(()) }
    });
    let sender = if task.url.starts_with("postgres") {
        Store::open(&task.url, CONNECTIONS).await.expect("the store opens")
    } else {
        store.clone()
    };
    let worker = Worker::new(store).destination(DestinationConfig::new(QUEUE, handler.idempotent()));
    let worker = worker.queue(queue()).start().expect("a worker");
    worker.started().await;
    let (text, rate, count) = (Arc::<str>::from(task.text()), task.rate, task.count);
    ready(None);
    let begin = Instant::now();
    let due = move |number: usize| {
        #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
        let number = number as f64;
        begin + Duration::from_secs_f64(number / rate)
    };
    let next = Arc::new(AtomicUsize::new(0));
    let callers = (0..CALLERS).map(|_| {
        let (sender, next, text) = (sender.clone(), Arc::clone(&next), Arc::clone(&text));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if count <= number {
                    return;
                }
                tokio::time::sleep_until(due(number)).await;
                sender.messages().enqueue(message(number, &text)).await.expect("enqueued");
            }
        })
    });
    joined(callers).await;
    let mut latencies = Vec::with_capacity(count);
    while latencies.len() < count {
        let (number, at) = starts.recv().await.expect("run");
        latencies.push(at.saturating_duration_since(due(number)).as_secs_f64() * 1e6);
    }
    done(latencies);
}

fn queue() -> QueueConfig {
    QueueConfig {
        parallelism: NonZeroU32::new(PARALLELISM).expect("not zero"),
        batch_size: NonZeroU32::new(BATCH_SIZE).expect("not zero"),
        ..QueueConfig::new(QUEUE, QUEUE)
    }
}

fn message(number: usize, text: &str) -> NewMessage {
    let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).expect("a key");
    let order = OrderPayload { number, text: text.to_owned() };
    let request = serde_json::to_vec(&order).expect("JSON");
    let request = RequestBody::new("application/json", request, CanonicalForm::default()).expect("JSON");
    NewMessage::new(QueueName::parse(QUEUE).expect("a name"), "alice", key, request)
}
