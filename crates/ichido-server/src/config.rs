//! `ichido.toml`: the store, the destinations and the queues, and what commands show of the file.
//!
//! Guarantee: [`Config`] holds nothing that a worker would refuse. If a file does, all errors are reported at once, each with its
//! line and column, what is wrong, and how to fix it. Secrets are given by reference only, and are never shown. The commented
//! file that `ichido config init` writes lists every setting with its default.
//!
//! Later sources win: the file, then `.env`, then the environment (`env_overlay`), then flags.
//!
//! Start at [`load`]. `table` declares every setting once; `document` checks a file against it, and each section has a module
//! that reads it.

mod alerts;
mod destinations;
mod document;
mod env_overlay;
mod init;
mod intake;
mod json_schema;
mod kind;
mod queues;
mod retry;
mod serve;
mod setting;
pub mod show;
mod sources;
pub mod store_url;
pub mod summary;
mod table;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use ichido::worker::{AlertSettings, QUEUE_PREFIX, QueueConfig, WorkerConfigError, config_errors, limits};
use ichido_core::audit::AuditKey;
use ichido_http::url::HttpUrl;
use toml::de::DeTable;

pub use destinations::DestinationSettings;
pub use init::commented_file;
pub use intake::Intake;
pub use json_schema::json_schema;
pub use serve::{LISTEN_DEFAULT, ServeConfig};
pub use sources::ConfigSources;
pub use store_url::{CONNECTIONS_DEFAULT, DEFAULT_URL, sqlite_file};

pub use document::did_you_mean;
use document::{Section, Source};
use ichido_core::settings::ConfigErrors;
use ichido_http::small_file;
use queues::LocatedQueue;
use show::{DisplayedConfig, Override};

/// The default name of the file.
pub const FILE_NAME: &str = "ichido.toml";
/// Maximum size of the file.
const MAX_FILE_BYTES: usize = 4 << 20;

/// A parsed configuration.
#[derive(Debug)]
pub struct Config {
    /// The database.
    pub store: StoreConfig,
    /// The server.
    pub serve: ServeConfig,
    /// The worker.
    pub worker: WorkerConfig,
    /// The collector of traces: OTLP as JSON over HTTP, without `/v1/traces`.
    pub traces_endpoint: Option<String>,
    /// Whether spans carry the hash of a key instead of the key.
    pub traces_hash_keys: bool,
    /// Alert rules and their receivers.
    pub alerts: AlertSettings,
    /// The destinations.
    pub destinations: Vec<DestinationSettings>,
    /// The queues.
    pub queues: Vec<QueueConfig>,
    /// What each queue accepts, by its name.
    intakes: HashMap<String, Intake>,
}

impl Config {
    /// Returns what a queue accepts: everything, if it is not configured here.
    pub fn intake(&self, queue: &str) -> Intake {
        self.intakes.get(queue).cloned().unwrap_or_default()
    }
}

/// The database.
pub struct StoreConfig {
    /// Its URL, which may contain a password.
    pub url: Option<String>,
    /// Maximum connections to PostgreSQL.
    pub max_connections: u32,
}

ichido_core::debug_only! {
    /// The URL may contain a password.
    StoreConfig as store { max_connections }
}

/// Settings of the worker that are the same for all queues.
#[derive(Debug)]
pub struct WorkerConfig {
    /// Its name in logs and in the audit trail.
    pub name: String,
    /// How long it sleeps when there is nothing to do.
    pub idle_sleep: Duration,
    /// Time limit for calls in flight when it stops.
    pub stop_timeout: Duration,
    /// How long finished messages are kept.
    pub keep_finished: Duration,
    /// The key that seals the audit trail, if there is one.
    pub audit_key: Option<AuditKey>,
}

/// Reads a configuration and everything it refers to.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    read(path, true).map(|traced| traced.config)
}

/// A configuration, with the origin of each setting.
pub struct Traced {
    /// The configuration.
    pub config: Config,
    shown: Vec<DisplayedConfig>,
}

impl Traced {
    /// Returns every setting with its effective value and origin.
    pub fn display(&self, over: &[Override]) -> Vec<DisplayedConfig> {
        let mut all = self.shown.clone();
        for shown in &mut all {
            let path = format!("{}.{}", shown.table, shown.name);
            if let Some(over) = over.iter().find(|over| over.path == path) {
                shown.effective = Some(over.effective.clone());
            }
        }
        all
    }
}

/// Reads a configuration for a command that delivers nothing, and records the origin of each setting.
///
/// Secrets are not read, so the variables and files that hold them may be missing here. So may the addresses of destinations.
pub fn load_traced(path: &Path) -> Result<Traced, ConfigErrors> {
    read(path, false)
}

fn read(path: &Path, needs_secrets: bool) -> Result<Traced, ConfigErrors> {
    let name = path.display().to_string();
    let text = small_file::read_text_within(path, MAX_FILE_BYTES).map_err(|error| {
        let what = format!("cannot be read: {error}; create one with `ichido config init`, or pass --config");
        ConfigErrors::one(&name, what)
    })?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    traced(&name, &text, &ConfigSources { needs_secrets, ..ConfigSources::of_process(folder) })
}

