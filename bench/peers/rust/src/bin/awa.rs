//! `awa`: its queue storage, which a fresh database gets, with the workers and claimers of its own benchmark of it.

use std::time::Duration;

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
    // The first client of a fresh database chooses its storage, so one is started before anything is enqueued.
    if task.part.starts_with("enqueue") {
        work(&pool, "setup", &started).await.shutdown(Duration::from_secs(5)).await;
    }
    match task.part.as_str() {
        "enqueue-one" => {
            ready(None).await;
            for number in 0..task.count {
                enqueue(&pool, task.order(number)).await;
            }
            done(Vec::new()).await;
        }
        "enqueue-bulk" => {
            ready(None).await;
            for bulk in task.bulks() {
                let jobs: Vec<InsertParams> = bulk.into_iter().map(params).collect();
                awa::insert_many_copy_from_pool(&pool, &jobs).await.expect("enqueued");
            }
            done(Vec::new()).await;
        }
        "drain" => {
            ready(None).await;
            let _client = work(&pool, QUEUE, &started).await;
            let left = "SELECT EXISTS (SELECT FROM awa.jobs WHERE queue = $1 AND state <> 'completed')";
            let is_left = || async {
                sqlx08::query_scalar::<_, bool>(left).bind(QUEUE).fetch_one(&pool).await.expect("answered")
            };
            started.drained(task.count, is_left).await;
        }
        "pickup" => {
            let _client = work(&pool, QUEUE, &started).await;
            let enqueue = move |order| {
                let pool = pool.clone();
                async move { enqueue(&pool, order).await }
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

async fn enqueue(pool: &PgPool, order: Order) {
    let args = OrderArgs { number: order.number, text: order.text };
    awa::insert_with(pool, &args, options()).await.expect("enqueued");
}

fn options() -> InsertOpts {
    InsertOpts { queue: QUEUE.into(), ..InsertOpts::default() }
}
