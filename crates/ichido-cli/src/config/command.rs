//! `ichido config`: writes the commented file, shows what holds, and says what is wrong with one.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use ichido::worker::{Queue, Receiver};
use ichido_core::alert::{Rule, Rules, Terms};
use ichido_core::retry::Guarantee;
use serde_json::{Value, json};

use super::show::Over;
use super::{Config, DEFAULT_FILE, Described, FILE_NAME, load, load_traced, show};
use crate::duration;
use crate::exit::Exit;
use crate::faults::Faults;
use crate::listen::Bounds;
use crate::out;
use crate::store::sqlite_file;
use crate::table::table;
use ichido_http::server::limits::Limits;

/// The variable that says where things are kept.
const STORE: &str = "ICHIDO_STORE";

/// What `ichido config` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// One JSON object, for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a configuration with every setting in it, explained
    Init {
        /// Where to; `-` is standard output. A file that is there stays as it is
        #[arg(value_name = "FILE", default_value = FILE_NAME)]
        file: PathBuf,
    },
    /// Show every setting as it holds, by the file, the environment and the defaults
    Show {
        /// Which one
        #[arg(value_name = "FILE", default_value = FILE_NAME, env = "ICHIDO_CONFIG")]
        file: PathBuf,

        #[arg(
            long,
            value_name = "URL",
            help = "The store, as the other commands take it [env: ICHIDO_STORE]"
        )]
        store: Option<String>,

        /// Where a server listens, as `ichido serve` takes it
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::listen::address)]
        listen: Option<SocketAddr>,

        #[command(flatten)]
        bounds: Box<Bounds>,

        /// Say beside each who said it: a line of the file, a variable, a flag, or nobody
        #[arg(long)]
        origin: bool,
    },
    /// Say everything that is wrong with a configuration, or what it comes to
    Check {
        /// Which one
        #[arg(value_name = "FILE", default_value = FILE_NAME, env = "ICHIDO_CONFIG")]
        file: PathBuf,
    },
}

/// Does as it is told.
pub(crate) fn run(args: &Args) -> Result<(), Exit> {
    match &args.command {
        // The file itself, for whoever reads it.
        Command::Init { file } if file.as_os_str() == "-" => out::say(DEFAULT_FILE),
        Command::Init { file } => {
            init(file)?;
            let shown = file.display();
            if args.json {
                return out::line(json!({ "written": shown.to_string() }));
            }
            out::line(format_args!(
                "{shown} is written; `ichido config check {shown}` tells what it comes to"
            ))
        }
        Command::Show { file, store, listen, bounds, origin } => {
            let misconfigured = |faults| Exit::Misconfigured { command: "config show", faults };
            let traced = load_traced(file).map_err(misconfigured)?;
            let over = over(store.as_deref(), *listen, bounds).map_err(misconfigured)?;
            let shown = show::shown(&traced.asked, &traced.environment, &over);
            if args.json { out::line(show::json(&shown)) } else { out::say(&show::text(&shown, *origin)) }
        }
        Command::Check { file } => {
            let checked = load(file);
            if args.json {
                out::line(checked.as_ref().map_or_else(Faults::for_programs, as_json))?;
            }
            let config = checked.map_err(|faults| Exit::Misconfigured { command: "config check", faults })?;
            if args.json { Ok(()) } else { out::say(&told(&config)) }
        }
    }
}

