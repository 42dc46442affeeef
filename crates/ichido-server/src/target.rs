//! The server or store that a command works on: one rule for all commands.
//!
//! Guarantee: a flag wins over the environment, which wins over the configuration, which wins over `./ichido.db`. A store that was
//! found and not named is reached through the server that runs on it. Such a server never gets a token: if it requires one or
//! cannot be reached, the store itself is used. Nothing is created here, and no text contains a password.

use std::path::{Path, PathBuf};

use ichido_core::settings::ConfigErrors;

use crate::config::{self, Config, DEFAULT_URL, FILE_NAME, LISTEN_DEFAULT, sqlite_file};
use crate::server_file::local_address;
use crate::{environment, server_file};

/// The variables that name a server or a store.
const SERVER: &str = "ICHIDO_SERVER";
const STORE: &str = "ICHIDO_STORE";

/// The rule, for the help of commands.
pub const HELP: &str = "\
Server or store: --server or --store, else ICHIDO_SERVER or ICHIDO_STORE, else `[store] url` in ichido.toml, else ./ichido.db. If no flag \
or variable names it, a server that runs on that store is used, unless it requires a token. Commands without --server use the store.";

/// What a command works on.
#[derive(Debug)]
pub enum Target {
    /// A server.
    Server {
        /// Its URL.
        url: String,
        /// Whether the caller named it. Only such a server gets the caller's token.
        is_named: bool,
    },
    /// A store.
    Store(Box<StoreTarget>),
}

/// A store, and how it was found.
#[derive(Debug)]
pub struct StoreTarget {
    /// Its URL, which may contain a password.
    pub url: String,
    /// The configuration, if there is one.
    pub config: Option<Config>,
    config_path: Option<PathBuf>,
    origin: Origin,
    /// Whether the command could use a server instead.
    takes_server: bool,
}

/// What names a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A flag or a variable of the caller.
    Named,
    Config,
    Default,
}

impl Target {
    /// Finds what a command works on. Also returns a line that says so, unless the caller named it.
    pub async fn find(
        server: Option<&str>,
        store: Option<&str>,
        config: Option<&Path>,
    ) -> Result<(Self, Option<String>), ConfigErrors> {
        if let (Some(_), Some(_)) = (server, store) {
            let what = "both a server and a store are given; remove --server or --store";
            return Err(ConfigErrors::one("--server", what));
        }
        let by_variable = if server.or(store).is_none() { variable(SERVER) } else { None };
        if by_variable.is_some() && variable(STORE).is_some() {
            let what = "both a server and a store are given; pass --server or --store, or unset ICHIDO_SERVER or ICHIDO_STORE";
            return Err(ConfigErrors::one(SERVER, what));
        }
        if let Some(url) = server.map(str::to_owned).or(by_variable) {
            return Ok((Self::Server { url, is_named: true }, None));
        }
        let mut found = StoreTarget { takes_server: true, ..StoreTarget::find(store, config)? };
        if found.config_path.is_none() {
            (found.config, found.config_path) = load_config(config)?;
        }
        let mut note = found.note();
        if matches!(found.origin, Origin::Config | Origin::Default)
            && let Some(server) = server_file::find(&found.url)
        {
            let (url, shown) = (&server.url, found.shown());
            match server.check().await {
                Ok(()) => {
                    let note = format!("using {url}, the server of {shown}");
                    return Ok((Self::Server { url: server.url, is_named: false }, Some(note)));
                }
                Err(why) => note = Some(format!("using {shown} directly, not its server at {url}: {why}")),
            }
        }
        Ok((Self::Store(Box::new(found)), note))
    }
}

impl StoreTarget {
    /// Finds the store of a command that works on the store itself.
    ///
    /// A configuration is read only if it is needed to find the store.
    pub fn find(store: Option<&str>, config: Option<&Path>) -> Result<Self, ConfigErrors> {
        if let Some(url) = store.map(str::to_owned).or_else(|| variable(STORE)) {
            return Ok(url.into());
        }
        let (config, config_path) = load_config(config)?;
        let (url, origin) = match config.as_ref().and_then(|config| config.store.url.clone()) {
            Some(url) => (url, Origin::Config),
            None => (DEFAULT_URL.to_owned(), Origin::Default),
        };
        Ok(Self { url, config, config_path, origin, takes_server: false })
    }

