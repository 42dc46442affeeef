//! Runs one part of `cargo xtask bench outbox` with `graphile_worker`. Prints the results, a name and a number per
//! line.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext, WorkerOptions,
    WorkerUtils,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The settings of its own benchmark (`benches/perf_test.rs`), except for the connections, of which it uses 100.
const CONCURRENCY: usize = 500;
const LOCAL_QUEUE: usize = 5_000;
const COMPLETE_DELAY: Duration = Duration::from_millis(5);
const POLL: Duration = Duration::from_millis(5);
const CONNECTIONS: u32 = 20;
/// Idle queue, as in its manual: woken by notifications, without a local queue, which it says costs latency.
const IDLE_CONCURRENCY: usize = 10;
/// Pause between two messages into an idle queue.
const IDLE_GAP: Duration = Duration::from_millis(20);
const SCHEMA: &str = "graphile_worker";

#[derive(Clone, Deserialize, Serialize)]
struct OrderPayload {
    number: usize,
    text: String,
}

#[derive(Clone, Debug)]
struct ProcessedCount(Arc<AtomicUsize>);

#[derive(Clone, Debug)]
struct StartTimes(mpsc::UnboundedSender<Instant>);

impl TaskHandler for OrderPayload {
    const IDENTIFIER: &'static str = "orders";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(StartTimes(started)) = context.get_ext::<StartTimes>() {
            let _sent = started.send(Instant::now());
        }
        if let Some(ProcessedCount(count)) = context.get_ext::<ProcessedCount>() {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [part, url, count] = words.as_slice() else { panic!("usage: graphile-peer PART URL COUNT") };
    let count: usize = count.parse().expect("a number");
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await.expect("connected");
    let utils = WorkerUtils::new(pool.clone(), SCHEMA);
    utils.migrate().await.expect("migrated");
    match part.as_str() {
        "singly" => singly(&utils, count).await,
        "bulk" => bulk(&utils, &pool, count).await,
        "drain" => drain(pool, count).await,
        "idle" => idle(pool, &utils, count).await,
        "settings" => println!(
            "drain: concurrency {CONCURRENCY}, local queue {LOCAL_QUEUE}, completions batched for {COMPLETE_DELAY:?}, polled every \
             {POLL:?}, {CONNECTIONS} connections; idle: concurrency {IDLE_CONCURRENCY}, no local queue, no batching, polled every second, \
             notifications on"
        ),
        _ => panic!("unknown part {part}"),
    }
}

/// The same order as on the other side: 200 bytes of JSON.
fn order(number: usize) -> OrderPayload {
    OrderPayload { number, text: "x".repeat(170) }
}

async fn singly(utils: &WorkerUtils, count: usize) {
    let began = Instant::now();
    for number in 0..count {
        utils.add_job(order(number), JobSpec::default()).await.expect("enqueued");
    }
    tell_rate(began, count);
}

async fn bulk(utils: &WorkerUtils, pool: &PgPool, count: usize) {
    let began = Instant::now();
    for part in 0..count / 1_000 {
        let job = |number| RawJobSpec {
            identifier: OrderPayload::IDENTIFIER.to_owned(),
            payload: serde_json::to_value(order(part * 1_000 + number)).expect("JSON"),
            spec: JobSpec::default(),
        };
        let jobs: Vec<RawJobSpec> = (0..1_000).map(job).collect();
        utils.add_raw_jobs(&jobs).await.expect("enqueued");
    }
    tell_rate(began, count);
    sqlx::query("VACUUM ANALYZE graphile_worker._private_jobs").execute(pool).await.expect("vacuumed");
}

async fn drain(pool: PgPool, count: usize) {
    let counted = ProcessedCount(Arc::default());
    let worker = WorkerOptions::default()
        .database(pool.clone())
        .schema(SCHEMA)
        .concurrency(CONCURRENCY)
        .poll_interval(POLL)
        .local_queue(LocalQueueConfig::default().with_size(LOCAL_QUEUE))
        .complete_job_batch_delay(COMPLETE_DELAY)
        .add_extension(counted.clone())
        .define_job::<OrderPayload>()
        .init()
        .await
        .expect("a worker");
    let worker = Arc::new(worker);
    let began = Instant::now();
    let running = tokio::spawn({
        let worker = Arc::clone(&worker);
        async move { worker.run().await }
    });
    while counted.0.load(Ordering::Relaxed) < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // All have run; done when the last completion is written.
    let left = "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)";
    while sqlx::query_scalar::<_, bool>(left).fetch_one(&pool).await.expect("answered") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tell_rate(began, count);
    tell_memory();
    worker.request_shutdown();
    running.await.expect("no panic").expect("no error");
}

async fn idle(pool: PgPool, utils: &WorkerUtils, count: usize) {
    let (started, mut starts) = mpsc::unbounded_channel();
    let worker = WorkerOptions::default()
        .database(pool)
        .schema(SCHEMA)
        .concurrency(IDLE_CONCURRENCY)
        .add_extension(StartTimes(started))
        .define_job::<OrderPayload>()
        .init()
        .await
        .expect("a worker");
    let worker = Arc::new(worker);
    let running = tokio::spawn({
        let worker = Arc::clone(&worker);
        async move { worker.run().await }
    });
    let mut times = Vec::new();
    for number in 0..count {
        tokio::time::sleep(IDLE_GAP).await;
        let enqueued_at = Instant::now();
        utils.add_job(order(number), JobSpec::default()).await.expect("enqueued");
        times.push(starts.recv().await.expect("run").duration_since(enqueued_at));
    }
    times.sort_unstable();
    println!("p50 {}", times[count / 2].as_secs_f64());
    println!("p99 {}", times[count * 99 / 100].as_secs_f64());
    worker.request_shutdown();
    running.await.expect("no panic").expect("no error");
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn tell_rate(began: Instant, count: usize) {
    println!("rate {}", count as f64 / began.elapsed().as_secs_f64());
}

/// Returns the peak resident memory, in kilobytes.
fn tell_memory() {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    println!("resident {}", peak.trim().trim_end_matches(" kB"));
}
