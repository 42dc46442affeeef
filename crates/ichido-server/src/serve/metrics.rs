//! The pages of a worker: its metrics in Prometheus' text form, and whether it lives and is ready (SPEC E6).
//!
//! Guarantee: beyond this machine metrics are for bearers of a token that may look at everything, and on it for requests that
//! name it as their host; health is for everybody. Each page is answered however many connections others hold.

use std::future::{pending, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido::prometheus::page;
use ichido_http::server::body::AnswerBody;
use ichido_http::server::limits::Limits;
use ichido_http::server::{Answers, Stops, serve};
use ichido_store::Store;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::access::Access;
use super::health;
use super::problem::Problem;
use super::response::with_type;
use crate::Error;

/// A few kilobytes for those who come every few seconds need little. A body is never read.
const LIMITS: Limits = Limits {
    connections_max: 64,
    peer_connections_max: None,
    head: Duration::from_secs(5),
    body_idle: Duration::from_secs(30),
    body: Duration::from_secs(30),
    drain: Duration::ZERO,
};
/// How often what was measured is folded, so that it takes no room while nobody asks.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Begins to measure, once in a program.
pub fn install_recorder() -> Result<PrometheusHandle, Error> {
    let handle = ichido::prometheus::begin()
        .map_err(|error| Error::Failed(format!("metrics cannot be measured: {error}")))?;
    ichido_llm::judge::describe_metrics();
    Ok(handle)
}

/// Folds what was measured now and then, so that it takes no room while nobody asks.
pub async fn run_upkeep(recorder: PrometheusHandle) {
    let mut tick = interval(UPKEEP_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        recorder.run_upkeep();
    }
}

/// What is asked for the health of a worker.
pub struct Health {
    /// Whether it can be reached is asked.
    pub store: Store,
    /// Whether the worker works.
    pub worker_lives: watch::Receiver<bool>,
}

/// What is measured from now on, and where it is asked for.
pub struct Metrics {
    listener: TcpListener,
    address: SocketAddr,
    handle: PrometheusHandle,
}

impl Metrics {
    /// Begins to measure, and takes the address.
    pub async fn listen(address: SocketAddr) -> Result<Self, Error> {
        let taken = TcpListener::bind(address).await;
        let taken = taken.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = taken
            .map_err(|error| Error::Failed(format!("cannot listen on {address} for metrics: {error}")))?;
        Ok(Self { listener, address, handle: install_recorder()? })
    }

    /// The address that was really taken.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is aborted.
    pub async fn serve(self, health: Health, access: Access) {
        let Self { listener, handle, .. } = self;
        let pages = Arc::new(Pages { handle: handle.clone(), health, access });
        let never = Stops::default();
        tokio::select! {
            _ = serve(listener, pages, LIMITS, &never, pending(), ready(())) => (),
            () = run_upkeep(handle) => (),
        }
    }
}

struct Pages {
    handle: PrometheusHandle,
    health: Health,
    access: Access,
}

impl Answers for Pages {
    async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let answered = self.page(&request).await.unwrap_or_else(IntoResponse::into_response);
        answered.map(|body| body.map_err(Into::into).boxed_unsync())
    }

    /// There is nothing else here.
    fn is_health(&self, _: &Request<Incoming>) -> bool {
        true
    }

    fn overloaded(&self, _: &Request<Incoming>) -> Response<AnswerBody> {
        Problem::overloaded().into_response().map(|body| body.map_err(Into::into).boxed_unsync())
    }
}

impl Pages {
    async fn page(&self, request: &Request<Incoming>) -> Result<Response<Body>, Problem> {
        let (method, uri) = (request.method(), request.uri());
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        match uri.path() {
            "/livez" if is_read => Ok(health::livez().await),
            "/readyz" if is_read => {
                let works = *self.health.worker_lives.borrow();
                health::ready(&self.health.store, works, uri).await
            }
            "/metrics" if is_read => {
                self.access.admit_to_metrics(method, uri, request.headers()).await?;
                Ok(with_type(StatusCode::OK, health::METRICS_TYPE, page(&self.handle)))
            }
            _ => {
                let text = "there is nothing but GET /metrics, /livez and /readyz here\n";
                Ok(with_type(StatusCode::NOT_FOUND, health::METRICS_TYPE, text))
            }
        }
    }
}
