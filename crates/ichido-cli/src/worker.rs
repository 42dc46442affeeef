//! `ichido worker`: delivers what the outbox holds, by the queues and destinations of a configuration (SPEC D, E1, E2).
//!
//! Guarantee: it starts only with a configuration that makes sense, says what it serves, and stops without losing anything: after
//! the first signal nothing more is claimed and what is under way may end, after the second it ends at once. What it logs has
//! hashes of keys, and no payload.
//!
//! Start at [`run`]; the work itself is `ichido::worker`'s.

pub(crate) mod metrics;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ichido::worker::{Running, Target, Worker};
use ichido_store::Store;
use ichido_store::message::QueueName;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::config::{self, Config, Described, FILE_NAME};
use crate::duration;
use crate::exit::Exit;
use crate::faults::Faults;
use crate::out;
use crate::serve::{self, Access};
use crate::signals::Signals;
use crate::store::open_with;
use crate::traces;
use metrics::{Health, Metrics};

/// How long the servers of destinations may take to say what they keep, when a worker starts.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

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
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::listen::address)]
    metrics: Option<SocketAddr>,
}

/// Works until it is told to stop.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let misconfigured = |faults| Exit::Misconfigured { command: "worker", faults };
    let config = config::load(&args.config).map_err(misconfigured)?;
    let url = url(&args, &config).map_err(misconfigured)?;
    // Before anything is claimed, so that a signal never finds us without a way to give it back.
    let mut signals =
        Signals::listen().map_err(|error| Exit::Failed(format!("signals cannot be caught: {error}")))?;
    let metrics = match args.metrics {
        Some(address) => Some(Metrics::listen(address).await?),
        None => None,
    };
    let exporting = traces::start(&config.traces).map_err(misconfigured)?;
    let targets = tokio::select! {
        targets = connect(&config) => targets?,
        // Nothing was begun.
        () = signals.next() => return Ok(()),
    };
    let store = open_with(&url, config.store.connections_max).await?;
    let access = access(metrics.as_ref(), &store).await?;
    let targets = on_store(&config, &store, targets);
    check_keys("worker", &store, &config, &args.config).await?;
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
    serve::is_open(&access, metrics.address(), "worker", "--metrics").await?;
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

/// What becomes of what was under way. Its lease holds until it ends, for the next start of this worker as well.
pub(crate) fn cut(lease_max: Duration) -> String {
    format!(
        "stopped at once; what was under way is taken up by whichever worker runs once its lease (at most {}) is over",
        duration::shown(lease_max)
    )
}

/// Whether the worker works, for whoever asks.
pub(crate) fn lives(worker: &Arc<Running>) -> watch::Receiver<bool> {
    let (tell, lives) = watch::channel(true);
    let worker = Arc::clone(worker);
    tokio::spawn(async move {
        worker.ended().await;
        tell.send_replace(false);
    });
    lives
}

/// The longest lease of a queue.
pub(crate) fn lease_max(config: &Config) -> Duration {
    config.queues.iter().map(|queue| queue.lease).max().unwrap_or_default()
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

/// A queue goes by one kind of key for good: what is tried under one is another action under the other (SPEC D7).
pub(crate) async fn check_keys(
    command: &'static str,
    store: &Store,
    config: &Config,
    file: &Path,
) -> Result<(), Exit> {
    let mut faults = Faults::default();
    for queue in &config.queues {
        // A name that is none was refused with the configuration.
        let Some(name) = QueueName::parse(&queue.name) else { continue };
        let stands = queue.key.contradicted_by(store, &name).await;
        let stands = stands
            .map_err(|error| Exit::Failed(format!("the store cannot be asked for its queues: {error}")))?;
        if let Some(stands) = stands {
            let (place, wanted) =
                (format!("{}: [queues.{}]", file.display(), queue.name), queue.key.as_str());
            faults.add(
                place,
                format!("outbound_key is \"{wanted}\", and its messages have gone out under \"{stands}\" so far: a further try would be another action to the receiver; set it to \"{stands}\", or put new messages into a queue of another name"),
            );
        }
    }
    faults.or(Some(())).map_err(|faults| Exit::Misconfigured { command, faults })
}

/// Every destination, connected to where that is needed before it can be called; or everything that was met there, at once.
pub(crate) async fn connect(config: &Config) -> Result<Vec<Target>, Exit> {
    let mut faults = Faults::default();
    // All at once, so that the slowest is all that is waited for.
    let begin = |described: &Described| tokio::spawn(timeout(CONNECT_WITHIN, described.connect()));
    let connecting: Vec<_> = config.destinations.iter().map(begin).collect();
    let mut targets = Vec::new();
    for (described, connecting) in config.destinations.iter().zip(connecting) {
        let place = format!("destinations.{}", described.name);
        match faults.check(&place, connecting.await) {
            Some(Ok(target)) => targets.extend(faults.check(&place, target).flatten()),
            Some(Err(_)) => {
                let whereto = &described.whereto;
                faults.add(place, format!("nothing was heard of {whereto} within {CONNECT_WITHIN:?}; look whether it is well, and start again"));
            }
            None => (),
        }
    }
    // Not a fault of the configuration alone: it may be as well once the server is there.
    faults.or(Some(targets)).map_err(|faults| Exit::Failed(format!("the worker does not start: {faults}")))
}

/// With the destinations that need the store.
pub(crate) fn on_store(config: &Config, store: &Store, targets: Vec<Target>) -> Vec<Target> {
    let on_store = config.destinations.iter().filter_map(|described| described.on(store));
    targets.into_iter().chain(on_store).collect()
}

/// Starts to work by a configuration.
pub(crate) fn start(store: &Store, config: &Config, targets: Vec<Target>) -> Result<Running, Faults> {
    let settings = &config.worker;
    let mut draft = Worker::of(store.clone())
        .name(&settings.name)
        .idle_sleep(settings.idle_sleep)
        .stop_within(settings.stop_within)
        .keep_finished(settings.keep_finished)
        .alerts(config.alerts.clone());
    if let Some(key) = &settings.audit_key {
        draft = draft.audit_key(key.clone());
    }
    for target in targets {
        draft = draft.destination(target);
    }
    for queue in &config.queues {
        draft = draft.queue(queue.clone());
    }
    draft.start().map_err(|errors| {
        let mut faults = Faults::default();
        for error in errors.iter() {
            faults.add("the worker", error.to_string());
        }
        faults
    })
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
