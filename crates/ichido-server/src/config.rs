//! `ichido.toml`: the store, the destinations and the queues, and the commands about the file.
//!
//! Guarantee: [`Config`] holds nothing that a worker would refuse; where a file does, every problem is said at once, each with
//! its line and column, what is wrong, and how to fix it. Secrets come by reference alone, and none is ever shown. The commented
//! file that `ichido config init` writes names every setting, with what holds where it is left out.
//!
//! What is said later wins: the file, then the environment (`environment`), then flags.
//!
//! Start at [`load`]. `document` reads a table member by member; each section has a module that understands it.

mod alerts;
mod destinations;
mod document;
mod environment;
mod intake;
mod outside;
mod overlay;
mod queues;
mod retry;
mod serve;
pub mod show;
pub mod store_url;
pub mod summary;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use ichido::worker::{Alerts, BuildError, Queue, limits, problems};
use ichido_core::audit::AuditKey;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use destinations::Described;
pub use intake::Intake;
pub use outside::Outside;
pub use overlay::of_this_process as named_variables;
pub use serve::{LISTEN_DEFAULT, ServeConfig};
pub use store_url::{CONNECTIONS_DEFAULT, DEFAULT_URL, sqlite_file};

use document::{Section, Source, nearest};
use environment::Environment;
use ichido_core::settings::Faults;
use queues::{Defaults, Placed};
use show::{Asked, Over, Shown};

/// The commented file.
pub const DEFAULT_FILE: &str = include_str!("config/default.toml");
/// What the file is called when nothing else is said.
pub const FILE_NAME: &str = "ichido.toml";
/// The largest file that is read.
const FILE_BYTES_MAX: usize = 4 << 20;
/// The most connections to PostgreSQL that may be asked for.
const CONNECTIONS_MAX: u32 = 1_000;

/// What a program runs by.
#[derive(Debug)]
pub struct Config {
    /// Where things are kept.
    pub store: StoreConfig,
    /// How a server listens.
    pub serve: ServeConfig,
    /// How a worker goes about it.
    pub worker: WorkerConfig,
    /// Where spans go.
    pub traces: TracesConfig,
    /// What is watched for, and who is told.
    pub alerts: Alerts,
    /// Where messages go.
    pub destinations: Vec<Described>,
    /// What holds them until then.
    pub queues: Vec<Queue>,
    /// What each of the queues takes in, by its name.
    intakes: HashMap<String, Intake>,
}

impl Config {
    /// What a queue takes in; everything, where it is not known here.
    pub fn intake(&self, queue: &str) -> Intake {
        self.intakes.get(queue).cloned().unwrap_or_default()
    }
}

/// Where things are kept.
pub struct StoreConfig {
    /// May hold a password.
    pub url: Option<String>,
    /// The most connections to PostgreSQL.
    pub connections_max: u32,
}

/// The address may hold a password.
impl std::fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreConfig").field("connections_max", &self.connections_max).finish_non_exhaustive()
    }
}

/// How a worker goes about it, whatever the queue.
#[derive(Debug)]
pub struct WorkerConfig {
    /// Its name in logs and in the audit trail.
    pub name: String,
    /// How long it sleeps when there is nothing to do.
    pub idle_sleep: Duration,
    /// How long calls under way may take when it stops.
    pub stop_within: Duration,
    /// How long messages that have ended are kept.
    pub keep_finished: Duration,
    /// Seals the audit trail, if there is one.
    pub audit_key: Option<AuditKey>,
}

/// Where spans go.
#[derive(Debug, Default)]
pub struct TracesConfig {
    /// A collector that takes OTLP as JSON over HTTP, without `/v1/traces`.
    pub endpoint: Option<String>,
}

/// Tables that are there whether or not the file has them.
const ALWAYS: [&str; 6] = ["store", "serve", "worker", "traces", "alerts", "queue_defaults"];

/// Reads a configuration and what it refers to.
pub fn load(path: &Path) -> Result<Config, Faults> {
    load_traced(path).map(|traced| traced.config)
}

/// A configuration, and who said what in it.
pub struct Traced {
    /// The configuration.
    pub config: Config,
    asked: Vec<Asked>,
    environment: Environment,
}

impl Traced {
    /// Every setting as it holds, and who said so.
    pub fn shown(&self, over: &[Over]) -> Vec<Shown> {
        show::shown(&self.asked, &self.environment, over)
    }
}

/// The same, with who said what in it.
pub fn load_traced(path: &Path) -> Result<Traced, Faults> {
    let name = path.display().to_string();
    let text = outside::read_up_to(path, FILE_BYTES_MAX).map_err(|error| {
        let mut faults = Faults::default();
        faults.add(
            name.clone(),
            format!("cannot be read: {error}; `ichido config init` writes one, and --config names another"),
        );
        faults
    })?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let outside = Outside {
        variable: &|name| std::env::var(name).ok(),
        file: &outside::read_file,
        folder,
        named: overlay::of_this_process(),
    };
    traced(&name, &text, &outside)
}

