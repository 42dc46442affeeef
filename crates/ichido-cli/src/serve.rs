//! `ichido serve`: the whole engine as one program, which needs no set-up (SPEC D1, D3, D11, D18, E6, F6).
//!
//! Guarantee: what is answered 201 is durable, and stands under its key once however often it is sent. Beyond loopback nobody is
//! let in without a token. After the first signal nothing new is accepted, what is in flight is answered, and then the worker stops
//! without losing anything; after the second it ends at once.
//!
//! Start at [`run`]. A connection comes in by [`crate::listen`], a request by `server`; `access` says who asks, and `api` which path
//! leads where.

mod access;
mod admission;
mod alerts;
mod answer;
mod api;
mod arrivals;
mod batch;
mod caller;
mod cursor;
mod destinations;
mod events;
mod feed;
mod field;
mod health;
mod hops;
mod inside;
mod letters;
pub(crate) mod limits;
mod messages;
mod openapi;
mod operations;
mod places;
mod problem;
mod queues;
mod records;
mod replace;
mod request;
mod running;
mod search;
mod server;
mod setup;
mod show;
mod steps;
mod told;
mod waiting;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ichido::letters::Policies;
use ichido::worker::Running;
use ichido_store::Store;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval};

use self::limits::WAITERS_SHARE;
use crate::config::ServeConfig;
use crate::exit::Exit;
use crate::faults::Faults;
use crate::listen::bounds::Bounds;
use crate::listen::{self, Ended};
use crate::out;
use crate::signals::Signals;
use crate::store::{open_with, sqlite_file};
use crate::traces;
use crate::worker::{self, metrics};
use access::{Access, Tokens};
use admission::Admission;
use api::Api;
use destinations::KnownDestination;
use feed::Feed;
pub(crate) use inside::Inside;
use places::Places;
use server::Server;
use setup::{DEMO, Setup};
use waiting::Waiting;

/// What `ichido serve` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one, an address beyond loopback needs tokens [default: as the configuration says; else 127.0.0.1:4180]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::listen::bounds::address)]
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
    let ServeConfig { listen, limits, chosen } = setup.config.serve;
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
    let is_open = is_open(&access, address).await?;
    worker::check_keys("serve", &store, &setup.config, &setup.place).await?;
    let measured = metrics::measure()?;
    server::describe_metrics();
    let folding = tokio::spawn(fold(measured.clone()));
    let policies = Policies::of(&setup.config.queues, &targets);
    let destinations = KnownDestination::all(&setup.config.destinations, &setup.config.queues, &targets);
    let worker = worker::start(&store, &setup.config, targets)
        .map_err(|faults| Exit::Misconfigured { command: "serve", faults })?;
    let worker = Arc::new(worker);
    let operations = Arc::new(running::Running::default());
    let queues = Api::known(&setup.config);
    let api = Api {
        store: store.clone(),
        chosen,
        admission: Admission::start(store.clone(), &queues).await,
        queues,
        destinations,
        policies,
        waiting: Waiting::start(
            store.clone(),
            chosen.waiters_max.min(limits.connections_max / WAITERS_SHARE),
        ),
        operations: Arc::clone(&operations),
        feed: Feed::new(chosen.listeners_max),
        batches: Places::new(limits::BATCHES_MAX, limits::BATCHES_OF_ONE_MAX),
        listings: Semaphore::new(limits::LISTINGS_MAX),
        metrics: measured,
        worker_lives: lives(&worker),
    };
    announce(&setup, &store, address, is_open)?;
    let server = Arc::new(Server::new(api, access, limits));
    let ended = listen::serve(listener, server, limits, &mut signals, std::future::ready(())).await;
    if !matches!(ended, Ended::Cut { .. }) {
        operations.ended().await;
    }
    let stopped = stop(&worker, &setup, ended, &mut signals).await;
    folding.abort();
    exporting.end().await;
    stopped
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Exit> {
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
async fn is_open(access: &Access, address: SocketAddr) -> Result<bool, Exit> {
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
        "--listen",
        format!(
            "{address} can be reached from other machines, and {why}; make one by `ichido token create NAME --role admin` on the same \
             store, or listen on 127.0.0.1"
        ),
    );
    Err(Exit::Misconfigured { command: "serve", faults })
}

/// What was measured is folded now and then, so that it takes no room while nobody asks.
async fn fold(measured: PrometheusHandle) {
    let mut fold = interval(metrics::FOLD_EVERY);
    fold.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        fold.tick().await;
        measured.run_upkeep();
    }
}

/// Whether the worker works, for whoever asks.
fn lives(worker: &Arc<Running>) -> watch::Receiver<bool> {
    let (tell, lives) = watch::channel(true);
    let worker = Arc::clone(worker);
    tokio::spawn(async move {
        worker.ended().await;
        tell.send_replace(false);
    });
    lives
}

/// The server has ended; now the worker does, in good order unless a second signal came or comes.
async fn stop(worker: &Running, setup: &Setup, ended: Ended, signals: &mut Signals) -> Result<(), Exit> {
    worker.stop();
    let is_told = async {
        match ended {
            Ended::Cut { at_once: true, .. } => {}
            Ended::Cut { .. } | Ended::Drained => signals.next().await,
        }
    };
    let is_cut = tokio::select! {
        () = worker.ended() => false,
        () = is_told => {
            worker.stop();
            worker.ended().await;
            true
        }
    };
    let connections = match ended {
        Ended::Drained => String::new(),
        Ended::Cut { connections, .. } => format!("connections cut: {connections}; "),
    };
    match (is_cut, ended) {
        (true, _) => Err(Exit::Cut(format!("{connections}{}", worker::cut(&setup.config)))),
        (false, Ended::Cut { .. }) => {
            Err(Exit::Cut(format!("{connections}the worker has ended in good order")))
        }
        (false, Ended::Drained) => Ok(()),
    }
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
