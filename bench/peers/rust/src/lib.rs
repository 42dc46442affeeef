//! The contestant's side of the protocol: see `bench/src/contest/protocol.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

/// Callers that enqueue at a rate, at most one message each at a time.
const CALLERS: usize = 64;

/// What the harness asks for.
#[derive(Clone, Deserialize)]
pub struct Task {
    pub part: String,
    pub url: String,
    pub count: usize,
    pub bytes: usize,
    pub rate: f64,
}

/// The same order as on the other sides.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Order {
    pub number: usize,
    pub text: String,
}

impl Task {
    pub fn read() -> Self {
        let argument = std::env::args().nth(1).expect("a task");
        serde_json::from_str(&argument).expect("a task")
    }

    pub fn order(&self, number: usize) -> Order {
        Order { number, text: "x".repeat(self.bytes.saturating_sub(30)) }
    }

    /// Splits the messages into calls of 1,000.
    pub fn bulks(&self) -> impl Iterator<Item = Vec<Order>> {
        (0..self.count)
            .step_by(1_000)
            .map(|first| (first..self.count.min(first + 1_000)).map(|number| self.order(number)).collect())
    }

    /// Enqueues at the rate, open loop, and reports how late each message started.
    pub async fn pickup<W>(&self, enqueue: impl Fn(Order) -> W + Clone + Send + 'static, mut starts: Starts)
    where
        W: Future<Output = ()> + Send,
    {
        ready(None).await;
        let (begin, rate, count) = (Instant::now(), self.rate, self.count);
        let due = move |number: usize| begin + Duration::from_secs_f64(number as f64 / rate);
        let next = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (task, next, enqueue) = (self.clone(), Arc::clone(&next), enqueue.clone());
                tokio::spawn(async move {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if count <= number {
                            return;
                        }
                        tokio::time::sleep_until(due(number)).await;
                        enqueue(task.order(number)).await;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.expect("enqueued");
        }
        let mut latencies = Vec::with_capacity(count);
        while latencies.len() < count {
            let (number, at) = starts.0.recv().await.expect("started");
            latencies.push(at.saturating_duration_since(due(number)).as_secs_f64() * 1e6);
        }
        done(latencies).await;
    }
}

/// Called by the handler of each message.
#[derive(Clone, Debug)]
pub struct Started {
    count: Arc<AtomicUsize>,
    times: UnboundedSender<(usize, Instant)>,
}

pub struct Starts(UnboundedReceiver<(usize, Instant)>);

impl Started {
    pub fn new() -> (Self, Starts) {
        let (times, starts) = unbounded_channel();
        (Self { count: Arc::default(), times }, Starts(starts))
    }

    pub fn record(&self, number: usize) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let _received = self.times.send((number, Instant::now()));
    }

    /// Waits until all have run, and until `is_left` says that the last completion is written.
    pub async fn drained<W: Future<Output = bool>>(&self, count: usize, is_left: impl Fn() -> W) {
        while self.count.load(Ordering::Relaxed) < count || is_left().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        done(Vec::new()).await;
    }
}

/// Says that the setup is done, and waits for the start.
pub async fn ready(port: Option<u16>) {
    println!("{}", serde_json::json!({ "ready": true, "port": port }));
    line().await;
}

/// Says that the part is done, and ends when the harness has read its counters; a graceful end is not measured.
pub async fn done(latencies_us: Vec<f64>) {
    println!("{}", serde_json::json!({ "done": true, "latencies_us": latencies_us }));
    line().await;
    std::process::exit(0);
}

async fn line() {
    let _read = BufReader::new(tokio::io::stdin()).read_line(&mut String::new()).await;
}
