//! Maintains the counters per minute and per hour, a limited amount per round.

use ichido_store::Store;
use ichido_store::error::StoreError;

/// The most hours rolled up, and minutes and hours deleted, per round.
const MAX_STATEMENTS: usize = 10;

/// Rolls up finished hours, then deletes what is no longer kept. The node with the ledger's task does it.
pub(crate) async fn maintain(store: &Store) -> Result<(), StoreError> {
    for _ in 0..MAX_STATEMENTS {
        if store.series().roll_up().await? == 0 {
            break;
        }
    }
    for _ in 0..MAX_STATEMENTS {
        if store.series().sweep().await? == 0 {
            break;
        }
    }
    Ok(())
}
