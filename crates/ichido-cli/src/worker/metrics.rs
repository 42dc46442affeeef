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
use ichido::prometheus::page;
use ichido_store::Store;
use metrics_exporter_prometheus::PrometheusHandle;
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

/// Begins to measure, once in a program.
pub(crate) fn measure() -> Result<PrometheusHandle, Exit> {
    let handle = ichido::prometheus::begin()
        .map_err(|error| Exit::Failed(format!("metrics cannot be measured: {error}")))?;
    ichido::judge::describe_metrics();
    Ok(handle)
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
