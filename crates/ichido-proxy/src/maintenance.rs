//! Upkeep of the ledger: what has expired is forgotten, by one adapter at a time (SPEC A5), and what a crash left behind is brought
//! before a person, though nobody asks for it again (SPEC F2).

use std::time::Duration;

use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::node::Duty;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

/// How often to look.
const EVERY: Duration = Duration::from_secs(30);
/// For how long a caretaker is elected: another one takes over when two of its looks fail to come.
const ELECTED_FOR: Duration = Duration::from_secs(75);
/// How many rows are changed in one statement, so that none holds its locks for long.
const ROWS_MAX: u32 = 500;
/// How many statements of a kind in one look: a backlog is worked off over several.
const STATEMENTS_MAX: u32 = 20;

/// What one look did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MaintenanceCounts {
    /// Claims whose owners are gone, now marked as of unknown outcome.
    lapsed: u64,
    /// Expired keys and contents that were forgotten.
    forgotten: u64,
}

/// Looks after the store, and after the operations that run here, until it is dropped. None of them is transactional: a proxy
/// has no transaction with its service.
pub(crate) async fn run(store: Store, operations: Vec<String>) {
    let node = Uuid::now_v7();
    let mut look = interval(EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        match run_once(&store, &operations, node).await {
            Ok(MaintenanceCounts { lapsed, forgotten }) => {
                if 0 < lapsed {
                    tracing::warn!(
                        lapsed,
                        "claims outlived their owners; `ichido ledger unknown` lists them"
                    );
                }
                if 0 < forgotten {
                    tracing::info!(forgotten, "what has expired was forgotten");
                }
            }
            Err(error) => tracing::warn!(
                error = error.in_full(),
                "the ledger could not be looked after; trying again later"
            ),
        }
    }
}

async fn run_once(store: &Store, operations: &[String], node: Uuid) -> Result<MaintenanceCounts, StoreError> {
    // What alerts are made of; a worker on the same store watches.
    store.tallies().flush().await?;
    // Each adapter knows its own operations, so that each looks after them; two that do take different rows.
    let lapsed = in_parts(|| store.keys().lapse(operations, ROWS_MAX)).await?;
    let mut forgotten = 0;
    if store.nodes().claim_duty(Duty::Ledger, node, ELECTED_FOR).await? {
        forgotten += in_parts(|| store.keys().sweep(ROWS_MAX)).await?;
        forgotten += in_parts(|| store.messages().sweep_contents(ROWS_MAX)).await?;
    }
    Ok(MaintenanceCounts { lapsed, forgotten })
}

/// Runs one statement after another, until one finds less than it may take. Returns how many rows that were.
async fn in_parts<F>(statement: impl Fn() -> F) -> Result<u64, StoreError>
where
    F: Future<Output = Result<u64, StoreError>>,
{
    let mut rows = 0;
    for _ in 0..STATEMENTS_MAX {
        let more = statement().await?;
        rows += more;
        if more < u64::from(ROWS_MAX) {
            break;
        }
    }
    Ok(rows)
}
