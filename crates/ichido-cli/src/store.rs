//! Opens the store for a command.

use std::sync::Mutex;
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_server::config::CONNECTIONS_DEFAULT;
use ichido_server::target::StoreTarget;
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
pub(crate) async fn open_existing(found: &StoreTarget) -> Result<Store, Exit> {
    found.check_exists().map_err(Exit::Unreachable)?;
    open(&found.url).await
}

/// Opens a store, and creates one that was named.
pub(crate) async fn open_or_create(found: &StoreTarget) -> Result<Store, Exit> {
    if found.is_named() { open(&found.url).await } else { open_existing(found).await }
}

/// Opens a store with at most `max_connections` connections.
pub(crate) async fn open_with(url: &str, max_connections: u32) -> Result<Store, Exit> {
    let store = Store::open(url, max_connections).await.map_err(|error| {
        let help = match error {
            StoreError::Migration(_) => {
                "; it is not a store of this version: name another one with --store, or make a new one"
            }
            _ => "",
        };
        let text = format!("cannot open the store: {}{help}", error.with_causes());
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
