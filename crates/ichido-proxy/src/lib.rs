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

use std::sync::Arc;

use ichido::once::Keeper;
use ichido_core::settings::Faults;
use ichido_http::server::limits::{BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX, Limits};
use ichido_http::server::permits::Permits;
use ichido_http::server::{Ended, serve, stop_or_loss};
use ichido_store::Store;
use tokio::net::TcpListener;

use adapter::AdapterRole;
pub use args::Args;
use forward::Forward;
use hop::HopRole;
pub use settings::{Settings, resolve};
use upstream::Upstream;

/// A proxy that is ready to answer.
pub struct Proxy {
    limits: Limits,
    role: Ready,
}

enum Ready {
    Hop(Arc<HopRole>),
    Adapter {
        role: Arc<AdapterRole>,
        keeper: Keeper,
        store: Store,
        /// Those whose lapsed claims are looked after here.
        operations: Vec<String>,
    },
}

impl Proxy {
    /// Passes requests on, and keeps nothing.
    pub fn hop(settings: Settings) -> Result<Self, Faults> {
        let forward = forward(&settings)?;
        let Settings { rules, patience, limits, .. } = settings;
        let bodies = Permits::new(BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX);
        let role = HopRole { rules, limits, forward, patience, bodies };
        Ok(Self { limits, role: Ready::Hop(Arc::new(role)) })
    }

    /// Completes idempotency by a ledger in this store.
    pub fn adapter(settings: Settings, store: Store) -> Result<Self, Faults> {
        let forward = forward(&settings)?;
        let Settings { rules, patience, limits, adapter, .. } = settings;
        let Some(adapter) = adapter else {
            let mut faults = Faults::default();
            faults.add("--role", "only the adapter has a ledger");
            return Err(faults);
        };
        let keeper = Keeper::of(store.clone());
        let operations = adapter.guarded();
        let role = adapter::build(adapter, &keeper, rules, limits, forward, patience.try_max)?;
        Ok(Self { limits, role: Ready::Adapter { role: Arc::new(role), keeper, store, operations } })
    }

    /// Answers until it is told to stop, and then ends in good order unless it is told so once more. A database file that is lost is a
    /// stop too.
    pub async fn until(self, listener: TcpListener, mut stop: impl AsyncFnMut()) -> Ended {
        match self.role {
            Ready::Hop(role) => serve(listener, role, self.limits, &mut stop, std::future::ready(())).await,
            Ready::Adapter { role, keeper, store, operations } => {
                let caretaker = tokio::spawn(caretaker::run(store.clone(), operations));
                let mut stop = stop_or_loss(&mut stop, async || _ = store.files_lost().await);
                let ended = serve(listener, role, self.limits, &mut stop, keeper.drained()).await;
                caretaker.abort();
                ended
            }
        }
    }
}

fn forward(settings: &Settings) -> Result<Forward, Faults> {
    let upstream =
        Upstream::new(&settings.upstream, &settings.limits, settings.connect).map_err(|error| {
            let mut faults = Faults::default();
            faults.add("--upstream", error.to_string());
            faults
        })?;
    Ok(Forward { upstream, body_idle: settings.limits.body_idle })
}
