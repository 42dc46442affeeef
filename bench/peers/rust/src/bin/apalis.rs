//! `apalis` with its PostgreSQL storage, as in its example `basic`: notifications, no separate lock of each task, each task on the
//! runtime's threads; with larger batches, which improve throughput (docs of `Config::batch_size`).
//!
//! <https://docs.rs/apalis-postgres/1.0.0/apalis_postgres/struct.Config.html>
//! <https://github.com/apalis-dev/apalis-postgres/blob/main/examples/basic.rs>

use std::time::Duration;

use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage, queries};
use ichido_bench_peers::{Order, Started, Task as Part, done, ready};
use sqlx::postgres::PgPoolOptions;

const CONNECTIONS: u32 = 20;
const QUEUE: &str = "orders";
/// Twice as fast here as batches of 1,000.
const BATCH_SIZE: usize = 5_000;
/// For a notification that came while it fetched.
const POLL: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() {
    let task = Part::read();
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(&task.url).await.expect("connected");
    PostgresStorage::setup(&pool).await.expect("migrated");
    let (started, starts) = Started::new();
    match task.part.as_str() {
        "enqueue-one" => {
            ready(None).await;
            for number in 0..task.count {
                push(&pool, vec![task.order(number)]).await;
            }
            done(Vec::new()).await;
        }
        "enqueue-bulk" => {
            ready(None).await;
            for bulk in task.bulks() {
                push(&pool, bulk).await;
            }
            done(Vec::new()).await;
        }
        "drain" => {
            ready(None).await;
            let left = "SELECT EXISTS (SELECT FROM apalis.jobs WHERE status <> 'Done')";
            let is_left =
                || async { sqlx::query_scalar::<_, bool>(left).fetch_one(&pool).await.expect("answered") };
            tokio::join!(work(&pool, &started), started.drained(task.count, is_left));
        }
        "pickup" => {
            let enqueued_to = pool.clone();
            let enqueue = move |order| {
                let pool = enqueued_to.clone();
                async move { push(&pool, vec![order]).await }
            };
            let pickup = async {
                tokio::time::sleep(Duration::from_millis(500)).await; // Its listener is in place.
                task.pickup(enqueue, starts).await;
            };
            tokio::join!(work(&pool, &started), pickup);
        }
        part => panic!("unknown part {part}"),
    }
}

async fn push(pool: &PgPool, orders: Vec<Order>) {
    let tasks = orders.iter().map(|order| TaskBuilder::new(serde_json::to_vec(order).expect("JSON")).build());
    let mut connection = pool.acquire().await.expect("a connection");
    queries::push_tasks(&mut *connection, QUEUE, tasks.collect()).await.expect("enqueued");
}

/// Runs a worker until the process ends: in `main`, as in its examples, because its future cannot be spawned.
async fn work(pool: &PgPool, started: &Started) {
    let config = Config::default().queue(QUEUE).batch_size(BATCH_SIZE).lock_tasks(false);
    let backend =
        PostgresStorage::<Order>::new(pool).with_config(config).with_pubsub().poll_with_interval(POLL);
    let worker = WorkerBuilder::new("orders-1")
        .backend(backend)
        .data(started.clone())
        .parallelize(tokio::spawn)
        .build(order);
    worker.run().await.expect("no error");
}

async fn order(order: Order, started: Data<Started>) -> Result<(), BoxDynError> {
    started.record(order.number);
    Ok(())
}
