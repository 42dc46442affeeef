//! `ichido config`: writes the commented file, shows effective settings, and reports errors.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use ichido_core::settings::{ConfigError, ConfigErrors};
use ichido_http::server::bounds::ConnectionLimits;
use ichido_http::server::limits::Limits;
use ichido_server::config::show::Override;
use ichido_server::config::{FILE_NAME, commented_file, json_schema, load, load_traced, show, summary};
use ichido_server::environment;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::out;
use crate::serve::store_url;

/// The environment variable for the store's URL.
const STORE: &str = "ICHIDO_STORE";

/// Arguments of `ichido config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a configuration file with every setting explained
    Init {
        /// File to create, never overwritten; - is standard output
        #[arg(value_name = "FILE", default_value = FILE_NAME)]
        file: PathBuf,
    },
    /// Show all settings in effect: file, environment and defaults
    Show {
        #[command(flatten)]
        file: ConfigFile,

        #[arg(long, value_name = "URL", help = "Store URL, as for other commands [env: ICHIDO_STORE]")]
        store: Option<String>,

        /// Listen address, as for `ichido serve`
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = ichido_http::server::bounds::address)]
        listen: Option<SocketAddr>,

        #[command(flatten)]
        bounds: Box<ConnectionLimits>,

        /// Show where each value comes from: file, variable, flag, default
        #[arg(long)]
        origin: bool,
    },
    /// Print the JSON Schema of the configuration, for editors
    Schema,
    /// Check a configuration: print all errors, or a summary
    Check {
        #[command(flatten)]
        file: ConfigFile,
    },
}

/// The configuration file, with or without the flag of other commands.
#[derive(Debug, clap::Args)]
struct ConfigFile {
    /// Configuration file [default: ichido.toml]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The same, as for other commands
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    fn path(&self) -> &Path {
        self.file.as_deref().or(self.config.as_deref()).unwrap_or(Path::new(FILE_NAME))
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Exit> {
    match &args.command {
        // The file is printed unchanged, also with `--json`.
        Command::Init { file } if file.as_os_str() == "-" => out::print(&commented_file()),
        Command::Init { file } => {
            init(file)?;
            let shown = file.display();
            let text = format_args!("wrote {shown}; run `ichido config check {shown}` to check it");
            out::print_either(args.json, json!({ "written": shown.to_string() }), text)
        }
        Command::Show { file, store, listen, bounds, origin } => {
            let traced = load_traced(file.path())?;
            let overrides = overrides(store.as_deref(), *listen, bounds)?;
            let shown = traced.display(&overrides);
            out::print_either(args.json, show::json(&shown), show::text(&shown, *origin).trim_end())
        }
        Command::Schema => out::print_line(format_args!("{:#}", json_schema())),
        Command::Check { file } => {
            // A file that `serve` would refuse is not valid.
            let checked =
                load(file.path()).and_then(|config| store_url(None, &config, file.path()).map(|_| config));
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
    bounds: &ConnectionLimits,
) -> Result<Vec<Override>, ConfigErrors> {
    let mut faults = ConfigErrors::default();
    let resolved = bounds.resolve(Limits::default(), &mut faults);
    faults.or(Some(resolved))?;
    let by_variable = environment::variable(STORE).ok().filter(|url| !url.is_empty());
    let store = match (store, &by_variable) {
        (Some(url), _) => Some(Override::store(url, "the flag --store")),
        (None, Some(url)) => Some(Override::store(url, &environment::origin(STORE))),
        (None, None) => None,
    };
    let listen = listen.map(|address| address.to_string());
    let flags = [
        ("listen", &listen),
        ("max_connections", &bounds.max_connections),
        ("max_peer_connections", &bounds.max_peer_connections),
        ("head_timeout", &bounds.head_timeout),
        ("body_idle_timeout", &bounds.body_idle_timeout),
        ("body_timeout", &bounds.body_timeout),
        ("drain_timeout", &bounds.drain_timeout),
    ];
    let flags = flags.into_iter().filter_map(|(name, text)| Some(Override::serve(name, text.as_deref()?)));
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
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Exit::Failed(format!("{shown} already exists and was not changed; pass another file, or -")))
        }
        Err(error) => Err(Exit::Failed(format!("cannot write {shown}: {error}"))),
    }
}

/// Renders errors as JSON, each with its location.
fn to_json(faults: &ConfigErrors) -> Value {
    let problems: Vec<Value> =
        faults.0.iter().map(|ConfigError { place, what }| json!({ "place": place, "what": what })).collect();
    json!({ "problems": problems })
}
