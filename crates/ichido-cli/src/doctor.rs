//! `ichido doctor`: checks the database and the configuration, and explains fixes.
//!
//! Guarantee: it only reads. It writes nothing and migrates no schema. Every finding says how to fix it. A check that
//! could not be made is reported and is not a finding. For other users' transactions it shows the owner, not the
//! statement.
//!
//! Start at [`run`]; `evaluate` interprets what was read, without I/O.

mod backlog;
mod disk;
mod evaluate;
mod queues;
mod report;

use std::path::Path;

use ichido_http::clock;
use ichido_server::config::{CONNECTIONS_DEFAULT, Config, sqlite_file, store_url};
use ichido_server::target::{StoreTarget, load_config};
use ichido_store::diagnostics;
use ichido_store::error::StoreError;

use crate::exit::Exit;
use crate::out;
use crate::target::StoreArgs;
use report::DoctorCheck;

const AFTER_HELP: &str = "\
For an SQLite store it also checks the free disk space; for PostgreSQL that cannot be seen from here.
Parked messages and firing alerts are findings; dead letters and overdue messages are warnings.
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
    #[command(flatten)]
    store: StoreArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the checks and prints the report.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let (config, mut checks) = configuration(args.store.config.as_deref());
    let found = args.store.find();
    let looked = if let Ok(store) = found {
        store_url::check(&store.url).map_err(|why| Exit::invalid("--store", why))?;
        inspect(&Inspection { store, config }, &mut checks).await
    } else {
        let why = "the configuration cannot be read, so the store is unknown";
        checks.push(DoctorCheck::unknown("store", why));
        Ok(())
    };
    out::print(&if args.json { report::render_json(&checks) } else { report::render_text(&checks) })?;
    looked?;
    if checks.iter().any(DoctorCheck::is_finding) { Err(Exit::Findings) } else { Ok(()) }
}

/// Checks the configuration. Secrets that are missing here are a warning: only servers and workers need them.
fn configuration(named: Option<&Path>) -> (Option<Config>, Vec<DoctorCheck>) {
    let (config, path) = match load_config(named) {
        Ok(loaded) => loaded,
        Err(faults) => return (None, evaluate::configuration(Err(&faults))),
    };
    let mut checks = evaluate::configuration(Ok(config.as_ref()));
    let missing = path.and_then(|path| ichido_server::config::load(&path).err());
    checks.extend(missing.map(|faults| {
        let help = "set them where a server or worker starts; commands that deliver nothing do not need them";
        DoctorCheck::warning("secrets", faults.to_string().replace('\n', ";"), help)
    }));
    (config, checks)
}

/// What to inspect.
struct Inspection {
    store: StoreTarget,
    config: Option<Config>,
}

/// Inspects the database. An error means that it could not be read.
async fn inspect(inspection: &Inspection, checks: &mut Vec<DoctorCheck>) -> Result<(), Exit> {
    let looked = inspect_database(inspection, checks).await;
    // Always: a full disk may be why the database could not be read.
    checks.extend(
        sqlite_file(&inspection.store.url)
            .filter(|file| file.exists())
            .map(|file| evaluate::disk(disk::disk_space(file))),
    );
    looked
}

async fn inspect_database(inspection: &Inspection, checks: &mut Vec<DoctorCheck>) -> Result<(), Exit> {
    let seen = match inspection.store.check_exists() {
        Ok(()) => diagnostics::inspect(&inspection.store.url, clock::now, evaluate::MAX_OPEN_FOR)
            .await
            .map_err(|error| {
                (error.with_causes(), matches!(error, StoreError::Refused(_) | StoreError::Corrupt { .. }))
            }),
        Err(why) => Err((why, false)),
    };
    match seen {
        Ok(diagnosed) => {
            let config = inspection.config.as_ref();
            let max_connections = config.map_or(CONNECTIONS_DEFAULT, |config| config.store.max_connections);
            checks.extend(evaluate::diagnostics(&diagnosed, max_connections));
            checks.extend(queues::evaluate(&diagnosed.queues, config));
            checks.extend(diagnosed.backlog.iter().flat_map(backlog::evaluate));
            Ok(())
        }
        Err((why, was_reached)) => {
            let help =
                if inspection.store.is_named() { evaluate::UNREACHABLE_HELP } else { evaluate::START_HELP };
            checks.push(DoctorCheck::finding("store", why.clone(), help));
            if was_reached { Ok(()) } else { Err(Exit::Unreachable(why)) }
        }
    }
}
