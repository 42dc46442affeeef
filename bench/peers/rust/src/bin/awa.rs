//! `awa`: its queue storage, which a fresh database gets, without deadlines and polled as in its own benchmark of it
//! (`tests/benchmark_test.rs`), with as many workers as it claims in two of that storage's batches
//! (`tests/queue_storage_benchmark_test.rs`). Inserts go straight to that storage, as in its own benchmarks of throughput and of
//! pickups; bulks by COPY.
//!
//! <https://docs.rs/crate/awa/0.6.9/source/tests/benchmark_test.rs>
//! <https://docs.rs/crate/awa-model/0.6.9/source/README.md>

use std::sync::Arc;
use std::time::Duration;

use awa::model::{QueueStorage, QueueStorageConfig};
use awa::{Client, InsertOpts, InsertParams, JobArgs, JobResult, QueueConfig};
use ichido_bench_peers::{Order, Started, Task, done, ready};
use serde::{Deserialize, Serialize};
use sqlx08::postgres::{PgPool, PgPoolOptions};

const CONNECTIONS: u32 = 20;
const QUEUE: &str = "orders";
const MAX_WORKERS: u32 = 1_024;
const CLAIMERS: u16 = 2;
const CLAIM_BATCH: usize = 512;
const POLL: Duration = Duration::from_millis(50);

/// Its view of all jobs takes minutes for thousands of completed ones.
const UNFINISHED: &str = "SELECT (SELECT count(*) FROM awa.ready_entries WHERE queue = 'orders') \
    - (SELECT count(*) FROM awa.done_entries WHERE queue = 'orders') \
    - (SELECT coalesce(sum(completed_count), 0)::bigint FROM awa.receipt_completion_batches WHERE queue = 'orders')";

#[derive(Debug, Deserialize, JobArgs, Serialize)]
struct OrderArgs {
    number: usize,
    text: String,
}

#[tokio::main]
async fn main() {
    let task = Task::read();
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(&task.url).await.expect("connected");
    awa::migrations::run(&pool).await.expect("migrated");
    let (started, starts) = Started::new();
    let storage =
        QueueStorage::new(QueueStorageConfig::default()).map(Arc::new).expect("the storage of clients");
    // The first client of a fresh database chooses its storage, so one is started before anything is enqueued.
    if task.part.starts_with("enqueue") {
        work(&pool, "setup", &started).await.shutdown(Duration::from_secs(5)).await;
    }
    match task.part.as_str() {
        "enqueue-one" => {
            ready(None).await;
            for number in 0..task.count {
                enqueue(&storage, &pool, task.order(number)).await;
            }
            done(Vec::new()).await;
        }
        "enqueue-bulk" => {
            ready(None).await;
            for bulk in task.bulks() {
                let jobs: Vec<InsertParams> = bulk.into_iter().map(params).collect();
                storage.enqueue_params_copy(&pool, &jobs).await.expect("enqueued");
            }
            done(Vec::new()).await;
        }
        "drain" => {
            ready(None).await;
            let _client = work(&pool, QUEUE, &started).await;
            let is_left = || async {
                let left = sqlx08::query_scalar::<_, i64>(UNFINISHED).fetch_one(&pool).await;
                0 < left.expect("answered")
            };
            started.drained(task.count, is_left).await;
        }
        "pickup" => {
            let _client = work(&pool, QUEUE, &started).await;
            let enqueue = move |order| {
                let (storage, pool) = (Arc::clone(&storage), pool.clone());
                async move { enqueue(&storage, &pool, order).await }
            };
            task.pickup(enqueue, starts).await;
        }
        part => panic!("unknown part {part}"),
    }
}

async fn work(pool: &PgPool, queue: &str, started: &Started) -> Client {
    let started = started.clone();
    let settings = QueueConfig {
        max_workers: MAX_WORKERS,
        claimers: CLAIMERS,
        claim_batch_size: CLAIM_BATCH,
        poll_interval: POLL,
        deadline_duration: Duration::ZERO,
        ..QueueConfig::default()
    };
    let client = Client::builder(pool.clone())
        .queue(queue, settings)
        .register::<OrderArgs, _, _>(move |args: OrderArgs, _| {
            started.record(args.number);
            async { Ok(JobResult::Completed) }
        })
        .build()
        .expect("a client");
    client.start().await.expect("started");
    client
}

fn params(order: Order) -> InsertParams {
    let args = OrderArgs { number: order.number, text: order.text };
    awa::model::insert::params_with(&args, options()).expect("JSON")
}

async fn enqueue(storage: &QueueStorage, pool: &PgPool, order: Order) {
    storage.enqueue_params_batch(pool, &[params(order)]).await.expect("enqueued");
}

fn options() -> InsertOpts {
    InsertOpts { queue: QUEUE.into(), ..InsertOpts::default() }
}
