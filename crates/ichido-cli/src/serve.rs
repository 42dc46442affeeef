//! `ichido serve`: the whole engine as one program, which needs no set-up (SPEC D1, D3, D11, D18, E6, F6).
//!
//! Guarantee: what is answered 201 is durable, and stands under its key once however often it is sent. Beyond loopback nobody is
//! let in without a token. After the first signal nothing new is accepted, what is in flight is answered, and then the worker stops
//! without losing anything; after the second it ends at once.
//!
//! Start at [`run`]. A connection comes in by [`ichido_http::server`], a request by `server`; `access` says who asks, and `api` which path
//! leads where.

mod access;
mod admission;
mod alerts;
mod answer;
mod api;
mod arrivals;
mod batch;
mod bulks;
mod caller;
mod cursor;
mod destinations;
mod events;
mod feed;
mod field;
pub(crate) mod health;
mod hops;
mod inside;
mod letters;
pub(crate) mod limits;
mod listings;
mod messages;
mod openapi;
mod operations;
mod parsing;
mod problem;
mod queues;
mod records;
mod replace;
mod request;
mod running;
mod search;
mod server;
mod serving;
mod setup;
mod show;
mod steps;
mod told;
mod waiting;

use std::net::SocketAddr;
use std::path::PathBuf;

use ichido_store::Store;
use tokio::net::TcpListener;

use crate::config::ServeConfig;
use crate::exit::Exit;
use crate::faults::Faults;
use crate::listen::Bounds;
use crate::out;
use crate::signals::Signals;
use crate::store::{open_with, sqlite_file};
use crate::traces;
use crate::worker;
pub(crate) use access::Access;
use access::Tokens;
pub(crate) use inside::Inside;
pub(crate) use problem::Problem;
pub(crate) use serving::{Serving, stop_or_loss};
use setup::{DEMO, Setup};

/// What `ichido serve` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one, an address beyond loopback needs tokens [default: as the configuration says; else 127.0.0.1:4180]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::listen::address)]
    listen: Option<SocketAddr>,

    /// Its queues and destinations [default: ichido.toml, if it is there; else one queue, demo, on a broker of paper]
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    /// Where messages are kept: sqlite:FILE or postgres://… [default: as the configuration says; without one, sqlite:ichido.db]
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,

    #[command(flatten)]
    bounds: Bounds,
}

/// Serves until it is told to stop.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    // Before anything is claimed, so that a signal never finds us without a way to give it back.
    let mut signals =
        Signals::listen().map_err(|error| Exit::Failed(format!("signals cannot be caught: {error}")))?;
    let setup = Setup::find(&args).await?;
    let ServeConfig { listen, limits, .. } = setup.config.serve;
    let mut faults = Faults::default();
    let limits = args.bounds.resolve(limits, &mut faults);
    let limits = faults.or(limits).map_err(|faults| Exit::Misconfigured { command: "serve", faults })?;
    let exporting = traces::start(&setup.config.traces)
        .map_err(|faults| Exit::Misconfigured { command: "serve", faults })?;
    let (listener, address) = bind(args.listen.unwrap_or(listen)).await?;
    let targets = tokio::select! {
        targets = worker::connect(&setup.config) => targets?,
        // Nothing was begun.
        () = signals.next() => return Ok(()),
    };
    let store = open_with(&setup.url, setup.config.store.connections_max).await?;
    let access = Access::new(store.clone(), address);
    let is_open = is_open(&access, address, "serve", "--listen").await?;
    worker::check_keys("serve", &store, &setup.config, &setup.place).await?;
    let serving = Serving::start("serve", &setup.config, &store, targets, access, limits).await?;
    announce(&setup, &store, address, is_open)?;
    let ended = serving.until(listener, async || signals.next().await).await;
    exporting.end().await;
    ended
}

/// Takes an address; port 0 is a free one.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Exit> {
    let taken = TcpListener::bind(address).await;
    let taken = taken.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = taken.map_err(|error| {
        Exit::Failed(format!(
            "cannot listen on {address}: {error}; another address or port is chosen by --listen"
        ))
    })?;
    Ok((listener, address))
}

/// Whether everybody on this machine is let in. Beyond it, somebody must have made a token.
pub(crate) async fn is_open(
    access: &Access,
    address: SocketAddr,
    command: &'static str,
    flag: &str,
) -> Result<bool, Exit> {
    let tokens = access.tokens().await;
    let tokens =
        tokens.map_err(|error| Exit::Failed(format!("the store cannot be asked for its tokens: {error}")))?;
    let why = match (tokens, address.ip().is_loopback()) {
        (Tokens::NeverMade, true) => return Ok(true),
        (Tokens::AllOver, true) | (Tokens::Live, _) => return Ok(false),
        (Tokens::NeverMade, false) => "there is no token, so that anybody could come in",
        (Tokens::AllOver, false) => "every token was revoked or has expired, so that nobody could come in",
    };
    let mut faults = Faults::default();
    faults.add(
        flag,
        format!(
            "{address} can be reached from other machines, and {why}; make one by `ichido token create NAME --role admin` on the same \
             store, or listen on 127.0.0.1"
        ),
    );
    Err(Exit::Misconfigured { command, faults })
}

/// Where it is, what it serves, and what to try next; the last line says that it works.
fn announce(setup: &Setup, store: &Store, address: SocketAddr, is_open: bool) -> Result<(), Exit> {
    let mut lines = Vec::new();
    let kept = match sqlite_file(&setup.url) {
        Some(file) => {
            let whole = std::path::absolute(file);
            format!("SQLite, {}", whole.as_deref().unwrap_or(file).display())
        }
        // The address may hold a password.
        None => "PostgreSQL".to_owned(),
    };
    lines.push(format!("ichido: messages are kept in {kept}"));
    for queue in &setup.config.queues {
        let to = setup.config.destinations.iter().find(|known| known.name == queue.destination);
        let whereto = to.map(|known| known.whereto.as_str()).unwrap_or_default();
        lines.push(format!("ichido: queue {} goes to {} at {whereto}", queue.name, queue.destination));
    }
    if is_open {
        lines.push("ichido: there are no tokens, so that everybody on this machine may do everything; `ichido token create` ends that".to_owned());
    }
    if setup.paper.is_some() {
        lines.push(format!(
            "ichido: try it:\n  curl -i 'http://{address}/v1/queues/{DEMO}/messages?wait=5s' -H 'Idempotency-Key: order-1' -H 'Content-Type: \
             application/json' -d '{{\"symbol\":\"ACME\",\"intent\":\"buy\",\"qty\":\"10\"}}'"
        ));
    }
    let database = if store.is_sqlite() { "SQLite" } else { "PostgreSQL" };
    lines.push(format!("ichido: serving on http://{address}, works on {database}"));
    out::line(lines.join("\n"))
}
