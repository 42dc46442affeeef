//! `ichido doctor`: checks the database and the configuration, and explains fixes.
//!
//! Guarantee: it only reads. It writes nothing and migrates no schema. Every finding says how to fix it. A check that
//! could not be made is reported and is not a finding. For other users' transactions it shows the owner, not the
//! statement.
//!
//! Start at [`run`]; `evaluate` interprets what was read, without I/O.

mod disk;
mod evaluate;
mod queues;
mod report;

use std::path::PathBuf;

use ichido_core::settings::ConfigErrors;
use ichido_http::clock;
use ichido_server::config::Config;
use ichido_server::config::{CONNECTIONS_DEFAULT, DEFAULT_URL, sqlite_file, store_url};
use ichido_store::diagnostics;
use ichido_store::error::StoreError;

use crate::exit::Exit;
use crate::out;
use crate::store::{check_exists, load_config};
use report::DoctorCheck;

const AFTER_HELP: &str = "\
For an SQLite store it also checks the free disk space; for PostgreSQL that cannot be seen from here.
It does not check that messages match their history: use `ichido audit verify` for that.

Exit code: 0 without findings or with warnings only, 1 for findings, 2 for a usage or configuration error, and 3 if the database cannot \
be reached.

Examples:
  ichido doctor
  ichido doctor --store postgres://ichido@db/ichido --json";

/// Arguments of `ichido doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Configuration file to check [default: ichido.toml, if present]
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    /// Store URL: sqlite:FILE or postgres://… [default: from the configuration, else sqlite:ichido.db]
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the checks and prints the report.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let config = load_config(args.config);
    let mut checks = evaluate::configuration(config.as_ref().map(Option::as_ref));
    let looked = if let Some(inspection) = inspection(args.store, config) {
        inspect(&inspection?, &mut checks).await
    } else {
        let why = "the configuration cannot be read, so the store is unknown";
        checks.push(DoctorCheck::unknown("store", why));
        Ok(())
    };
    out::print(&if args.json { report::render_json(&checks) } else { report::render_text(&checks) })?;
    looked?;
    if checks.iter().any(DoctorCheck::is_finding) { Err(Exit::Findings) } else { Ok(()) }
}

/// Returns the store and the connections of each process.
///
/// Returns `None` if only an unreadable configuration names the store.
fn inspection(
    store: Option<String>,
    config: Result<Option<Config>, ConfigErrors>,
) -> Option<Result<Inspection, Exit>> {
    let has_config = matches!(config, Ok(Some(_)));
    let (configured, max_connections) = match config {
        Ok(Some(config)) => (config.store.url, config.store.max_connections),
        Err(_) if store.is_none() => return None,
        Ok(None) | Err(_) => (None, CONNECTIONS_DEFAULT),
    };
    let url = store.or(configured).unwrap_or_else(|| DEFAULT_URL.to_owned());
    let checked = store_url::check(&url).map_err(|why| Exit::invalid("--store", why));
    Some(checked.map(|()| Inspection { url, max_connections, has_config }))
}

/// What to inspect.
struct Inspection {
    /// May contain a password.
    url: String,
    max_connections: u32,
    /// Whether a configuration was checked.
    has_config: bool,
}

/// Inspects the database. An error means that it could not be read.
async fn inspect(inspection: &Inspection, checks: &mut Vec<DoctorCheck>) -> Result<(), Exit> {
    let looked = inspect_database(inspection, checks).await;
    // Always: a full disk may be why the database could not be read.
    checks.extend(
        sqlite_file(&inspection.url)
            .filter(|file| file.exists())
            .map(|file| evaluate::disk(disk::disk_space(file))),
    );
    looked
}

async fn inspect_database(inspection: &Inspection, checks: &mut Vec<DoctorCheck>) -> Result<(), Exit> {
    let seen = match check_exists(&inspection.url) {
        Ok(()) => {
            diagnostics::inspect(&inspection.url, clock::now, evaluate::MAX_OPEN_FOR).await.map_err(|error| {
                (error.with_causes(), matches!(error, StoreError::Refused(_) | StoreError::Corrupt { .. }))
            })
        }
        Err(why) => Err((why, false)),
    };
    match seen {
        Ok(diagnosed) => {
            checks.extend(evaluate::diagnostics(&diagnosed, inspection.max_connections));
            checks.extend(queues::evaluate(&diagnosed.queues, inspection.has_config));
            Ok(())
        }
        Err((why, was_reached)) => {
            checks.push(DoctorCheck::finding("store", why.clone(), evaluate::UNREACHABLE_HELP));
            if was_reached { Ok(()) } else { Err(Exit::Unreachable(why)) }
        }
    }
}