/// Understands a configuration, or says everything that is wrong with it.
pub fn resolve(name: &str, text: &str, outside: &Outside<'_>) -> Result<Config, Faults> {
    traced(name, text, outside).map(|traced| traced.config)
}

fn traced(name: &str, text: &str, outside: &Outside<'_>) -> Result<Traced, Faults> {
    let mut faults = Faults::default();
    if FILE_BYTES_MAX < text.len() {
        faults.add(name, format!("is larger than {FILE_BYTES_MAX} bytes, which no configuration is"));
        return Err(faults);
    }
    let source = Source { name, text, variables: &outside.named, asked: RefCell::default() };
    let (mut document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let place = source.place(error.span().map_or(0, |span| span.start));
        faults.add(place, format!("is no TOML: {}", error.message()));
    }
    // What was read of a broken file may be half of what was meant.
    if !errors.is_empty() {
        return Err(faults);
    }
    for name in ALWAYS {
        let empty = || Spanned::new(0..0, DeValue::Table(DeTable::new()));
        document.get_mut().entry(Spanned::new(0..0, name.into())).or_insert_with(empty);
    }
    overlay::lay_over(document.get_mut(), &outside.named, source.end(), &mut faults);
    let mut root = Section::root(&source, &document);
    let environment = Environment::read(outside, &mut faults);
    let store = store(root.section("store", &mut faults), outside, &mut faults);
    let serve = serve::read(root.section("serve", &mut faults), &mut faults);
    let worker = worker(root.section("worker", &mut faults), &environment, outside, &mut faults);
    let traces = traces(root.section("traces", &mut faults), outside, &mut faults);
    let alerts = alerts::read(root.section("alerts", &mut faults), &mut faults);
    let sections = root.sections("destinations", &mut faults);
    let named: Vec<&str> = sections.iter().map(|(name, _)| *name).collect();
    let destinations: Vec<Described> = sections
        .into_iter()
        .filter_map(|(name, section)| destinations::read(name, section, outside, &mut faults))
        .collect();
    let defaults = Defaults::read(root.section("queue_defaults", &mut faults), &environment, &mut faults);
    let sections = root.sections("queues", &mut faults);
    let queues: Vec<Placed> = sections
        .into_iter()
        .filter_map(|(name, section)| queues::read(name, section, &defaults, outside, &mut faults))
        .collect();
    check(&destinations, &queues, &named, &root, &mut faults);
    let destinations = answering(destinations, &queues, &root, &mut faults);
    let placed: Vec<(&str, String)> =
        queues.iter().map(|placed| (placed.queue.name.as_str(), placed.place(""))).collect();
    alerts.check(&destinations, &named, &placed, &mut faults);
    root.finish(&mut faults);
    let intakes = queues.iter().map(|placed| (placed.queue.name.clone(), placed.intake.clone())).collect();
    let queues = queues.into_iter().map(|placed| placed.queue).collect();
    let alerts = alerts.alerts;
    let config = Config { store, serve, worker, traces, alerts, destinations, queues, intakes };
    let config = faults.or(Some(config))?;
    Ok(Traced { config, asked: source.asked.take(), environment })
}

fn store(section: Option<Section<'_>>, outside: &Outside<'_>, faults: &mut Faults) -> StoreConfig {
    let mut store = StoreConfig { url: None, connections_max: CONNECTIONS_DEFAULT };
    let Some(mut section) = section else { return store };
    if let Some(text) = section.text("url", faults) {
        let place = section.place("url");
        if holds_password(text) && !section.is_by_variable("url") {
            faults.add(
                place,
                "holds a password, which does not belong into the file; write \"env:NAME\" for a variable of the environment, or \"file:PATH\"",
            );
        } else {
            let url = outside.resolve(text).and_then(|url| {
                store_url::check(&url)?;
                outside.counted_here(url)
            });
            store.url = faults.check(&place, url);
        }
    }
    if let Some(most) = section.count("connections_max", 2..=CONNECTIONS_MAX, faults) {
        store.connections_max = most;
    }
    section.finish(faults);
    store
}

/// Whether a text has the form `scheme://name:password@…`, or one in its query.
fn holds_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let in_authority = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    in_authority || rest.split(['?', '&']).any(|part| part.starts_with("password="))
}

