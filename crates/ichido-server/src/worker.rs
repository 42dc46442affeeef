//! Builds a worker from a configuration: connects its destinations and checks its queues.
//!
//! Guarantee: the worker starts only if every destination responded and no queue would switch to another kind of key.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ichido::worker::{DestinationConfig, Worker, WorkerHandle};
use ichido_core::settings::{ConfigErrors, duration};
use ichido_store::Store;
use ichido_store::message::QueueName;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::Error;
use crate::config::{Config, DestinationSettings};

/// Time limit for connecting to each destination when a worker starts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Describes what happens to messages in flight after an immediate stop.
///
/// Their lease holds until it expires, even if the same worker starts again.
pub fn cut(max_lease: Duration) -> String {
    format!(
        "stopped immediately; a running worker rescues the messages in flight after their lease (at most {}) expires",
        duration::format(max_lease)
    )
}

/// Returns a watch that turns false when the worker ends.
pub fn lives(worker: &Arc<WorkerHandle>) -> watch::Receiver<bool> {
    let (sender, alive) = watch::channel(true);
    let worker = Arc::clone(worker);
    tokio::spawn(async move {
        worker.ended().await;
        sender.send_replace(false);
    });
    alive
}

/// Returns the longest lease of any queue.
pub fn max_lease(config: &Config) -> Duration {
    config.queues.iter().map(|queue| queue.lease).max().unwrap_or_default()
}

/// Checks that no queue changes its kind of outbound key.
///
/// A retry under the other kind would be a different action to the receiver.
// Spec: D7.
pub async fn check_keys(store: &Store, config: &Config, file: &Path) -> Result<(), Error> {
    let mut faults = ConfigErrors::default();
    for queue in &config.queues {
        // Invalid names were refused with the configuration.
        let Some(name) = QueueName::parse(&queue.name) else { continue };
        let published = queue.outbound_key.conflicting_kind(store, &name).await;
        let published = published
            .map_err(|error| Error::Failed(format!("cannot read the queues from the store: {error}")))?;
        if let Some(published) = published {
            let (place, wanted) =
                (format!("{}: [queues.{}]", file.display(), queue.name), queue.outbound_key.as_str());
            faults.add(
                place,
                format!("outbound_key is \"{wanted}\", but messages were sent with \"{published}\" so far: to the receiver, a retry would be a new action; set it to \"{published}\", or send new messages to a queue with another name"),
            );
        }
    }
    faults.or(Some(())).map_err(Error::Misconfigured)
}

/// Connects every destination that needs it before its first call. Returns all errors at once.
pub async fn connect(config: &Config) -> Result<Vec<DestinationConfig>, Error> {
    let mut faults = ConfigErrors::default();
    // Connect concurrently, so the total wait is that of the slowest destination.
    let begin =
        |destination: &DestinationSettings| tokio::spawn(timeout(CONNECT_TIMEOUT, destination.connect()));
    let connecting: Vec<_> = config.destinations.iter().map(begin).collect();
    let mut targets = Vec::new();
    for (destination, connecting) in config.destinations.iter().zip(connecting) {
        let place = format!("destinations.{}", destination.name);
        match faults.check(&place, connecting.await) {
            Some(Ok(target)) => targets.extend(faults.check(&place, target).flatten()),
            Some(Err(_)) => {
                let address = &destination.endpoint;
                faults.add(place, format!("{address} did not respond within {CONNECT_TIMEOUT:?}; check that it runs, and start again"));
            }
            None => (),
        }
    }
    // This is not only a configuration error: it may work once the server is up.
    faults.or(Some(targets)).map_err(|faults| Error::Failed(format!("cannot start the worker: {faults}")))
}

/// Adds the destinations that need the store.
pub fn on_store(config: &Config, store: &Store, targets: Vec<DestinationConfig>) -> Vec<DestinationConfig> {
    let on_store = config.destinations.iter().filter_map(|destination| destination.on(store));
    targets.into_iter().chain(on_store).collect()
}

/// Starts a worker with a configuration.
pub fn start(
    store: &Store,
    config: &Config,
    targets: Vec<DestinationConfig>,
) -> Result<WorkerHandle, ConfigErrors> {
    let settings = &config.worker;
    let mut draft = Worker::new(store.clone())
        .name(&settings.name)
        .idle_sleep(settings.idle_sleep)
        .stop_timeout(settings.stop_timeout)
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
        let mut faults = ConfigErrors::default();
        for error in errors.iter() {
            faults.add("the worker", error.to_string());
        }
        faults
    })
}
