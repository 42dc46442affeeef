//! `ichido worker`: delivers the outbox to the queues and destinations of a configuration.
//!
//! Guarantee: it starts only with a valid configuration, announces what it serves, and stops without losing anything.
//! After the first signal it claims nothing more and lets calls in flight finish; after the second it stops at once.
//! Its logs contain hashes of keys and no payloads.
//!
//! Start at [`run`]; the work itself is in `ichido::worker`.
// Spec: D, E1, E2.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ichido::worker::WorkerHandle;
use ichido_core::settings::duration;
use ichido_server::config::{self, Config, FILE_NAME};
use ichido_server::serve::metrics::{Health, Metrics};
use ichido_server::serve::{self, Access};
use ichido_server::target::StoreTarget;
use ichido_server::traces;
use ichido_server::worker::{check_keys, connect, cut, lives, max_lease, on_store, start};

use crate::exit::Exit;
use crate::out;
use crate::serve::{routes, store_url};
use crate::signals::Signals;
use crate::store::open_with;

/// Arguments of `ichido worker`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Configuration file; `ichido config init` creates one
    #[arg(long, value_name = "FILE", default_value = FILE_NAME, env = "ICHIDO_CONFIG")]
    config: PathBuf,

    /// Store URL: sqlite:FILE or postgres://… [default: from the configuration, else sqlite:ichido.db]
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,

    /// Address for /metrics, /livez and /readyz, such as 127.0.0.1:9464; beyond loopback requires tokens [default: none]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = ichido_http::server::bounds::address)]
    metrics: Option<SocketAddr>,
}

/// Works until it is stopped.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let config = config::load(&args.config)?;
    let is_default = args.store.is_none() && config.store.url.is_none();
    let url = store_url(args.store, &config, &args.config)?;
    // A new, empty store would have nothing to deliver.
    if is_default {
        StoreTarget::find(None, Some(&args.config))?.check_exists().map_err(Exit::Unreachable)?;
    }
    // Before anything is claimed, so a signal never arrives when claims could not be returned.
    let mut signals = Signals::listen()?;
    let metrics = match args.metrics {
        Some(address) => Some(Metrics::listen(address, "--metrics").await?),
        None => None,
    };
    let exporting = traces::start(config.traces_endpoint.as_deref(), config.traces_hash_keys)?;
    let targets = tokio::select! {
        targets = connect(&config) => targets?,
        // Nothing was started.
        () = signals.next() => return Ok(()),
    };
    let store = open_with(&url, config.store.max_connections).await?;
    let access = metrics.as_ref().map(|metrics| Access::new(store.clone(), metrics.address()));
    // Beyond this machine a token is required, as for a server.
    if let (Some(metrics), Some(access)) = (&metrics, &access) {
        serve::is_open(access, metrics.address(), "--metrics").await?;
    }
    let targets = on_store(&config, &store, targets);
    check_keys(&store, &config, &args.config).await?;
    let worker = Arc::new(start(&store, &config, targets)?);
    announce(&config, store.is_sqlite(), &worker, metrics.as_ref())?;
    let health = Health { store: Some(store.clone()), worker_lives: Some(lives(&worker)) };
    let serving =
        metrics.zip(access).map(|(metrics, access)| tokio::spawn(metrics.serve(health, Some(access))));
    let ended = tokio::select! {
        () = signals.next() => stop(&config, &worker, &mut signals).await,
        lost = store.files_lost() => {
            // Stop at once: no result could be stored.
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

/// Stops gracefully, unless a second signal arrives.
async fn stop(config: &Config, worker: &WorkerHandle, signals: &mut Signals) -> Result<(), Exit> {
    let text = stopping(config, worker);
    worker.stop();
    // Failing to print this must not prevent the stop.
    _ = out::print_line(text);
    tokio::select! {
        () = worker.ended() => {
            _ = out::print_line(format_args!("ichido: {} {} has stopped", config.worker.name, worker.id()));
            Ok(())
        }
        () = signals.next() => {
            worker.stop();
            worker.ended().await;
            Err(Exit::Interrupted(cut(max_lease(config))))
        }
    }
}

/// Describes the stop and how long it may take.
fn stopping(config: &Config, worker: &WorkerHandle) -> String {
    let (name, id) = (&config.worker.name, worker.id());
    let within = duration::format(config.worker.stop_timeout);
    let in_flight = match worker.in_flight() {
        0 => "no calls in flight".to_owned(),
        1 => format!("1 call in flight may end within {within}"),
        many => format!("{many} calls in flight may end within {within}"),
    };
    format!("ichido: {name} {id} is stopping; {in_flight}; a second signal stops it immediately")
}

/// Prints what the worker serves. The last line says that it is running.
fn announce(
    config: &Config,
    is_sqlite: bool,
    worker: &WorkerHandle,
    metrics: Option<&Metrics>,
) -> Result<(), Exit> {
    let at = metrics.map(|metrics| format!("ichido: metrics at http://{}/metrics", metrics.address()));
    let queues = routes(config).zip(&config.queues);
    let queues = queues.map(|(route, queue)| format!("{route}, {} at once", queue.parallelism));
    let (name, id) = (&config.worker.name, worker.id());
    let database = if is_sqlite { "SQLite" } else { "PostgreSQL" };
    let last = format!("ichido: {name} {id} works on {database}");
    let lines: Vec<String> = at.into_iter().chain(queues).chain([last]).collect();
    out::print_line(lines.join("\n"))
}
