//! The proxy: the roles between a caller and a service (SPEC C1 to C7, F1, F2).
//!
//! Guarantee: of all that passes, nothing is kept but what the adapter's ledger needs; a state-changing request is
//! sent again only where its key, or proof that nothing was sent, makes that harmless; and every answer the proxy
//! makes up itself says so as a problem.
//!
//! Start at [`Proxy`]. A connection comes in by [`ichido_http::server`]; a request passes `passage`, and then its
//! role, `hop` or `adapter`; it goes out by `upstream`.

mod adapter;
mod args;
mod body;
mod caretaker;
mod forward;
mod headers;
mod hop;
mod identity;
mod method;
mod passage;
mod problem;
mod route;
mod settings;
mod shape;
mod upstream;

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
use hop::HopRole;
use passage::Rules;
use problem::Problem;
pub use settings::{Settings, resolve};
use upstream::Upstream;

/// A proxy that is ready to answer.
pub struct Proxy {
    limits: Limits,
    role: Role,
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
        let Settings { rules, patience, limits, .. } = settings;
        let bodies = Permits::new(BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX);
        let role = Role::Hop(Box::new(HopRole { rules, limits, upstream, patience, bodies }));
        Ok(Self { limits, role, ledger: None })
    }

    /// Completes idempotency by a ledger in this store.
    pub fn adapter(settings: Settings, store: Store) -> Result<Self, Faults> {
        let upstream = upstream(&settings)?;
        let Settings { rules, patience, limits, adapter, .. } = settings;
        let adapter = adapter.ok_or_else(|| Faults::one("--role", "only the adapter has a ledger"))?;
        let keeper = Keeper::of(store.clone());
        let operations = adapter.guarded();
        let role = adapter::build(adapter, &keeper, rules, limits, upstream, patience.try_max)?;
        Ok(Self {
            limits,
            role: Role::Adapter(Box::new(role)),
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
        let caretaker = tokio::spawn(caretaker::run(store.clone(), operations));
        let loss = async { _ = store.files_lost().await };
        let ended = serve(listener, role, limits, stops, loss, keeper.drained()).await;
        caretaker.abort();
        ended
    }
}

fn upstream(settings: &Settings) -> Result<Upstream, Faults> {
    let upstream = Upstream::new(&settings.upstream, &settings.limits, settings.connect);
    upstream.map_err(|error| Faults::one("--upstream", error.to_string()))
}

enum Role {
    Hop(Box<HopRole>),
    Adapter(Box<AdapterRole>),
}

impl Role {
    fn rules(&self) -> &Rules {
        match self {
            Self::Hop(role) => &role.rules,
            Self::Adapter(role) => &role.rules,
        }
    }
}

impl Answers for Role {
    async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let slip = self.rules().slip(request.headers());
        let method = request.method().clone();
        let answered = match self {
            Self::Hop(role) => role.pass(request, &slip).await,
            Self::Adapter(role) => role.pass(request, &slip).await,
        };
        let mut response = answered.unwrap_or_else(Problem::into_response);
        self.rules().leave(&mut response, &slip);
        let (status, request_id) = (response.status().as_u16(), slip.request_id.as_str());
        tracing::info!(%method, status, request_id, key = slip.key_hash(), "answered");
        response
    }

    fn overloaded(&self, request: &Request<Incoming>) -> Response<AnswerBody> {
        let mut response = Problem::overloaded().into_response();
        self.rules().leave(&mut response, &self.rules().slip(request.headers()));
        response
    }
}