/// Parses a configuration, or returns all of its errors.
pub fn resolve(name: &str, text: &str, outside: &ConfigSources<'_>) -> Result<Config, ConfigErrors> {
    traced(name, text, outside).map(|traced| traced.config)
}

fn traced(name: &str, text: &str, outside: &ConfigSources<'_>) -> Result<Traced, ConfigErrors> {
    if MAX_FILE_BYTES < text.len() {
        let what =
            format!("the file is larger than {MAX_FILE_BYTES} bytes; pass the path of a configuration");
        return Err(ConfigErrors::one(name, what));
    }
    let mut faults = ConfigErrors::default();
    let variables = env_overlay::overrides(outside, &mut faults);
    let source = Source { name, text, variables: &variables, outside, faults: RefCell::default() };
    let (mut document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let place = source.location(error.span().map_or(0, |span| span.start));
        let what = error.message();
        // A word without quotes is taken for a number or a truth value.
        let help = if what.starts_with("invalid ") {
            "; put texts in quotes"
        } else if what.starts_with("string values") {
            "; a truth value is `true` or `false`, without quotes"
        } else {
            ""
        };
        faults.add(place, format!("is not valid TOML: {what}{help}"));
    }
    // A broken file may have been parsed only in part.
    if !errors.is_empty() {
        return Err(faults);
    }
    env_overlay::apply(document.get_mut(), &variables, source.end(), &mut faults);
    source.faults.replace(faults);
    let root = Section::root(&source, &document);
    root.check();
    let config = config(&root);
    let mut shown = Vec::new();
    root.show(&mut shown);
    let config = source.faults.take().or(config)?;
    Ok(Traced { config, shown })
}

/// Reads all sections; `None` if one is not a table.
fn config(root: &Section<'_>) -> Option<Config> {
    let store = store(&root.section("store")?);
    let worker = worker(&root.section("worker")?);
    let alerts = alerts::read(&root.section("alerts")?);
    let sections = root.sections("destinations");
    let named: Vec<&str> = sections.iter().map(|section| section.name).collect();
    let destinations: Vec<DestinationSettings> = sections.iter().filter_map(destinations::read).collect();
    let queues: Vec<LocatedQueue<'_>> =
        root.sections("queues").into_iter().filter_map(queues::read).collect();
    check(&destinations, &queues, &alerts, &named, root);
    check_alert_queues(&queues, root);
    let destinations = link_answer_queues(destinations, &queues, root);
    Some(Config {
        store,
        serve: serve::read(&root.section("serve")?),
        worker,
        traces_endpoint: traces_endpoint(&root.section("traces")?),
        traces_hash_keys: root.section("traces")?.get_or_default("hash_keys"),
        alerts: alerts.alerts,
        destinations,
        intakes: queues.iter().map(|located| (located.queue.name.clone(), located.intake.clone())).collect(),
        queues: queues.into_iter().map(|located| located.queue).collect(),
    })
}

fn traces_endpoint(section: &Section<'_>) -> Option<String> {
    let url = section.resolved("endpoint")?;
    section.checked("endpoint", HttpUrl::parse_base(&url).map(|_| url.clone()))
}

fn store(section: &Section<'_>) -> StoreConfig {
    let text = section.get::<String>("url");
    let in_file = text.filter(|_| !section.is_by_variable("url"));
    let url = if in_file.is_some_and(|text| holds_password(&text)) {
        section.report(
            "url",
            "contains a password, which must not be in the file; write \"env:NAME\" for an environment variable, or \"file:PATH\"",
        );
        None
    } else {
        section.resolved("url").and_then(|url| {
            let checked = store_url::check(&url).map_err(str::to_owned);
            section.checked("url", checked.and_then(|()| section.source.outside.resolve_store_path(url)))
        })
    };
    StoreConfig { url, max_connections: section.get_or_default("max_connections") }
}

/// Whether a text has the form `scheme://name:password@…`, or has a password in its query.
fn holds_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let in_authority = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    in_authority || rest.split(['?', '&']).any(|part| part.starts_with("password="))
}

fn worker(section: &Section<'_>) -> WorkerConfig {
    let name: String = section.get_or_default("name");
    if !(1..=limits::MAX_NAME_BYTES).contains(&name.len()) || name.contains('\0') {
        let max = limits::MAX_NAME_BYTES;
        section.report("name", format!("is not a valid name; use 1 to {max} bytes without NUL"));
    }
    let audit_key = section.resolved("audit_key").and_then(|key| {
        let key =
            AuditKey::parse(key.as_bytes()).map_err(|error| format!("is not a valid audit key: {error}"));
        section.checked("audit_key", key)
    });
    WorkerConfig {
        name,
        idle_sleep: section.get_or_default("idle_sleep"),
        stop_timeout: section.get_or_default("stop_timeout"),
        keep_finished: section.get_or_default("keep_finished"),
        audit_key,
    }
}

