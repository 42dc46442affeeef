//! `ichido proxy`: the roles that stand between a caller and a service (SPEC C1 to C7, F1, F2).
//!
//! Guarantee: of all that passes, nothing is kept but what the adapter's ledger needs; a state-changing request is
//! sent again only where its key, or proof that nothing was sent, makes that harmless; and every answer the proxy
//! makes up itself says so as a problem.
//!
//! Start at [`run`]. A connection comes in by [`ichido_http::server`]; a request passes `passage`, and then its
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

use std::net::SocketAddr;
use std::sync::Arc;

use ichido::once::Keeper;
use tokio::net::TcpListener;

pub(crate) use args::Args;

use crate::exit::Exit;
use crate::out;
use crate::serve::stop_or_loss;
use crate::signals::Signals;
use crate::store::open;
use forward::Forward;
use hop::HopRole;
use ichido_http::server::limits::{BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX};
use ichido_http::server::permits::Permits;
use ichido_http::server::{Ended, serve};
use settings::{Settings, resolve};
use upstream::Upstream;

/// Runs a proxy until it is told to stop.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let settings = resolve(&args).map_err(|faults| Exit::Misconfigured { command: "proxy", faults })?;
    let Settings { listen: address, upstream, rules, patience, limits, connect, adapter } = settings;
    let upstream = Upstream::new(&upstream, &limits, connect)
        .map_err(|error| Exit::Failed(format!("--upstream {error}")))?;
    let forward = Forward { upstream, body_idle: limits.body_idle };
    // Before the first connection, so that a signal never finds us without a way to drain.
    let mut signals =
        Signals::listen().map_err(|error| Exit::Failed(format!("signals cannot be caught: {error}")))?;
    let mut stop = async || signals.next().await;
    let ended = match adapter {
        None => {
            let listener = listen(address).await?;
            announce(&listener, &args)?;
            let bodies = Permits::new(BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX);
            let role = HopRole { rules, limits, forward, patience, bodies };
            serve(listener, Arc::new(role), limits, &mut stop, std::future::ready(())).await
        }
        Some(adapter) => {
            let store = open(&adapter.store).await?;
            let keeper = Keeper::of(store.clone());
            let operations = adapter.guarded();
            let role = adapter::build(adapter, &keeper, rules, limits, forward, patience.try_max)?;
            let listener = listen(address).await?;
            announce(&listener, &args)?;
            let caretaker = tokio::spawn(caretaker::run(store.clone(), operations));
            let mut stop = stop_or_loss(&store, &mut stop);
            let ended = serve(listener, Arc::new(role), limits, &mut stop, keeper.drained()).await;
            caretaker.abort();
            store.check_files().map_err(|lost| Exit::StoreLost(lost.to_string()))?;
            ended
        }
    };
    match ended {
        Ended::Drained => Ok(()),
        Ended::Cut { connections, .. } => Err(Exit::Cut(format!(
            "stopped before everything in flight had ended; connections cut: {connections}"
        ))),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Exit> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Exit::Failed(format!("cannot listen on {address}: {error}")))
}

/// One line, with the address that was really taken: whoever started us may have asked for any port.
fn announce(listener: &TcpListener, args: &Args) -> Result<(), Exit> {
    let address = listener.local_addr();
    let address = address.map_err(|error| Exit::Failed(format!("cannot say where it listens: {error}")))?;
    let role = args.role.party().as_str();
    out::line(format_args!("ichido: {role} listening on http://{address} for {}", args.upstream))
}
