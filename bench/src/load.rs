//! An HTTP load from this process: 64 keep-alive connections, each with one request at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::report::{Stopwatch, joined};

pub(crate) const CONNECTIONS: usize = 64;

/// The target of the load, and its requests.
#[derive(Clone)]
pub(crate) struct LoadTarget {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'static str,
    /// Returns the key of the request with this number.
    pub(crate) key: Arc<dyn Fn(usize) -> String + Send + Sync>,
    /// Returns its body.
    pub(crate) body: Arc<dyn Fn(usize) -> String + Send + Sync>,
    /// The number of different requests, which repeat.
    pub(crate) numbers: usize,
    /// Whether each response must be a replay.
    pub(crate) replays: bool,
}

impl LoadTarget {
    /// Returns the requests per second when every connection sends the next request as soon as it has its response.
    pub(crate) async fn saturate(&self, time: Duration) -> f64 {
        let count = Arc::new(AtomicUsize::new(0));
        let watch = Stopwatch::start();
        let end = Instant::now() + time;
        let callers = (0..CONNECTIONS).map(|_| {
            let (target, count) = (self.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let mut connection = target.connect().await;
                while Instant::now() < end {
                    target.call(&mut connection, count.fetch_add(1, Ordering::Relaxed)).await;
                }
            })
        });
        joined(callers).await;
        watch.rate(count.load(Ordering::Relaxed))
    }

    /// Returns the latencies at a steady request rate, sorted.
    ///
    /// Requests are sent whether or not earlier ones have been answered. A latency counts from when its request was
    /// due, so a stalled server is visible.
    pub(crate) async fn at_a_rate(&self, rate: f64, time: Duration) -> Vec<Duration> {
        let next = Arc::new(AtomicUsize::new(0));
        let begin = Instant::now();
        let callers = (0..CONNECTIONS).map(|_| {
            let (target, next) = (self.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                let mut connection = target.connect().await;
                let mut times = Vec::<Duration>::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
                    let due = begin + Duration::from_secs_f64(number as f64 / rate);
                    if begin + time < due {
                        return times;
                    }
                    tokio::time::sleep_until(due).await;
                    target.call(&mut connection, number).await;
                    times.push(due.elapsed());
                }
            })
        });
        let mut times = joined(callers).await.concat();
        times.sort_unstable();
        times
    }

    /// Sends each of the requests once, in sequence on each connection.
    pub(crate) async fn each_once(&self) {
        let callers = (0..CONNECTIONS).map(|first| {
            let target = self.clone();
            tokio::spawn(async move {
                let mut connection = target.connect().await;
                for number in (first..target.numbers).step_by(CONNECTIONS) {
                    target.call(&mut connection, number).await;
                }
            })
        });
        joined(callers).await;
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(self.address).await.expect("connected");
        stream.set_nodelay(true).expect("set");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
        tokio::spawn(connection);
        sender
    }

    async fn call(&self, connection: &mut SendRequest<Full<Bytes>>, number: usize) {
        let number = number % self.numbers;
        let request = Request::post(self.path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("idempotency-key", (self.key)(number))
            // A layer that stores responses in sessions needs one; the others ignore it.
            .header("cookie", "session=AAAAAAAAAAAAAAAAAAAAAA")
            .body(Full::from((self.body)(number)))
            .expect("a request");
        let response = connection.send_request(request).await.expect("a response");
        assert_eq!(response.status(), StatusCode::CREATED, "{}", self.path);
        assert_eq!(response.headers().contains_key("idempotency-replayed"), self.replays, "{}", self.path);
        response.into_body().collect().await.expect("a complete response");
    }
}

/// Returns the latency within which this share of all responses came.
pub(crate) fn quantile(times: &[Duration], share: f64) -> Duration {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts here are far below 2^52, and a share is between 0 and 1"
    )]
    let index = ((times.len() as f64 * share) as usize).min(times.len() - 1);
    times[index]
}
