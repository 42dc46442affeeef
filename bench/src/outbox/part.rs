//! Our side of one part, in its own process.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ichido::destination::{Handler, Job, JobError};
use ichido::worker::{DestinationConfig, QueueConfig, Worker};
use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_store::Store;
use ichido_store::message::{NewMessage, QueueName, RequestBody};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use crate::report::Stopwatch;
use crate::store::vacuum;

const CONNECTIONS: u32 = 8;
const PARALLELISM: u32 = 1_000;
const BATCH_SIZE: u32 = 1_000;
const QUEUE: &str = "orders";
/// Pause between two messages into an idle queue.
const IDLE_GAP: Duration = Duration::from_millis(20);

#[derive(Deserialize, Serialize)]
struct OrderPayload {
    number: usize,
    text: String,
}

pub(crate) fn settings() -> String {
    format!(
        "drain: parallelism {PARALLELISM}, batch_size {BATCH_SIZE}, {CONNECTIONS} connections, a repeatable JSON handler, all else \
         default, history kept; idle: defaults, enqueued by another node"
    )
}

pub(crate) async fn run(part: &str, url: &str, count: usize) {
    let store = Store::open(url, CONNECTIONS).await.expect("the store opens");
    match part {
        "singly" => singly(&store, count).await,
        "bulk" => bulk(&store, url, count).await,
        "drain" => drain(store, count).await,
        "idle" => idle(store, url, count).await,
        _ => panic!("unknown part {part}"),
    }
}

async fn singly(store: &Store, count: usize) {
    let watch = Stopwatch::start();
    for number in 0..count {
        store.messages().enqueue(message(number)).await.expect("enqueued");
    }
    println!("rate {}", watch.rate(count));
}

async fn bulk(store: &Store, url: &str, count: usize) {
    let watch = Stopwatch::start();
    for part in 0..count / 1_000 {
        let messages = (0..1_000).map(|number| message(part * 1_000 + number)).collect();
        assert!(store.messages().enqueue_all(messages).await.iter().all(Result::is_ok));
    }
    println!("rate {}", watch.rate(count));
    if url.starts_with("postgres") {
        vacuum(&PgPoolOptions::new().connect(url).await.expect("connected")).await;
    }
}

async fn drain(store: Store, count: usize) {
    let counted = Arc::new(AtomicUsize::new(0));
    let handler = Handler::json({
        let counted = Arc::clone(&counted);
        move |job: Job<OrderPayload>| {
            let counted = Arc::clone(&counted);
            async move {
                drop(job);
                counted.fetch_add(1, Ordering::Relaxed);
                Ok::<(), JobError>(())
            }
        }
    });
    let queue = QueueConfig {
        parallelism: NonZeroU32::new(PARALLELISM).expect("not zero"),
        batch_size: NonZeroU32::new(BATCH_SIZE).expect("not zero"),
        ..QueueConfig::new(QUEUE, QUEUE)
    };
    let watch = Stopwatch::start();
    let worker = Worker::new(store.clone())
        .destination(DestinationConfig::new(QUEUE, handler.idempotent()))
        .queue(queue)
        .start()
        .expect("a worker");
    while counted.load(Ordering::Relaxed) < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // All have run; done when the last settle is written.
    let sent = || async {
        let counts = store.queues().counts().await.expect("counts");
        counts.iter().filter(|line| line.state == StateName::Sent).map(|line| line.count).sum::<i64>()
    };
    while usize::try_from(sent().await).expect("positive") < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("rate {}", watch.rate(count));
    tell_memory();
    worker.stop();
    worker.ended().await;
    assert_eq!(counted.load(Ordering::Relaxed), count, "each ran once");
}

/// Another node enqueues: this process's own wake-ups would be faster.
async fn idle(store: Store, url: &str, count: usize) {
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = Handler::json(move |job: Job<OrderPayload>| {
        let _sent = started.send(Instant::now());
        async move {
            drop(job);
            Ok::<(), JobError>(())
        }
    });
    let putting = if url.starts_with("postgres") {
        Store::open(url, CONNECTIONS).await.expect("the store opens")
    } else {
        store.clone()
    };
    let worker = Worker::new(store).handler(QUEUE, handler.idempotent()).start().expect("a worker");
    let mut times = Vec::new();
    for number in 0..count {
        tokio::time::sleep(IDLE_GAP).await;
        let enqueued_at = Instant::now();
        putting.messages().enqueue(message(number)).await.expect("enqueued");
        times.push(starts.recv().await.expect("run").duration_since(enqueued_at));
    }
    times.sort_unstable();
    println!("p50 {}", times[count / 2].as_secs_f64());
    println!("p99 {}", times[count * 99 / 100].as_secs_f64());
    worker.stop();
    worker.ended().await;
}

/// The same order as on the other side: 200 bytes of JSON.
fn message(number: usize) -> NewMessage {
    let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).expect("a key");
    let order = OrderPayload { number, text: "x".repeat(170) };
    let request = serde_json::to_vec(&order).expect("JSON");
    let request = RequestBody::new("application/json", request, CanonicalForm::default()).expect("JSON");
    NewMessage::new(QueueName::parse(QUEUE).expect("a name"), "alice", key, request)
}

/// Returns the peak resident memory, in kilobytes.
fn tell_memory() {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    println!("resident {}", peak.trim().trim_end_matches(" kB"));
}
