//! `riverqueue`: the pauses between fetches of its own benchmark (`riverqueue bench`), with as many workers as it uses by
//! default there, but 20 connections instead of 50. It batches completions itself.
//!
//! <https://docs.rs/crate/riverqueue-cli/0.5.0/source/src/bench.rs>

use std::time::Duration;

use ichido_bench_peers::{Started, Task, done, ready};
use riverqueue::migrate::PostgresMigrator;
use riverqueue::sqlx::{self, postgres::PgPoolOptions};
use riverqueue::{BoxError, Client, Job, JobArgs, QueueConfig, WorkContext, WorkOutcome, Workers};
use serde::{Deserialize, Serialize};

const CONNECTIONS: u32 = 20;
const MAX_WORKERS: usize = 2_000;
const COOLDOWN: Duration = Duration::from_millis(2);
const POLL: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, Deserialize, JobArgs, Serialize)]
#[river(kind = "orders")]
struct OrderArgs {
    number: usize,
    text: String,
}

impl From<ichido_bench_peers::Order> for OrderArgs {
    fn from(order: ichido_bench_peers::Order) -> Self {
        Self { number: order.number, text: order.text }
    }
}

#[tokio::main]
async fn main() {
    let task = Task::read();
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(&task.url).await.expect("connected");
    PostgresMigrator::new(pool.clone()).migrate_up().await.expect("migrated");
    let (started, starts) = Started::new();
    let mut workers = Workers::new();
    let handler = started.clone();
    workers
        .add_fn(move |_: WorkContext, job: Job<OrderArgs>| {
            handler.record(job.args.number);
            async { Ok::<_, BoxError>(WorkOutcome::Complete) }
        })
        .expect("a worker");
    let client = Client::builder(pool.clone())
        .workers(workers)
        .fetch_cooldown(COOLDOWN)
        .queue("default", QueueConfig::new(MAX_WORKERS).with_fetch_poll_interval(POLL))
        .build()
        .expect("a client");
    match task.part.as_str() {
        "enqueue-one" => {
            ready(None).await;
            for number in 0..task.count {
                client.insert(OrderArgs::from(task.order(number))).await.expect("enqueued");
            }
            done(Vec::new()).await;
        }
        "enqueue-bulk" => {
            ready(None).await;
            for bulk in task.bulks() {
                client.insert_many(bulk.into_iter().map(OrderArgs::from)).await.expect("enqueued");
            }
            done(Vec::new()).await;
        }
        "drain" => {
            ready(None).await;
            let _running = client.start().expect("started");
            let left = "SELECT EXISTS (SELECT FROM river_job WHERE state <> 'completed')";
            let is_left =
                || async { sqlx::query_scalar::<_, bool>(left).fetch_one(&pool).await.expect("answered") };
            started.drained(task.count, is_left).await;
        }
        "pickup" => {
            let mut running = client.start().expect("started");
            running.wait_ready().await.expect("ready");
            let enqueue = move |order: ichido_bench_peers::Order| {
                let client = client.clone();
                async move {
                    client.insert(OrderArgs::from(order)).await.expect("enqueued");
                }
            };
            task.pickup(enqueue, starts).await;
        }
        part => panic!("unknown part {part}"),
    }
}
