//! The admin endpoint of a worker or proxy: Prometheus metrics, liveness, readiness and error pages.
//!
//! Guarantee: beyond loopback, metrics need a token that may see everything; on loopback, a request must name this machine as its
//! host. Health and error pages are public. Every page is served however many connections others hold.

// Spec: E6.

use std::future::{pending, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido::prometheus::render;
use ichido_http::problem::NOSNIFF;
use ichido_http::server::body::ResponseBody;
use ichido_http::server::limits::Limits;
use ichido_http::server::{RequestHandler, Stops, serve};
use ichido_store::Store;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::access::{Access, check_host};
use super::error_pages;
use super::health;
use super::problem::Problem;
use super::response::with_type;
use crate::Error;

/// Scrapes are small and infrequent. Bodies are never read.
const LIMITS: Limits = Limits {
    max_connections: 64,
    max_peer_connections: None,
    head: Duration::from_secs(5),
    body_idle: Duration::from_secs(30),
    body: Duration::from_secs(30),
    drain: Duration::ZERO,
};
/// How often the recorder is drained, so it does not grow while nobody scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Installs the metrics recorder, once per process.
pub fn install_recorder() -> Result<PrometheusHandle, Error> {
    let handle = ichido::prometheus::install()
        .map_err(|error| Error::Failed(format!("cannot install the metrics recorder: {error}")))?;
    ichido_llm::judge::describe_metrics();
    Ok(handle)
}

/// Drains the recorder periodically, so it does not grow while nobody scrapes.
pub async fn run_upkeep(recorder: PrometheusHandle) {
    let mut tick = interval(UPKEEP_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        recorder.run_upkeep();
    }
}

/// What the health endpoints report on.
#[derive(Default)]
pub struct Health {
    /// The store whose readiness is checked, if there is one.
    pub store: Option<Store>,
    /// Whether the worker is running, if there is one.
    pub worker_lives: Option<watch::Receiver<bool>>,
}

/// The metrics endpoint.
pub struct Metrics {
    listener: TcpListener,
    address: SocketAddr,
    handle: PrometheusHandle,
}

impl Metrics {
    /// Installs the recorder, and binds the address that `flag` sets.
    pub async fn listen(address: SocketAddr, flag: &str) -> Result<Self, Error> {
        let taken = TcpListener::bind(address).await;
        let taken = taken.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = taken.map_err(|error| {
            Error::Failed(format!(
                "cannot listen on {address} for health and metrics: {error}; choose another address or port with {flag}"
            ))
        })?;
        Ok(Self { listener, address, handle: install_recorder()? })
    }

    /// Returns the address that was bound.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is aborted.
    ///
    /// Without `access` there are no tokens, and the address must be a loopback address.
    pub async fn serve(self, health: Health, access: Option<Access>) {
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
    access: Option<Access>,
}

impl RequestHandler for Pages {
    async fn handle(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let mut answered = self.page(&request).await.unwrap_or_else(IntoResponse::into_response);
        answered.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        answered.map(|body| body.map_err(Into::into).boxed_unsync())
    }

    /// Every page here is a health page.
    fn is_health(&self, _: &Request<Incoming>) -> bool {
        true
    }

    fn overloaded(&self, _: &Request<Incoming>) -> Response<ResponseBody> {
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
                let works = self.health.worker_lives.as_ref().map(|lives| *lives.borrow());
                health::ready(self.health.store.as_ref(), works, uri).await
            }
            "/metrics" if is_read => {
                match &self.access {
                    Some(access) => access.admit_to_metrics(method, uri, request.headers()).await?,
                    None => check_host(uri, request.headers())?,
                }
                Ok(with_type(StatusCode::OK, health::METRICS_TYPE, render(&self.handle)))
            }
            path => {
                let text = "not found; try GET /metrics, /livez, /readyz or /errors\n";
                let page = error_pages::at(path, request.headers()).filter(|_| is_read);
                page.unwrap_or_else(|| Ok(with_type(StatusCode::NOT_FOUND, health::METRICS_TYPE, text)))
            }
        }
    }
}

#[cfg(test)]
mod reference;
