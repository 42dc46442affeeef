//! `apalis` with its PostgreSQL storage: large batches and no separate lock of each task, as in its basic example; woken by
//! notifications.

use std::time::Duration;

use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage, queries};
use ichido_bench_peers::{Order, Started, Task as Part, done, ready};
use sqlx::postgres::PgPoolOptions;

const CONNECTIONS: u32 = 20;
const QUEUE: &str = "orders";
const BATCH_SIZE: usize = 1_000;
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
            work(&pool, &started);
            let left = "SELECT EXISTS (SELECT FROM apalis.jobs WHERE status <> 'Done')";
            let is_left =
                || async { sqlx::query_scalar::<_, bool>(left).fetch_one(&pool).await.expect("answered") };
            started.drained(task.count, is_left).await;
        }
        "pickup" => {
            work(&pool, &started);
            tokio::time::sleep(Duration::from_millis(500)).await; // Its listener is in place.
            let enqueue = move |order| {
                let pool = pool.clone();
                async move { push(&pool, vec![order]).await }
            };
            task.pickup(enqueue, starts).await;
        }
        part => panic!("unknown part {part}"),
    }
}

async fn push(pool: &PgPool, orders: Vec<Order>) {
    let tasks = orders.iter().map(|order| TaskBuilder::new(serde_json::to_vec(order).expect("JSON")).build());
    let mut connection = pool.acquire().await.expect("a connection");
    queries::push_tasks(&mut *connection, QUEUE, tasks.collect()).await.expect("enqueued");
}

/// Starts a worker that runs until the process ends.
fn work(pool: &PgPool, started: &Started) {
    let config = Config::default().queue(QUEUE).batch_size(BATCH_SIZE).lock_tasks(false);
    let backend =
        PostgresStorage::<Order>::new(pool).with_config(config).with_pubsub().poll_with_interval(POLL);
    let worker = WorkerBuilder::new("orders-1")
        .backend(backend)
        .data(started.clone())
        .parallelize(tokio::spawn)
        .build(order);
    tokio::spawn(async move { worker.run().await.expect("no error") });
}

async fn order(order: Order, started: Data<Started>) -> Result<(), BoxDynError> {
    started.record(order.number);
    Ok(())
}
