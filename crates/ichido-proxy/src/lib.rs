//! The proxy, which runs between a caller and a service.
//!
//! Guarantee: the proxy stores nothing except what the adapter's ledger needs. It resends a state-changing request
//! only if the key, or proof that nothing was sent, makes that safe. Every response that the proxy creates itself is
//! a problem document.
//!
//! Start at [`Proxy`]. [`ichido_http::server`] accepts a connection. A request passes through `filters` and its role,
//! `hop` or `adapter`, and leaves through `upstream`.
// Spec: C1 to C7, F1, F2.

mod adapter;
mod args;
mod body;
mod filters;
mod forward;
mod headers;
mod hop;
mod identity;
mod method;
mod problem;
mod route;
mod settings;
mod upstream;
mod validate;

use std::future::{pending, ready};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use ichido::once::LeaseKeeper;
use ichido::prometheus::count_request;
use ichido_core::settings::ConfigErrors;
use ichido_http::server::body::ResponseBody;
use ichido_http::server::limits::{Limits, MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE};
use ichido_http::server::permits::Permits;
use ichido_http::server::{MalformedRequest, RequestHandler, ServerEnd, Stops, serve};
use ichido_http::trust;
use ichido_store::Store;
use tokio::net::TcpListener;

use adapter::AdapterRole;
pub use args::Args;
use filters::FilterRules;
use hop::HopRole;
use problem::Problem;
pub use settings::{Settings, resolve};
use upstream::Upstream;

/// A proxy that is ready to serve.
pub struct Proxy {
    limits: Limits,
    role: ProxyRole,
    /// The keeper of an adapter's ledger.
    keeper: Option<LeaseKeeper>,
}

impl Proxy {
    /// Creates a hop, which forwards requests and stores nothing.
    pub fn hop(settings: Settings) -> Result<Self, ConfigErrors> {
        let upstream = upstream(&settings)?;
        let Settings { rules, timeouts, limits, .. } = settings;
        let bodies = Permits::new(MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE);
        let role = ProxyRole::Hop(Box::new(HopRole { rules, limits, upstream, timeouts, bodies }));
        Ok(Self { limits, role, keeper: None })
    }

    /// Creates an adapter, which keeps a ledger in `store`.
    pub fn adapter(settings: Settings, store: Store) -> Result<Self, ConfigErrors> {
        let upstream = upstream(&settings)?;
        let Settings { rules, timeouts, limits, adapter, .. } = settings;
        let adapter = adapter.ok_or_else(|| ConfigErrors::one("--role", "only the adapter has a ledger"))?;
        let keeper = LeaseKeeper::new(store);
        let role = adapter::build(adapter, &keeper, rules, limits, upstream, timeouts.attempt_timeout)?;
        Ok(Self { limits, role: ProxyRole::Adapter(Box::new(role)), keeper: Some(keeper) })
    }

    /// Serves until it is asked to stop, then drains unless it is asked again.
    ///
    /// The loss of the database file counts as a request to stop.
    pub async fn until(self, listener: TcpListener, stops: &Stops) -> ServerEnd {
        let Self { limits, role, keeper } = self;
        let role = Arc::new(role);
        let Some(keeper) = keeper else {
            return serve(listener, role, limits, stops, pending(), ready(())).await;
        };
        let loss = async { _ = keeper.store().files_lost().await };
        serve(listener, role, limits, stops, loss, keeper.drained()).await
    }
}

fn upstream(settings: &Settings) -> Result<Upstream, ConfigErrors> {
    let tls = settings.upstream.is_tls.then(|| trust::https(settings.trusted_roots.as_deref()));
    let tls = tls.transpose().map_err(|error| ConfigErrors::one("--trusted-roots", error.to_string()))?;
    let upstream = Upstream::new(&settings.upstream, tls, &settings.limits, settings.connect);
    upstream.map_err(|error| ConfigErrors::one("--upstream", error.to_string()))
}

enum ProxyRole {
    Hop(Box<HopRole>),
    Adapter(Box<AdapterRole>),
}

impl ProxyRole {
    fn rules(&self) -> &FilterRules {
        match self {
            Self::Hop(role) => &role.rules,
            Self::Adapter(role) => &role.rules,
        }
    }
}

impl RequestHandler for ProxyRole {
    async fn handle(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let context = self.rules().context(request.headers());
        let method = request.method().clone();
        let answered = match self {
            Self::Hop(role) => role.handle(request, &context).await,
            Self::Adapter(role) => role.handle(request, &context).await,
        };
        let mut response = answered.unwrap_or_else(Problem::into_response);
        self.rules().finish_response(&mut response, &context);
        let (status, request_id) = (response.status().as_u16(), context.request_id.as_str());
        count_request(Some(&method), status);
        tracing::info!(%method, status, request_id, key = context.key_hash(), "answered");
        response
    }

    fn overloaded(&self, request: &Request<Incoming>) -> Response<ResponseBody> {
        let mut response = Problem::overloaded().into_response();
        self.rules().finish_response(&mut response, &self.rules().context(request.headers()));
        count_request(Some(request.method()), response.status().as_u16());
        response
    }

    /// The method is unknown, and no role saw the request.
    fn malformed(&self, fault: MalformedRequest) -> Option<Response<Bytes>> {
        let mut response = Problem::rejected(fault).response();
        self.rules().finish_response(&mut response, &self.rules().context(&HeaderMap::new()));
        count_request(None, response.status().as_u16());
        Some(response)
    }
}