    /// Whether a flag, a variable or the configuration names it.
    pub fn is_named(&self) -> bool {
        self.origin != Origin::Default
    }

    /// Describes which store was found; `None` if the caller named it.
    pub fn note(&self) -> Option<String> {
        match (self.origin, &self.config_path) {
            (Origin::Named, _) => None,
            // The error says where it was looked for.
            _ if self.check_exists().is_err() => None,
            (Origin::Config, Some(path)) => {
                Some(format!("using {}, named by {}", self.shown(), path.display()))
            }
            (Origin::Config | Origin::Default, _) => Some(format!("using {}", self.shown())),
        }
    }

    /// Describes the configuration that new messages are checked with.
    pub fn config_note(&self) -> String {
        match &self.config_path {
            Some(path) => format!("queues and schemas are those of {}", path.display()),
            None => "no configuration was found, so no schema is checked".to_owned(),
        }
    }

    /// Checks that the file of an SQLite store exists.
    pub fn check_exists(&self) -> Result<(), String> {
        // If permissions hide whether it exists, opening it reports why.
        let Some(file) = sqlite_file(&self.url).filter(|file| matches!(file.try_exists(), Ok(false))) else {
            return Ok(());
        };
        let whole = std::path::absolute(file);
        let shown = whole.as_deref().unwrap_or(file).display();
        Err(match self.origin {
            Origin::Default => {
                let (wanted, by) = if self.takes_server {
                    ("server or store", "--server, --store, ICHIDO_SERVER, ICHIDO_STORE")
                } else {
                    ("store", "--store, ICHIDO_STORE")
                };
                format!(
                    "no {wanted} found: {shown} does not exist; start a server here with `ichido serve`, which creates it, or name a {wanted} with \
                     {by} or `[store] url` in {FILE_NAME}"
                )
            }
            Origin::Named | Origin::Config => format!(
                "no store at {shown}, and none was created; fix the path: --store and ICHIDO_STORE are relative to the current \
                 folder, a path in a configuration file to that file's folder"
            ),
        })
    }

    /// Returns the path of an SQLite store; a PostgreSQL URL may contain a password.
    fn shown(&self) -> String {
        let Some(file) = sqlite_file(&self.url) else { return "the PostgreSQL store".to_owned() };
        let here = if file.parent().is_some_and(|folder| folder.as_os_str().is_empty()) { "./" } else { "" };
        format!("{here}{}", file.display())
    }
}

impl From<String> for StoreTarget {
    /// A store that the caller named.
    fn from(url: String) -> Self {
        Self { url, config: None, config_path: None, origin: Origin::Named, takes_server: false }
    }
}

/// Returns the URL of the server here: the one that runs on the store, else the one that a configuration sets.
pub fn server_url(config: Option<&Path>) -> Result<String, String> {
    let (config, _) = load_config(config).map_err(|faults| faults.to_string())?;
    let listen = config.as_ref().map_or(LISTEN_DEFAULT, |config| config.serve.listen);
    let scheme = config.as_ref().map_or("http", |config| config.serve.scheme());
    let store = config.and_then(|config| config.store.url).unwrap_or_else(|| DEFAULT_URL.to_owned());
    match server_file::find(&store) {
        Some(running) => Ok(running.url),
        None if listen.port() == 0 => Err(
            "the configuration sets a free port, and no server of its store runs here; start it, or pass it with --server".to_owned(),
        ),
        None => Ok(format!("{scheme}://{}", local_address(listen))),
    }
}

/// Loads the named configuration, or `ichido.toml` if it exists, for a command that delivers nothing and needs no secrets.
pub fn load_config(named: Option<&Path>) -> Result<(Option<Config>, Option<PathBuf>), ConfigErrors> {
    let here = Path::new(FILE_NAME);
    let Some(path) = named.or_else(|| here.exists().then_some(here)) else { return Ok((None, None)) };
    Ok((Some(config::load_traced(path)?.config), Some(path.to_owned())))
}

fn variable(name: &str) -> Option<String> {
    environment::variable(name).ok().filter(|value| !value.is_empty())
}