/// Describes a reference to a queue or destination that does not exist.
fn missing<'k>(table: &str, name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let meant = did_you_mean(name, known, "add it, or name an existing one");
    format!("[{table}.{name}] does not exist{meant}")
}

/// Checks the queue for the answers of each model.
///
/// It must exist, and must not go to the model itself. Takes the number of attempts for answers from that queue.
fn link_answer_queues(
    destinations: Vec<DestinationSettings>,
    queues: &[LocatedQueue<'_>],
    root: &Section<'_>,
) -> Vec<DestinationSettings> {
    let checked = destinations.into_iter().map(|destination| {
        let Some(queue) = destination.model().map(|plan| plan.answers_to().as_str()) else { return destination };
        let place = format!("destinations.{}.answers_to", destination.name);
        let Some(located) = queues.iter().find(|located| located.queue.name == queue) else {
            let names = queues.iter().map(|located| located.queue.name.as_str());
            root.report(&place, missing("queues", queue, names));
            return destination;
        };
        if located.queue.destination == destination.name {
            let what = format!("queue {queue} delivers to this destination itself, so answers would loop forever; name another queue");
            root.report(&place, what);
        }
        destination.with_answer_attempts(located.queue.retry.max_attempts)
    });
    checked.collect()
}

/// Reports thresholds for queues that do not exist.
fn check_alert_queues(queues: &[LocatedQueue<'_>], root: &Section<'_>) {
    let names = || queues.iter().map(|located| located.queue.name.as_str());
    for section in root.section("alerts").iter().flat_map(|alerts| alerts.sections("queues")) {
        if !names().any(|name| name == section.name) {
            section.report("", missing("queues", section.name, names()));
        }
    }
}

/// Reports contradictions between queues, alert receivers and destinations, each at its location.
fn check(
    destinations: &[DestinationSettings],
    queues: &[LocatedQueue<'_>],
    alerts: &alerts::LocatedAlerts<'_>,
    named: &[&str],
    root: &Section<'_>,
) {
    for LocatedQueue { queue, section, .. } in
        queues.iter().filter(|located| located.queue.name.starts_with(QUEUE_PREFIX))
    {
        let what = format!("{} is a reserved name, for the queues of alerts; choose another", queue.name);
        section.report("", what);
    }
    let known: Vec<(&str, Duration)> =
        destinations.iter().map(|destination| (destination.name.as_str(), destination.timeout())).collect();
    let own = queues.iter().map(|located| (located.queue.clone(), &located.section));
    let receivers = alerts.alerts.queues().into_iter().zip(&alerts.receivers);
    let (queue_configs, sections): (Vec<QueueConfig>, Vec<&Section<'_>>) = own.chain(receivers).unzip();
    let place = |queue: &str, setting: &str| match queue_configs
        .iter()
        .position(|queue_config| queue_config.name == queue)
    {
        // A receiver's section sets only the destination of its queue.
        Some(index) if queues.len() <= index => sections[index].location("destination"),
        Some(index) => sections[index].location(setting),
        None => String::new(),
    };
    for error in config_errors(&known, &queue_configs) {
        let (place, what) = match &error {
            // It exists, and its errors were already reported.
            WorkerConfigError::NoDestination { destination, .. } if named.contains(&destination.as_str()) => {
                continue;
            }
            WorkerConfigError::NoDestination { queue, destination } => {
                (place(queue, "destination"), missing("destinations", destination, named.iter().copied()))
            }
            WorkerConfigError::LeaseTooShort { queue, .. }
            | WorkerConfigError::LeaseBelowMinimum { queue, .. }
            | WorkerConfigError::LeaseTooLong { queue, .. } => (place(queue, "lease"), error.to_string()),
            WorkerConfigError::TooMany { queue, what, .. } => (place(queue, what), error.to_string()),
            WorkerConfigError::Retry { queue, .. } => (place(queue, "retry"), error.to_string()),
            WorkerConfigError::QueueName { queue } | WorkerConfigError::DuplicateQueue { queue } => {
                (place(queue, ""), error.to_string())
            }
            // The rest is about handlers in a program, and a file has none.
            WorkerConfigError::NoQueue
            | WorkerConfigError::NoIdleSleep
            | WorkerConfigError::WorkerName
            | WorkerConfigError::DestinationName { .. }
            | WorkerConfigError::DuplicateDestination { .. }
            | WorkerConfigError::TypeName { .. }
            | WorkerConfigError::MissingType { .. }
            | WorkerConfigError::DuplicateType { .. }
            | WorkerConfigError::DifferentGuarantees { .. }
            | WorkerConfigError::DifferentRetries { .. }
            | WorkerConfigError::ReconcileAmongTypes { .. }
            | WorkerConfigError::TxTimeout { .. }
            | WorkerConfigError::NoPool { .. }
            | WorkerConfigError::OtherDatabase { .. }
            | WorkerConfigError::TunedTooEarly { .. } => (root.location("destinations"), error.to_string()),
        };
        root.report_at(place, what);
    }
}
