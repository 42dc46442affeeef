//! The proxy: the roles between a caller and a service (SPEC C1 to C7, F1, F2).
//!
//! Guarantee: of all that passes, nothing is kept but what the adapter's ledger needs; a state-changing request is
//! sent again only where its key, or proof that nothing was sent, makes that harmless; and every answer the proxy
//! makes up itself says so as a problem.
//!
//! Start at [`Proxy`]. A connection comes in by [`ichido_http::server`]; a request passes `filters`, and then its
//! role, `hop` or `adapter`; it goes out by `upstream`.

mod adapter;
mod args;
mod body;
mod filters;
mod forward;
mod headers;
mod hop;
mod identity;
mod maintenance;
mod method;
mod problem;
mod route;
mod settings;
mod upstream;
mod validate;

use std::future::{pending, ready};
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use ichido::once::Keeper;
use ichido_core::settings::Faults;
use ichido_http::server::body::AnswerBody;
use ichido_http::server::limits::{BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX, Limits};
use ichido_http::server::permits::Permits;
use ichido_http::server::{Answers, Ended, Stops, serve};
use ichido_store::Store;
use tokio::net::TcpListener;

use adapter::AdapterRole;
pub use args::Args;
use filters::FilterRules;
use hop::HopRole;
use problem::Problem;
pub use settings::{Settings, resolve};
use upstream::Upstream;

/// A proxy that is ready to answer.
pub struct Proxy {
    limits: Limits,
    role: ProxyRole,
    ledger: Option<Ledger>,
}

/// What an adapter looks after.
struct Ledger {
    keeper: Keeper,
    store: Store,
    /// Those whose lapsed claims are looked after here.
    operations: Vec<String>,
}

impl Proxy {
    /// Passes requests on, and keeps nothing.
    pub fn hop(settings: Settings) -> Result<Self, Faults> {
        let upstream = upstream(&settings)?;
        let Settings { rules, timeouts, limits, .. } = settings;
        let bodies = Permits::new(BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX);
        let role = ProxyRole::Hop(Box::new(HopRole { rules, limits, upstream, timeouts, bodies }));
        Ok(Self { limits, role, ledger: None })
    }

    /// Completes idempotency by a ledger in this store.
    pub fn adapter(settings: Settings, store: Store) -> Result<Self, Faults> {
        let upstream = upstream(&settings)?;
        let Settings { rules, timeouts, limits, adapter, .. } = settings;
        let adapter = adapter.ok_or_else(|| Faults::one("--role", "only the adapter has a ledger"))?;
        let keeper = Keeper::of(store.clone());
        let operations = adapter.guarded();
        let role = adapter::build(adapter, &keeper, rules, limits, upstream, timeouts.try_max)?;
        Ok(Self {
            limits,
            role: ProxyRole::Adapter(Box::new(role)),
            ledger: Some(Ledger { keeper, store, operations }),
        })
    }

    /// Answers until it is asked to stop, and then ends in good order unless it is asked again. The loss of the database file is a
    /// request to stop, too.
    pub async fn until(self, listener: TcpListener, stops: &Stops) -> Ended {
        let Self { limits, role, ledger } = self;
        let role = Arc::new(role);
        let Some(Ledger { keeper, store, operations }) = ledger else {
            return serve(listener, role, limits, stops, pending(), ready(())).await;
        };
        let maintenance = tokio::spawn(maintenance::run(store.clone(), operations));
        let loss = async { _ = store.files_lost().await };
        let ended = serve(listener, role, limits, stops, loss, keeper.drained()).await;
        maintenance.abort();
        ended
    }
}

fn upstream(settings: &Settings) -> Result<Upstream, Faults> {
    let upstream = Upstream::new(&settings.upstream, &settings.limits, settings.connect);
    upstream.map_err(|error| Faults::one("--upstream", error.to_string()))
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

impl Answers for ProxyRole {
    async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let context = self.rules().context(request.headers());
        let method = request.method().clone();
        let answered = match self {
            Self::Hop(role) => role.pass(request, &context).await,
            Self::Adapter(role) => role.pass(request, &context).await,
        };
        let mut response = answered.unwrap_or_else(Problem::into_response);
        self.rules().finish_response(&mut response, &context);
        let (status, request_id) = (response.status().as_u16(), context.request_id.as_str());
        tracing::info!(%method, status, request_id, key = context.key_hash(), "answered");
        response
    }

    fn overloaded(&self, request: &Request<Incoming>) -> Response<AnswerBody> {
        let mut response = Problem::overloaded().into_response();
        self.rules().finish_response(&mut response, &self.rules().context(request.headers()));
        response
    }
}
