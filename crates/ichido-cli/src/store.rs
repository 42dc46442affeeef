//! Opens the store for a command.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use ichido_core::settings::ConfigErrors;
use ichido_core::sync::lock;
use ichido_server::config::{self, CONNECTIONS_DEFAULT, Config, DEFAULT_URL, FILE_NAME, sqlite_file};
use ichido_store::Store;
use ichido_store::error::StoreError;

use crate::exit::Exit;

/// How long a command waits at its end for its stores to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// The stores that this process has opened; they are closed when the command ends.
static OPENED: Mutex<Vec<Store>> = Mutex::new(Vec::new());

/// Opens a store. The error does not repeat the URL, which may contain a password.
pub(crate) async fn open(url: &str) -> Result<Store, Exit> {
    open_with(url, CONNECTIONS_DEFAULT).await
}

/// Opens a store that must already exist.
///
/// Commands on dead letters or on the audit trail expect data. A missing file is a typing error, and a new, empty
/// store would report that all is well.
pub(crate) async fn open_existing(url: &str) -> Result<Store, Exit> {
    check_exists(url).map_err(Exit::Failed)?;
    open(url).await
}

/// Checks that the file of an SQLite store exists.
pub(crate) fn check_exists(url: &str) -> Result<(), String> {
    // If permissions hide whether it exists, opening it reports why.
    if let Some(file) = sqlite_file(url).filter(|file| matches!(file.try_exists(), Ok(false))) {
        let whole = std::path::absolute(file);
        let shown = whole.as_deref().unwrap_or(file).display();
        return Err(format!(
            "no store at {shown}, and none was created; fix the path: --store and ICHIDO_STORE are relative to the current \
             folder, a path in a configuration file to that file's folder"
        ));
    }
    Ok(())
}

/// Opens a store with at most `max_connections` connections.
pub(crate) async fn open_with(url: &str, max_connections: u32) -> Result<Store, Exit> {
    let store = Store::open(url, max_connections).await.map_err(|error| {
        let text = format!("cannot open the store: {}", error.with_causes());
        match error {
            StoreError::Busy | StoreError::Unavailable(_) | StoreError::Full => Exit::Unreachable(text),
            _ => Exit::Failed(text),
        }
    })?;
    lock(&OPENED).push(store.clone());
    Ok(store)
}

/// Closes every opened store.
///
/// An SQLite file that is copied afterwards is complete without its log.
pub(crate) async fn close() {
    let opened = std::mem::take(&mut *lock(&OPENED));
    for store in opened {
        store.close(CLOSE_WITHIN).await;
    }
}

/// Returns the URL of the store that a command works on.
///
/// The flag or the environment wins, then the configuration, then the file that a server creates by default.
pub(crate) fn resolve_url(store: Option<String>, config: Option<PathBuf>) -> Result<String, ConfigErrors> {
    if let Some(url) = store {
        return Ok(url);
    }
    let config = load_config(config)?;
    Ok(config.and_then(|config| config.store.url).unwrap_or_else(|| DEFAULT_URL.to_owned()))
}

/// Loads the named configuration, or `ichido.toml` if it exists.
pub(crate) fn load_config(named: Option<PathBuf>) -> Result<Option<Config>, ConfigErrors> {
    let here = || Path::new(FILE_NAME).exists().then(|| PathBuf::from(FILE_NAME));
    named.or_else(here).map(|path| config::load(&path)).transpose()
}
