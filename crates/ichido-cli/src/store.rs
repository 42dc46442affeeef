//! Opening the store for a command.

use std::error::Error as _;

use ichido_store::Store;

use crate::exit::Exit;

/// The most connections to PostgreSQL. Writes are batched, so that few are busy at once.
pub(crate) const CONNECTIONS_MAX: u32 = 16;

/// Opens a store, or says why it cannot be. The address may hold a password, and is not repeated.
pub(crate) async fn open(url: &str) -> Result<Store, Exit> {
    open_with(url, CONNECTIONS_MAX).await
}

/// The same, with at most so many connections.
pub(crate) async fn open_with(url: &str, connections_max: u32) -> Result<Store, Exit> {
    Store::open(url, connections_max).await.map_err(|error| {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Exit::Failed(format!("the store cannot be opened: {error}{cause}"))
    })
}
