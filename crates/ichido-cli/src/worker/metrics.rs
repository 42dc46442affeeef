//! The pages of a worker: its metrics in Prometheus' text form, and whether it lives and is ready (SPEC E6).
//!
//! A few kilobytes for who comes every few seconds: connections have a count and heads a time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ichido::worker::describe_metrics;
use ichido_store::Store;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::exit::Exit;
use crate::serve::health;

/// The most connections at once; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 64;
/// How long a head may take to come, and a connection be idle.
const HEAD_WAIT: Duration = Duration::from_secs(5);
/// How long a connection may take in all: one that does not read its answers would keep its place for ever.
const CONNECTION_MAX: Duration = Duration::from_mins(1);
/// How long to wait after the system refused to give us a connection (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often what was measured is folded, so that it takes no room while nobody asks.
pub(crate) const FOLD_EVERY: Duration = Duration::from_secs(5);

/// From a pickup on an idle queue to a whole horizon of retries (SPEC D5), in seconds.
const LAG_BUCKETS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0, 3_600.0, 86_400.0];
/// From a minute's work to three months, in seconds: a person takes longer than a machine.
const RESOLVE_BUCKETS: [f64; 10] =
    [60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0, 7_776_000.0];
const RETRIES: &str = "outbox_retry_count";
/// Each of the retries of SPEC D5, and what goes beyond.
const RETRY_BUCKETS: [f64; 12] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 12.0, 20.0, 50.0];

/// Begins to measure, once in a program.
pub(crate) fn measure() -> Result<PrometheusHandle, Exit> {
    let built = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full("outbox_lag_seconds".to_owned()), &LAG_BUCKETS)
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Full(RETRIES.to_owned()), &RETRY_BUCKETS))
        .and_then(|builder| {
            let resolve = Matcher::Full("outbox_letter_resolve_seconds".to_owned());
            builder.set_buckets_for_metric(resolve, &RESOLVE_BUCKETS)
        })
        .and_then(PrometheusBuilder::install_recorder);
    let handle = built.map_err(|error| Exit::Failed(format!("metrics cannot be measured: {error}")))?;
    describe_metrics();
    ichido::judge::describe_metrics();
    Ok(handle)
}

/// The page as it stands now.
pub(crate) fn page(handle: &PrometheusHandle) -> String {
    whole(&handle.render())
}

/// What is asked for the health of a worker.
#[derive(Clone)]
pub(super) struct Health {
    pub(super) store: Store,
    pub(super) worker_lives: watch::Receiver<bool>,
}

/// What is measured from now on, and where it is asked for.
pub(super) struct Metrics {
    listener: TcpListener,
    address: SocketAddr,
    handle: PrometheusHandle,
}

impl Metrics {
    /// Begins to measure, and takes the address.
    pub(super) async fn listen(address: SocketAddr) -> Result<Self, Exit> {
        let taken = TcpListener::bind(address).await;
        let taken = taken.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = taken
            .map_err(|error| Exit::Failed(format!("cannot listen on {address} for metrics: {error}")))?;
        Ok(Self { listener, address, handle: measure()? })
    }

    /// The address that was really taken.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is aborted.
    pub(super) async fn serve(self, health: Health) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut fold = interval(FOLD_EVERY);
        fold.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                accepted = accepted => accepted,
                _ = fold.tick() => {
                    self.handle.run_upkeep();
                    continue;
                }
            };
            match accepted {
                Ok((stream, _)) => {
                    let serving = serve_connection(stream, self.handle.clone(), health.clone());
                    tokio::spawn(async move {
                        serving.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::error!(%error, "nobody can ask for metrics for the moment");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, handle: PrometheusHandle, health: Health) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (handle, health) = (handle.clone(), health.clone());
        async move { Ok::<_, Infallible>(answer(request.method(), request.uri(), &handle, &health).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT);
    match timeout(CONNECTION_MAX, builder.serve_connection(TokioIo::new(stream), service)).await {
        Ok(Ok(())) => (),
        Ok(Err(error)) => tracing::debug!(%error, "a connection for metrics ended early"),
        Err(_) => tracing::debug!("a connection for metrics took too long, and was ended"),
    }
}

/// The exporter takes a name that ends in `_count` for the count of a histogram, and leaves the suffix out that it needs.
fn whole(rendered: &str) -> String {
    let mut text = String::with_capacity(rendered.len());
    for line in rendered.split_inclusive('\n') {
        match line.strip_prefix(RETRIES) {
            Some(rest) if rest.starts_with(['{', ' ']) => {
                text.push_str(RETRIES);
                text.push_str("_count");
                text.push_str(rest);
            }
            _ => text.push_str(line),
        }
    }
    text
}

async fn answer(method: &Method, uri: &Uri, handle: &PrometheusHandle, health: &Health) -> Response<Body> {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let (status, text) = match uri.path() {
        "/livez" if is_read => return health::livez().await,
        "/readyz" if is_read => {
            let works = *health.worker_lives.borrow();
            let ready = health::ready(&health.store, works, uri).await;
            return ready.unwrap_or_else(IntoResponse::into_response);
        }
        "/metrics" if is_read => (StatusCode::OK, page(handle)),
        _ => {
            (StatusCode::NOT_FOUND, "there is nothing but GET /metrics, /livez and /readyz here\n".to_owned())
        }
    };
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    let form = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, form);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_of_retries_has_its_count_under_its_name() {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Full(RETRIES.to_owned()), &RETRY_BUCKETS)
            .unwrap()
            .build_recorder();
        metrics::with_local_recorder(&recorder, || {
            metrics::histogram!(RETRIES, "queue" => "orders").record(1.0);
        });
        let text = whole(&recorder.handle().render());
        for part in
            ["_bucket{queue=\"orders\",le=\"1\"} 1", "_sum{queue=\"orders\"} 1", "_count{queue=\"orders\"} 1"]
        {
            assert!(text.contains(&format!("{RETRIES}{part}")), "no {part} in {text}");
        }
        assert!(!text.contains(&format!("{RETRIES}{{")), "{text}");
    }
}
