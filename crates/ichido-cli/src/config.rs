//! `ichido config`: writes the commented file, shows effective settings, and reports errors.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use ichido_core::settings::{ConfigError, ConfigErrors};
use ichido_http::server::bounds::Bounds;
use ichido_http::server::limits::Limits;
use ichido_server::config::show::Over;
use ichido_server::config::{FILE_NAME, commented_file, json_schema, load, load_traced, show, summary};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::out;

/// The environment variable for the store's URL.
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
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = ichido_http::server::bounds::address)]
        listen: Option<SocketAddr>,

        #[command(flatten)]
        bounds: Box<Bounds>,

        /// Say beside each who said it: a line of the file, a variable, a flag, or nobody
        #[arg(long)]
        origin: bool,
    },
    /// Print the JSON Schema of a configuration, for editors
    Schema,
    /// Say everything that is wrong with a configuration, or what it comes to
    Check {
        /// Which one
        #[arg(value_name = "FILE", default_value = FILE_NAME, env = "ICHIDO_CONFIG")]
        file: PathBuf,
    },
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Exit> {
    match &args.command {
        // The file is printed unchanged, also with `--json`.
        Command::Init { file } if file.as_os_str() == "-" => out::print(&commented_file()),
        Command::Init { file } => {
            init(file)?;
            let shown = file.display();
            if args.json {
                return out::print_line(json!({ "written": shown.to_string() }));
            }
            out::print_line(format_args!(
                "{shown} is written; `ichido config check {shown}` tells what it comes to"
            ))
        }
        Command::Show { file, store, listen, bounds, origin } => {
            let traced = load_traced(file)?;
            let overrides = overrides(store.as_deref(), *listen, bounds)?;
            let shown = traced.shown(&overrides);
            if args.json {
                out::print_line(show::json(&shown))
            } else {
                out::print(&show::text(&shown, *origin))
            }
        }
        Command::Schema => out::print_line(format_args!("{:#}", json_schema())),
        Command::Check { file } => {
            let checked = load(file);
            if args.json {
                out::print_line(checked.as_ref().map_or_else(to_json, summary::json))?;
            }
            let config = checked?;
            if args.json { Ok(()) } else { out::print(&summary::text(&config)) }
        }
    }
}

/// Returns the settings that flags, or a variable in place of a flag, override.
fn overrides(
    store: Option<&str>,
    listen: Option<SocketAddr>,
    bounds: &Bounds,
) -> Result<Vec<Over>, ConfigErrors> {
    let mut faults = ConfigErrors::default();
    let resolved = bounds.resolve(Limits::default(), &mut faults);
    faults.or(Some(resolved))?;
    let by_variable = std::env::var(STORE).ok().filter(|url| !url.is_empty());
    let store = match (store, &by_variable) {
        (Some(url), _) => Some(Over::store(url, "the flag --store")),
        (None, Some(url)) => Some(Over::store(url, "the variable ICHIDO_STORE")),
        (None, None) => None,
    };
    let listen = listen.map(|address| address.to_string());
    let flags = [
        ("listen", &listen),
        ("connections_max", &bounds.connections_max),
        ("peer_connections_max", &bounds.peer_connections_max),
        ("head_timeout", &bounds.head_timeout),
        ("body_idle_timeout", &bounds.body_idle_timeout),
        ("body_timeout", &bounds.body_timeout),
        ("drain_timeout", &bounds.drain_timeout),
    ];
    let flags = flags.into_iter().filter_map(|(name, text)| Some(Over::serve(name, text.as_deref()?)));
    Ok(store.into_iter().chain(flags).collect())
}

fn init(file: &Path) -> Result<(), Exit> {
    let shown = file.display();
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    let written = made.and_then(|mut made| {
        made.write_all(commented_file().as_bytes())?;
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

/// Renders errors as JSON, each with its location.
fn to_json(faults: &ConfigErrors) -> Value {
    let problems: Vec<Value> =
        faults.0.iter().map(|ConfigError { place, what }| json!({ "place": place, "what": what })).collect();
    json!({ "problems": problems })
}
