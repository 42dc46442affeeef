//! `ichido config`: writes the commented file, and says what is wrong with one.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use ichido_core::retry::Guarantee;

use super::{Config, DEFAULT_FILE, FILE_NAME, load, load_traced, show};
use crate::exit::Exit;
use crate::out;
use crate::store::sqlite_file;
use crate::table::table;

/// The variable that says where things are kept.
const STORE: &str = "ICHIDO_STORE";

/// What `ichido config` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
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
    let text = match &args.command {
        Command::Init { file } if file.as_os_str() == "-" => DEFAULT_FILE.to_owned(),
        Command::Init { file } => init(file)?,
        Command::Show { file, store, origin } => {
            let traced =
                load_traced(file).map_err(|faults| Exit::Misconfigured { command: "config show", faults })?;
            let by_variable = || std::env::var(STORE).ok().filter(|url| !url.is_empty());
            let by_flag = store.clone().map(|url| (url, "the flag --store"));
            let store = by_flag.or_else(|| by_variable().map(|url| (url, "the variable ICHIDO_STORE")));
            show::text(&traced.asked, &traced.environment, store.as_ref(), *origin)
        }
        Command::Check { file } => {
            let config =
                load(file).map_err(|faults| Exit::Misconfigured { command: "config check", faults })?;
            told(&config)
        }
    };
    out::say(&text)
}

fn init(file: &Path) -> Result<String, Exit> {
    let shown = file.display();
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    let written = made.and_then(|mut made| {
        made.write_all(DEFAULT_FILE.as_bytes())?;
        made.sync_all()
    });
    match written {
        Ok(()) => Ok(format!("{shown} is written; `ichido config check {shown}` tells what it comes to\n")),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Exit::Failed(format!(
            "{shown} is there already, and stays as it is; name another file, or -"
        ))),
        Err(error) => Err(Exit::Failed(format!("{shown} cannot be written: {error}"))),
    }
}

/// What a configuration comes to, without a secret.
fn told(config: &Config) -> String {
    let mut out = String::new();
    let url = config.store.url.as_deref();
    let store = match (url, url.and_then(sqlite_file)) {
        (_, Some(file)) => {
            let whole = std::path::absolute(file);
            format!("SQLite, {}", whole.as_deref().unwrap_or(file).display())
        }
        // The address may hold a password.
        (Some(_), None) => "PostgreSQL".to_owned(),
        (None, None) => "none; give one by --store or ICHIDO_STORE".to_owned(),
    };
    let worker = &config.worker;
    // A string takes all that is written to it.
    _ = writeln!(
        out,
        "store: {store}\nworker: {}, looks every {:?} when idle, stops within {:?}, keeps what has ended for {:?}, seals the audit trail {}\n",
        worker.name,
        worker.idle_sleep,
        worker.stop_within,
        worker.keep_finished,
        if worker.audit_key.is_some() { "under a key" } else { "without a key" }
    );
    let queues = config.queues.iter().map(|queue| {
        [
            queue.name.clone(),
            queue.destination.clone(),
            queue.parallelism.to_string(),
            queue.batch_size.to_string(),
            (queue.retry.tries.get() - 1).to_string(),
            format!("{:?}", queue.lease),
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
                Some(Guarantee::HonoursKeys { keeps_for }) => format!("honours keys for {keeps_for:?}"),
                Some(Guarantee::Repeatable) => "may be repeated".to_owned(),
                Some(Guarantee::Nothing) => "nothing: what is unknown is parked".to_owned(),
                None => "honours keys for as long as its stream remembers: the worker asks it".to_owned(),
            },
            format!("{:?}", described.time_out()),
            if described.can_be_asked() { "yes" } else { "no" }.to_owned(),
        ]
    });
    out += &table(["DESTINATION", "KIND", "WHERE", "PROMISES", "TIME-OUT", "ASKED AFTER"], destinations);
    out
}