fn worker(
    section: Option<Section<'_>>,
    environment: &Environment,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> WorkerConfig {
    let mut worker = WorkerConfig {
        name: "worker".to_owned(),
        idle_sleep: limits::IDLE_SLEEP_DEFAULT,
        stop_within: limits::STOP_WITHIN_DEFAULT,
        keep_finished: limits::KEEP_FINISHED_DEFAULT,
        audit_key: None,
    };
    if let Some(mut section) = section {
        if let Some(name) = section.text("name", faults) {
            if !(1..=limits::NAME_BYTES_MAX).contains(&name.len()) || name.contains('\0') {
                let most = limits::NAME_BYTES_MAX;
                faults
                    .add(section.place("name"), format!("is no name; give it 1 to {most} bytes and no NUL"));
            }
            name.clone_into(&mut worker.name);
        }
        if let Some(idle_sleep) = section.time("idle_sleep", faults) {
            if idle_sleep.is_zero() {
                faults.add(section.place("idle_sleep"), BuildError::NoIdleSleep.to_string());
            }
            worker.idle_sleep = idle_sleep;
        }
        worker.stop_within = section.time("stop_within", faults).unwrap_or(worker.stop_within);
        worker.keep_finished = section.time("keep_finished", faults).unwrap_or(worker.keep_finished);
        if let Some(reference) = section.text("audit_key", faults) {
            let key = outside.secret(reference).and_then(|key| {
                AuditKey::parse(key.as_bytes()).map_err(|error| format!("is no key for seals: {error}"))
            });
            worker.audit_key = faults.check(&section.place("audit_key"), key);
        }
        section.finish(faults);
    }
    worker.idle_sleep = environment.idle_sleep.unwrap_or(worker.idle_sleep);
    worker
}

fn traces(section: Option<Section<'_>>, outside: &Outside<'_>, faults: &mut Faults) -> TracesConfig {
    let mut traces = TracesConfig::default();
    let Some(mut section) = section else { return traces };
    if let Some(text) = section.text("endpoint", faults) {
        traces.endpoint = faults.check(&section.place("endpoint"), outside.resolve(text));
    }
    section.finish(faults);
    traces
}

/// Answers go into a queue that there is, are delivered as often as it says, and are not asked about themselves.
fn answering(
    destinations: Vec<Described>,
    queues: &[Placed],
    root: &Section<'_>,
    faults: &mut Faults,
) -> Vec<Described> {
    let named = |name: &str| queues.iter().find(|placed| placed.queue.name == name);
    let checked = destinations.into_iter().map(|described| {
        let Some(queue) = described.answers_to() else { return described };
        let place = root.place_within(&format!("destinations.{}.answers_to", described.name));
        let Some(placed) = named(queue) else {
            let meant = nearest(queue, queues.iter().map(|placed| placed.queue.name.as_str()));
            let meant = meant.map(|name| format!("; did you mean {name}")).unwrap_or_default();
            let what = format!("there is no [queues.{queue}]{meant}; add it, or name one that is there");
            faults.add(place, what);
            return described;
        };
        if placed.queue.destination == described.name {
            let what = format!("queue {queue} goes to this destination itself, so that answers would be asked about without end; name another");
            faults.add(place, what);
        }
        described.answer_tries(placed.queue.retry.tries)
    });
    checked.collect()
}

/// What contradicts itself between queues and destinations, each at its place.
fn check(
    destinations: &[Described],
    queues: &[Placed],
    named: &[&str],
    root: &Section<'_>,
    faults: &mut Faults,
) {
    let known: Vec<(&str, Duration)> =
        destinations.iter().map(|described| (described.name.as_str(), described.time_out())).collect();
    let wishes: Vec<Queue> = queues.iter().map(|placed| placed.queue.clone()).collect();
    let place = |queue: &str, setting: &str| {
        let placed = queues.iter().find(|placed| placed.queue.name == queue);
        placed.map_or_else(String::new, |placed| placed.place(setting))
    };
    for error in problems(&known, &wishes) {
        match &error {
            // It is there, and what is wrong with it was said.
            BuildError::NoDestination { destination, .. } if named.contains(&destination.as_str()) => {}
            BuildError::NoDestination { queue, destination } => {
                let meant = nearest(destination, named.iter().copied());
                let meant = meant.map(|name| format!("; did you mean {name}")).unwrap_or_default();
                faults.add(
                    place(queue, "destination"),
                    format!(
                        "there is no [destinations.{destination}]{meant}; add it, or name one that is there"
                    ),
                );
            }
            BuildError::LeaseTooShort { queue, .. }
            | BuildError::LeaseBelowLeast { queue, .. }
            | BuildError::LeaseTooLong { queue, .. } => {
                faults.add(place(queue, "lease"), error.to_string());
            }
            BuildError::TooMany { queue, what, .. } => faults.add(place(queue, what), error.to_string()),
            BuildError::Retry { queue, .. } => faults.add(place(queue, "retry"), error.to_string()),
            BuildError::QueueName { queue } | BuildError::QueueTwice { queue } => {
                faults.add(place(queue, ""), error.to_string());
            }
            BuildError::NoQueue
            | BuildError::NoIdleSleep
            | BuildError::WorkerName
            | BuildError::DestinationName { .. }
            | BuildError::DestinationTwice { .. } => {
                faults.add(root.place("destinations"), error.to_string());
            }
        }
    }
}
