//! Opening the store for a command.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use ichido_core::settings::Faults;
use ichido_core::sync::lock;
use ichido_server::config::{self, CONNECTIONS_DEFAULT, Config, DEFAULT_URL, FILE_NAME, sqlite_file};
use ichido_store::Store;
use ichido_store::error::StoreError;

use crate::exit::Exit;

/// How long the end of a command waits for its stores to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// What this process has opened, to be closed when its command has ended.
static OPENED: Mutex<Vec<Store>> = Mutex::new(Vec::new());

/// Opens a store, or says why it cannot be. The address may hold a password, and is not repeated.
pub(crate) async fn open(url: &str) -> Result<Store, Exit> {
    open_with(url, CONNECTIONS_DEFAULT).await
}

/// Opens a store that is there. Who looks after letters or reads the trail means one that has some: a file that is not there was
/// mistyped, and a new one would answer that all is well.
pub(crate) async fn open_existing(url: &str) -> Result<Store, Exit> {
    check_exists(url).map_err(Exit::Failed)?;
    open(url).await
}

/// Whether a store's file is there, where it is one; or what to say.
pub(crate) fn check_exists(url: &str) -> Result<(), String> {
    // Where nobody may say whether it is there, opening it says why.
    if let Some(file) = sqlite_file(url).filter(|file| matches!(file.try_exists(), Ok(false))) {
        let whole = std::path::absolute(file);
        let shown = whole.as_deref().unwrap_or(file).display();
        return Err(format!(
            "there is no store at {shown}, and none was made; mend the path: after --store and in ICHIDO_STORE it counts from the folder \
             that you are in, in a configuration from its own folder"
        ));
    }
    Ok(())
}

/// Opens a store with at most so many connections.
pub(crate) async fn open_with(url: &str, connections_max: u32) -> Result<Store, Exit> {
    let store = Store::open(url, connections_max).await.map_err(|error| {
        let text = format!("the store cannot be opened: {}", error.in_full());
        match error {
            StoreError::Busy | StoreError::Unavailable(_) | StoreError::Full => Exit::Unreachable(text),
            _ => Exit::Failed(text),
        }
    })?;
    lock(&OPENED).push(store.clone());
    Ok(store)
}

/// Closes what was opened, so that an SQLite file that is copied after us is whole without its log.
pub(crate) async fn close() {
    let opened = std::mem::take(&mut *lock(&OPENED));
    for store in opened {
        store.close(CLOSE_WITHIN).await;
    }
}

/// Which store a command is about: what the flag or the environment says, then the configuration, then the file that a server makes
/// by itself.
pub(crate) fn resolve_url(store: Option<String>, config: Option<PathBuf>) -> Result<String, Faults> {
    if let Some(url) = store {
        return Ok(url);
    }
    let config = load_config(config)?;
    Ok(config.and_then(|config| config.store.url).unwrap_or_else(|| DEFAULT_URL.to_owned()))
}

/// The configuration that was named, or the one that is there.
pub(crate) fn load_config(named: Option<PathBuf>) -> Result<Option<Config>, Faults> {
    let here = || Path::new(FILE_NAME).exists().then(|| PathBuf::from(FILE_NAME));
    named.or_else(here).map(|path| config::load(&path)).transpose()
}
