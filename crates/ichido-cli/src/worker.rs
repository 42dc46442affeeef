//! `ichido worker`: delivers what the outbox holds, by the queues and destinations of a configuration (SPEC D, E1, E2).
//!
//! Guarantee: it starts only with a configuration that makes sense, says what it serves, and stops without losing anything: after
//! the first signal nothing more is claimed and what is under way may end, after the second it ends at once. What it logs has
//! hashes of keys, and no payload.
//!
//! Start at [`run`]; the work itself is `ichido::worker`'s.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ichido::worker::Running;
use ichido_core::settings::{Faults, duration};
use ichido_server::config::{self, Config, FILE_NAME};
use ichido_server::serve::metrics::{Health, Metrics};
use ichido_server::serve::{self, Access};
use ichido_server::traces;
use ichido_server::worker::{check_keys, connect, cut, lease_max, lives, on_store, start};
use ichido_store::Store;

use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use crate::store::open_with;

/// What `ichido worker` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its queues and destinations; `ichido config init` writes one
    #[arg(long, value_name = "FILE", default_value = FILE_NAME, env = "ICHIDO_CONFIG")]
    config: PathBuf,

    /// Where messages are kept: sqlite:FILE or postgres://… [default: as the configuration says]
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,

    /// Serve metrics for Prometheus there, and /livez and /readyz, such as 127.0.0.1:9464; port 0 takes a free one, an address beyond loopback needs tokens [default: nowhere]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = ichido_http::server::bounds::address)]
    metrics: Option<SocketAddr>,
}

/// Works until it is told to stop.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let misconfigured = |faults| Exit::Misconfigured { command: "worker", faults };
    let failed = Exit::of_server("worker");
    let config = config::load(&args.config).map_err(misconfigured)?;
    let url = url(&args, &config).map_err(misconfigured)?;
    // Before anything is claimed, so that a signal never finds us without a way to give it back.
    let mut signals =
        Signals::listen().map_err(|error| Exit::Failed(format!("signals cannot be caught: {error}")))?;
    let metrics = match args.metrics {
        Some(address) => Some(Metrics::listen(address).await.map_err(&failed)?),
        None => None,
    };
    let exporting = traces::start(&config.traces).map_err(misconfigured)?;
    let targets = tokio::select! {
        targets = connect(&config) => targets.map_err(&failed)?,
        // Nothing was begun.
        () = signals.next() => return Ok(()),
    };
    let store = open_with(&url, config.store.connections_max).await?;
    let access = access(metrics.as_ref(), &store).await?;
    let targets = on_store(&config, &store, targets);
    check_keys(&store, &config, &args.config).await.map_err(&failed)?;
    let worker = Arc::new(start(&store, &config, targets).map_err(misconfigured)?);
    announce(&config, &store, &worker, metrics.as_ref())?;
    let health = Health { store: store.clone(), worker_lives: lives(&worker) };
    let serving = metrics.zip(access).map(|(metrics, access)| tokio::spawn(metrics.serve(health, access)));
    let ended = tokio::select! {
        () = signals.next() => stop(&config, &worker, &mut signals).await,
        lost = store.files_lost() => {
            // At once: nothing that it does could be written down.
            worker.stop();
            worker.stop();
            worker.ended().await;
            Err(Exit::StoreLost(lost.to_string()))
        }
    };
    if let Some(serving) = serving {
        serving.abort();
    }
    exporting.end().await;
    ended
}

/// Who is let in to the metrics. Beyond this machine there must be a token, as for a server.
async fn access(metrics: Option<&Metrics>, store: &Store) -> Result<Option<Access>, Exit> {
    let Some(metrics) = metrics else { return Ok(None) };
    let access = Access::new(store.clone(), metrics.address());
    serve::is_open(&access, metrics.address(), "--metrics").await.map_err(Exit::of_server("worker"))?;
    Ok(Some(access))
}

/// Stops in good order, unless a second signal comes.
async fn stop(config: &Config, worker: &Running, signals: &mut Signals) -> Result<(), Exit> {
    let told = stopping(config, worker);
    worker.stop();
    // Whoever cannot be told does not keep it from stopping.
    _ = out::line(told);
    tokio::select! {
        () = worker.ended() => {
            _ = out::line(format_args!("ichido: {} {} has stopped", config.worker.name, worker.id()));
            Ok(())
        }
        () = signals.next() => {
            worker.stop();
            worker.ended().await;
            Err(Exit::Cut(cut(lease_max(config))))
        }
    }
}

/// That it stops, and how long that may take.
fn stopping(config: &Config, worker: &Running) -> String {
    let (name, id) = (&config.worker.name, worker.id());
    let within = duration::shown(config.worker.stop_within);
    let under_way = match worker.under_way() {
        0 => "no call is under way".to_owned(),
        1 => format!("1 call under way may end within {within}"),
        many => format!("{many} calls under way may end within {within}"),
    };
    format!("ichido: {name} {id} stops and takes nothing more; {under_way}; a second signal ends it at once")
}

/// The flag or the environment, then the configuration.
fn url(args: &Args, config: &Config) -> Result<String, Faults> {
    let mut faults = Faults::default();
    if config.queues.is_empty() {
        let file = args.config.display().to_string();
        faults.add(file, "has no queue, so that there is nothing to do; add one, such as [queues.orders]");
    }
    let url = args.store.clone().or_else(|| config.store.url.clone());
    if url.is_none() {
        faults.add("--store", "no store is given; say it here, by ICHIDO_STORE, or as url under [store]");
    }
    faults.or(url)
}

/// What it serves, in a few lines; the last one says that it works.
fn announce(config: &Config, store: &Store, worker: &Running, metrics: Option<&Metrics>) -> Result<(), Exit> {
    let database = if store.is_sqlite() { "SQLite" } else { "PostgreSQL" };
    let mut lines: Vec<String> = Vec::new();
    if let Some(metrics) = metrics {
        lines.push(format!("ichido: metrics at http://{}/metrics", metrics.address()));
    }
    for queue in &config.queues {
        let to = config.destinations.iter().find(|described| described.name == queue.destination);
        let whereto = to.map(|described| described.whereto.as_str()).unwrap_or_default();
        let (name, destination, at_once) = (&queue.name, &queue.destination, queue.parallelism);
        lines.push(format!("ichido: queue {name} goes to {destination} at {whereto}, {at_once} at once"));
    }
    let (name, id) = (&config.worker.name, worker.id());
    lines.push(format!("ichido: {name} {id} works on {database}"));
    out::line(lines.join("\n"))
}