/// What flags say over the file, and a variable that stands for one.
fn over(store: Option<&str>, listen: Option<SocketAddr>, bounds: &Bounds) -> Result<Vec<Over>, Faults> {
    let mut faults = Faults::default();
    let resolved = bounds.resolve(Limits::default(), &mut faults);
    faults.or(resolved)?;
    let by_variable = std::env::var(STORE).ok().filter(|url| !url.is_empty());
    let store = match (store, &by_variable) {
        (Some(url), _) => Some(Over::store(url, "the flag --store")),
        (None, Some(url)) => Some(Over::store(url, "the variable ICHIDO_STORE")),
        (None, None) => None,
    };
    let text =
        |path, by, text: Option<String>| text.map(|text| Over { path, value: format!("{text:?}"), by });
    let count = |path, by, text: Option<&String>| text.map(|text| Over { path, value: text.clone(), by });
    let all = [
        store,
        text("serve.listen", "the flag --listen", listen.map(|address| address.to_string())),
        count("serve.connections_max", "the flag --connections-max", bounds.connections_max.as_ref()),
        count(
            "serve.peer_connections_max",
            "the flag --peer-connections-max",
            bounds.peer_connections_max.as_ref(),
        ),
        text("serve.head_timeout", "the flag --head-timeout", bounds.head_timeout.clone()),
        text("serve.body_idle_timeout", "the flag --body-idle-timeout", bounds.body_idle_timeout.clone()),
        text("serve.body_timeout", "the flag --body-timeout", bounds.body_timeout.clone()),
        text("serve.drain_timeout", "the flag --drain-timeout", bounds.drain_timeout.clone()),
    ];
    Ok(all.into_iter().flatten().collect())
}

fn init(file: &Path) -> Result<(), Exit> {
    let shown = file.display();
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    let written = made.and_then(|mut made| {
        made.write_all(DEFAULT_FILE.as_bytes())?;
        made.sync_all()
    });
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Exit::Failed(format!(
            "{shown} is there already, and stays as it is; name another file, or -"
        ))),
        Err(error) => Err(Exit::Failed(format!("{shown} cannot be written: {error}"))),
    }
}

/// Where things are kept, without a secret.
fn kept(config: &Config) -> Option<String> {
    let url = config.store.url.as_deref()?;
    Some(match sqlite_file(url) {
        Some(file) => {
            let whole = std::path::absolute(file);
            format!("SQLite, {}", whole.as_deref().unwrap_or(file).display())
        }
        // The address may hold a password.
        None => "PostgreSQL".to_owned(),
    })
}

/// The terms of every alert, and what single queues have of their own, for programs; in the units of the API.
fn alerts(rules: &Rules) -> (Vec<Value>, Vec<Value>) {
    let alert = |rule: Rule, terms: Option<Terms>| match terms {
        None => json!({ "rule": rule.as_str(), "on": false }),
        Some(Terms { window, least, above }) => json!({
            "rule": rule.as_str(),
            "on": true,
            "window_seconds": window.map(|window| window.as_secs()),
            "least": least,
            "above": above,
            "unit": rule.unit().as_str(),
        }),
    };
    let common = Rule::ALL.into_iter().map(|rule| alert(rule, rules.common(rule))).collect();
    let own = rules.of_queues().into_iter().flat_map(|(queue, own)| {
        own.into_iter().map(move |(rule, terms)| {
            let mut told = alert(rule, terms);
            told["queue"] = json!(queue);
            told
        })
    });
    (common, own.collect())
}

/// The alerts that are switched off, a line each.
fn switched_off(rules: &Rules) -> String {
    let common = Rule::ALL.into_iter().filter(|rule| rules.common(*rule).is_none());
    let common = common.map(|rule| format!("alerts: {} is not watched for\n", rule.as_str()));
    let own = rules.of_queues().into_iter().flat_map(|(queue, own)| {
        let off = own.into_iter().filter(|(_, terms)| terms.is_none());
        off.map(move |(rule, _)| format!("alerts: {} of {queue} is not watched for\n", rule.as_str()))
    });
    common.chain(own).collect()
}

