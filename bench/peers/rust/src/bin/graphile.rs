//! `graphile_worker`: the settings of its own benchmark (`benches/perf_test.rs`), but with two local queues, which its guide
//! suggests for small jobs, and with 20 connections instead of 100. Pickups have the same settings: without a local queue it
//! fell behind at 100 messages a second, and was not faster at 20.
//!
//! <https://docs.rs/crate/graphile_worker/0.14.1/source/benches/perf_test.rs>
//! <https://docs.rs/crate/graphile_worker/0.14.1/source/docs/src/guides/local-queue.md>

use std::sync::Arc;
use std::time::Duration;

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext, WorkerOptions,
    WorkerUtils,
};
use ichido_bench_peers::{Order, Started, Task, done, ready};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgPool, PgPoolOptions};

const CONCURRENCY: usize = 500;
const LOCAL_QUEUE: usize = 5_000;
const LOCAL_QUEUES: usize = 2;
const COMPLETE_DELAY: Duration = Duration::from_millis(5);
const POLL: Duration = Duration::from_millis(5);
const CONNECTIONS: u32 = 20;
const SCHEMA: &str = "graphile_worker";

#[derive(Clone, Deserialize, Serialize)]
struct OrderTask(Order);

impl TaskHandler for OrderTask {
    const IDENTIFIER: &'static str = "orders";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(started) = context.get_ext::<Started>() {
            started.record(self.0.number);
        }
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() {
    let task = Task::read();
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(&task.url).await.expect("connected");
    let utils = Arc::new(WorkerUtils::new(pool.clone(), SCHEMA));
    utils.migrate().await.expect("migrated");
    let (started, starts) = Started::new();
    match task.part.as_str() {
        "enqueue-one" => {
            ready(None).await;
            for number in 0..task.count {
                utils.add_job(OrderTask(task.order(number)), JobSpec::default()).await.expect("enqueued");
            }
            done(Vec::new()).await;
        }
        "enqueue-bulk" => {
            ready(None).await;
            for bulk in task.bulks() {
                let job = |order: Order| RawJobSpec {
                    identifier: OrderTask::IDENTIFIER.to_owned(),
                    payload: serde_json::to_value(order).expect("JSON"),
                    spec: JobSpec::default(),
                };
                let jobs: Vec<RawJobSpec> = bulk.into_iter().map(job).collect();
                utils.add_raw_jobs(&jobs).await.expect("enqueued");
            }
            done(Vec::new()).await;
        }
        "drain" => {
            ready(None).await;
            work(&pool, &started);
            let left = "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)";
            let is_left =
                || async { sqlx::query_scalar::<_, bool>(left).fetch_one(&pool).await.expect("answered") };
            started.drained(task.count, is_left).await;
        }
        "pickup" => {
            work(&pool, &started);
            let enqueue = move |order| {
                let utils = Arc::clone(&utils);
                async move {
                    utils.add_job(OrderTask(order), JobSpec::default()).await.expect("enqueued");
                }
            };
            task.pickup(enqueue, starts).await;
        }
        part => panic!("unknown part {part}"),
    }
}

/// Starts a worker that runs until the process ends.
fn work(pool: &PgPool, started: &Started) {
    let options = WorkerOptions::default()
        .database(pool.clone())
        .schema(SCHEMA)
        .add_extension(started.clone())
        .define_job::<OrderTask>()
        .concurrency(CONCURRENCY)
        .poll_interval(POLL)
        .local_queue(LocalQueueConfig::default().with_size(LOCAL_QUEUE).with_queue_count(LOCAL_QUEUES))
        .complete_job_batch_delay(COMPLETE_DELAY);
    tokio::spawn(async move {
        let worker = options.init().await.expect("a worker");
        worker.run().await.expect("no error");
    });
}
