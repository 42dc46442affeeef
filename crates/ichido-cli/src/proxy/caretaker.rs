//! Upkeep of the ledger: expired keys are forgotten, by one adapter at a time (SPEC A5).

use std::time::Duration;

use ichido_store::Store;
use ichido_store::error::StoreError;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

/// How often to look.
const EVERY: Duration = Duration::from_secs(30);
/// For how long a caretaker is elected: another one takes over when two of its looks fail to come.
const ELECTED_FOR: Duration = Duration::from_secs(75);
/// How many keys are forgotten in one statement, so that none holds its locks for long.
const SWEEP_MAX: u32 = 500;
/// How many statements in one look: a backlog is worked off over several.
const SWEEPS_MAX: u32 = 20;

/// Looks after the store until it is dropped.
pub(crate) async fn run(store: Store) {
    let node = Uuid::now_v7();
    let mut look = interval(EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        match run_once(&store, node).await {
            Ok(0) => {}
            Ok(forgotten) => tracing::info!(forgotten, "expired keys were forgotten"),
            Err(error) => tracing::warn!(%error, "expired keys could not be forgotten; trying again later"),
        }
    }
}

/// One look; answers how many keys were forgotten. Whoever is not elected forgets none.
async fn run_once(store: &Store, node: Uuid) -> Result<u64, StoreError> {
    let mut forgotten = 0;
    if !store.caretaker_claim(node, ELECTED_FOR).await? {
        return Ok(0);
    }
    for _ in 0..SWEEPS_MAX {
        let swept = store.key_sweep(SWEEP_MAX).await?;
        forgotten += swept;
        if swept < u64::from(SWEEP_MAX) {
            break;
        }
    }
    Ok(forgotten)
}
