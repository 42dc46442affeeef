//! `ichido serve`: the whole engine as one program that needs no setup.
//!
//! Guarantee: a message that was answered with 201 is durable and exists once under its key, however often it is
//! sent. Beyond loopback every caller needs a token. After the first signal the server accepts nothing new, answers
//! requests in flight, and then stops the worker without losing anything; after the second it stops at once.
//!
//! Start at [`run`]; the server itself is [`ichido_server::serve`].
// Spec: D1, D3, D11, D18, E6, F6.

mod setup;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ichido_core::settings::ConfigErrors;
use ichido_http::server::bounds::ConnectionLimits;
use ichido_server::config::{Config, DEFAULT_URL, ServeConfig, sqlite_file};
use ichido_server::serve::{Access, Serving, is_open, no_token};
use ichido_server::target::StoreTarget;
use ichido_server::{traces, worker};
use tokio::net::TcpListener;

use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use crate::store::open_with;
use setup::{DEMO, Setup};

/// Arguments of `ichido serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Listen address, or a port on loopback; beyond loopback requires tokens; port 0: any free [default: from the configuration, else 127.0.0.1:4180]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = ichido_http::server::bounds::address)]
    listen: Option<SocketAddr>,

    /// Configuration file [default: ichido.toml, if present, else a `demo` queue with a mock broker]
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    /// Store URL: sqlite:FILE or postgres://… [default: from the configuration, else sqlite:ichido.db]
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,

    #[command(flatten)]
    bounds: ConnectionLimits,
}

/// Serves until it is stopped.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    // Before anything is claimed, so a signal never arrives when claims could not be returned.
    let mut signals = Signals::listen()?;
    let setup = Setup::find(&args).await?;
    let ServeConfig { listen, limits, .. } = setup.config.serve;
    let mut faults = ConfigErrors::default();
    let limits = args.bounds.resolve(limits, &mut faults);
    let limits = faults.or(Some(limits))?;
    let exporting = traces::start(setup.config.traces_endpoint.as_deref(), setup.config.traces_hash_keys)?;
    let (listener, address) = bind(args.listen.unwrap_or(listen)).await?;
    let targets = tokio::select! {
        targets = worker::connect(&setup.config) => targets?,
        // Nothing was started.
        () = signals.next() => return Ok(()),
    };
    // A refused start must not leave a new store behind.
    if !address.ip().is_loopback() && StoreTarget::from(setup.url.clone()).check_exists().is_err() {
        return Err(no_token(address, "--listen").into());
    }
    let store = open_with(&setup.url, setup.config.store.max_connections).await?;
    let access = Access::new(store.clone(), address);
    let is_open = is_open(&access, address, "--listen").await?;
    worker::check_keys(&store, &setup.config, &setup.config_path).await?;
    let serving = Serving::start(&setup.config, &store, targets, access, limits).await?;
    // Commands in this folder find the server by it.
    let _file = serving.write_file(&setup.url, address).await;
    announce(&setup, address, is_open)?;
    let stops = signals.stops();
    let announced = async {
        stops.first().await;
        // A closed output does not keep the server from stopping.
        _ = out::print_line(
            "ichido: stopping: finishing requests and deliveries in flight; signal again to stop at once",
        );
        std::future::pending().await
    };
    let ended = tokio::select! {
        biased;
        never = announced => never,
        ended = serving.until(listener, &stops) => ended,
    };
    exporting.end().await;
    ended?;
    _ = out::print_line("ichido: stopped");
    Ok(())
}

/// Returns the store's URL: from the flag or the environment, then from the configuration, then the default.
///
/// A configuration without queues is an error, unless it only watches: for alerts about requests behind proxies.
pub(crate) fn store_url(given: Option<String>, config: &Config, file: &Path) -> Result<String, ConfigErrors> {
    let mut faults = ConfigErrors::default();
    if config.queues.is_empty() && config.alerts.receivers.is_empty() {
        let what = "has no queue; add one, such as [queues.orders]";
        faults.add(file.display().to_string(), what);
    }
    let url = given.or_else(|| config.store.url.clone());
    faults.or(Some(url.unwrap_or_else(|| DEFAULT_URL.to_owned())))
}

/// Describes where the messages of each queue go, one line per queue.
pub(crate) fn routes(config: &Config) -> impl Iterator<Item = String> {
    config.queues.iter().map(|queue| {
        let to = config.destinations.iter().find(|known| known.name == queue.destination);
        let endpoint = to.map(|known| known.endpoint.as_str()).unwrap_or_default();
        format!("ichido: queue {} goes to {} at {endpoint}", queue.name, queue.destination)
    })
}

/// Binds an address; port 0 picks a free port.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Exit> {
    let taken = TcpListener::bind(address).await;
    let taken = taken.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = taken.map_err(|error| {
        Exit::Failed(format!(
            "cannot listen on {address}: {error}; choose another address or port with --listen"
        ))
    })?;
    Ok((listener, address))
}

/// Prints the address, the queues and an example. The last line says that the server is running.
fn announce(setup: &Setup, address: SocketAddr, is_open: bool) -> Result<(), Exit> {
    let (database, kept) = match sqlite_file(&setup.url) {
        Some(file) => {
            let whole = std::path::absolute(file);
            ("SQLite", format!("SQLite, {}", whole.as_deref().unwrap_or(file).display()))
        }
        // The URL may contain a password.
        None => ("PostgreSQL", "PostgreSQL".to_owned()),
    };
    let mut lines = vec![format!("ichido: messages are stored in {kept}")];
    lines.extend(routes(&setup.config));
    if is_open {
        lines.push("ichido: no tokens exist: every local user has full access; to require tokens, run `ichido token create NAME --role admin`".to_owned());
    }
    if setup.mock_broker.is_some() {
        lines.push(format!(
            "ichido: try it:\n  curl -i 'http://{address}/v1/queues/{DEMO}/messages?wait=5s' -H 'Idempotency-Key: order-1' -H 'Content-Type: \
             application/json' -d '{{\"symbol\":\"ACME\",\"intent\":\"buy\",\"qty\":\"10\"}}'"
        ));
    }
    lines.push(format!("ichido: serving on {}://{address}, using {database}", setup.config.serve.scheme()));
    out::print_line(lines.join("\n"))
}