/// What a configuration comes to, for programs.
pub(super) fn as_json(config: &Config) -> Value {
    let worker = &config.worker;
    let queue = |queue: &Queue| {
        json!({
            "name": queue.name,
            "destination": queue.destination,
            "parallelism": queue.parallelism,
            "batch_size": queue.batch_size,
            "retries_max": queue.retry.tries.get() - 1,
            "lease": duration::shown(queue.lease),
            "requeue": queue.requeue,
        })
    };
    let destination = |described: &Described| {
        let (honours_key, keeps_keys_for, repeatable) = match described.guarantee() {
            Some(Guarantee::HonoursKeys { keeps_for }) => (Some(true), Some(keeps_for), Some(false)),
            Some(Guarantee::Repeatable) => (Some(false), None, Some(true)),
            Some(Guarantee::Nothing) => (Some(false), None, Some(false)),
            // A stream honours keys for as long as it says itself.
            None => (Some(true), None, None),
        };
        json!({
            "name": described.name,
            "kind": described.kind,
            "where": described.whereto,
            "honours_key": honours_key,
            "keeps_keys_for": keeps_keys_for.map(duration::shown),
            "repeatable": repeatable,
            "time_out": duration::shown(described.time_out()),
            "can_be_asked": described.can_be_asked(),
        })
    };
    let receiver = |receiver: &Receiver| {
        json!({
            "name": receiver.name,
            "destination": receiver.destination,
            "form": receiver.form.as_str(),
        })
    };
    let (common, of_queues) = alerts(&config.alerts.rules);
    json!({
        "store": kept(config),
        "worker": {
            "name": worker.name,
            "idle_sleep": duration::shown(worker.idle_sleep),
            "stop_within": duration::shown(worker.stop_within),
            "keep_finished": duration::shown(worker.keep_finished),
            "seals_under_a_key": worker.audit_key.is_some(),
        },
        "alerts": common,
        "alerts_of_queues": of_queues,
        "alerts_to": config.alerts.receivers.iter().map(receiver).collect::<Vec<_>>(),
        "queues": config.queues.iter().map(queue).collect::<Vec<_>>(),
        "destinations": config.destinations.iter().map(destination).collect::<Vec<_>>(),
    })
}

/// What a configuration comes to, without a secret.
pub(super) fn told(config: &Config) -> String {
    let mut out = String::new();
    let store = kept(config).unwrap_or_else(|| "none; give one by --store or ICHIDO_STORE".to_owned());
    let worker = &config.worker;
    // A string takes all that is written to it.
    _ = writeln!(
        out,
        "store: {store}\nworker: {}, looks every {} when idle, stops within {}, keeps what has ended for {}, seals the audit trail {}\n",
        worker.name,
        duration::shown(worker.idle_sleep),
        duration::shown(worker.stop_within),
        duration::shown(worker.keep_finished),
        if worker.audit_key.is_some() { "under a key" } else { "without a key" }
    );
    for receiver in &config.alerts.receivers {
        let Receiver { name, destination, form } = receiver;
        _ = writeln!(out, "alerts: told to {name} by {destination}, in the form {}", form.as_str());
    }
    let off = switched_off(&config.alerts.rules);
    out += &off;
    if !config.alerts.receivers.is_empty() || !off.is_empty() {
        out.push('\n');
    }
    let queues = config.queues.iter().map(|queue| {
        [
            queue.name.clone(),
            queue.destination.clone(),
            queue.parallelism.to_string(),
            queue.batch_size.to_string(),
            (queue.retry.tries.get() - 1).to_string(),
            duration::shown(queue.lease),
            if queue.requeue { "yes" } else { "no" }.to_owned(),
        ]
    });
    out += &table(["QUEUE", "DESTINATION", "PARALLELISM", "BATCH", "RETRIES", "LEASE", "REQUEUE"], queues);
    out.push('\n');
    let destinations = config.destinations.iter().map(|described| {
        [
            described.name.clone(),
            described.kind.to_owned(),
            described.whereto.clone(),
            match described.guarantee() {
                Some(Guarantee::HonoursKeys { keeps_for }) => {
                    format!("honours keys for {}", duration::shown(keeps_for))
                }
                Some(Guarantee::Repeatable) => "may be repeated".to_owned(),
                Some(Guarantee::Nothing) => "nothing: what is unknown is parked".to_owned(),
                None => "honours keys for as long as its stream remembers: the worker asks it".to_owned(),
            },
            duration::shown(described.time_out()),
            if described.can_be_asked() { "yes" } else { "no" }.to_owned(),
        ]
    });
    out += &table(["DESTINATION", "KIND", "WHERE", "PROMISES", "TIME-OUT", "ASKED AFTER"], destinations);
    out
}
