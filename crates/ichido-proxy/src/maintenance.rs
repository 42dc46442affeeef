//! Maintenance of the ledger.
//!
//! One adapter at a time deletes expired keys. Every adapter marks claims that a crash left behind as unknown, so a
//! person sees them even if nobody repeats the request, and reports how many keys wait for a person.
// Spec: A5, F2.

use std::time::Duration;

use ichido::unknown_outcomes;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::node::SingletonTask;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

/// How often maintenance runs.
const EVERY: Duration = Duration::from_secs(30);
/// How long the singleton task is claimed. Another adapter takes over after two missed runs.
const ELECTED_FOR: Duration = Duration::from_secs(75);
/// The maximum number of rows per statement, so no statement holds its locks for long.
const MAX_ROWS: u32 = 500;
/// The maximum number of statements of a kind per run. A backlog takes several runs.
const MAX_STATEMENTS: u32 = 20;

/// The result of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MaintenanceCounts {
    /// Claims whose owners are gone, now marked as unknown.
    lapsed: u64,
    /// Expired keys and message contents that were deleted.
    forgotten: u64,
    /// Keys of unknown outcome that wait for a person.
    unknown: u64,
}

/// Maintains the store and the operations of this adapter until it is dropped.
///
/// None of them is transactional: a proxy has no transaction with its service.
pub(crate) async fn run(store: Store, operations: Vec<String>) {
    let node = Uuid::now_v7();
    let mut look = interval(EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unknown_before = 0;
    loop {
        look.tick().await;
        match run_once(&store, &operations, node).await {
            Ok(MaintenanceCounts { lapsed, forgotten, unknown }) => {
                if 0 < lapsed {
                    tracing::warn!(lapsed, "claims expired with unknown outcome; see `ichido keys unknown`");
                }
                if unknown_before < unknown {
                    tracing::warn!(
                        unknown,
                        "alert: keys of unknown outcome wait for a person; see `ichido keys unknown`"
                    );
                }
                unknown_before = unknown;
                if 0 < forgotten {
                    tracing::info!(forgotten, "deleted expired keys and message contents");
                }
            }
            Err(error) => {
                tracing::warn!(error = error.with_causes(), "ledger maintenance failed; will retry");
            }
        }
    }
}

async fn run_once(store: &Store, operations: &[String], node: Uuid) -> Result<MaintenanceCounts, StoreError> {
    // The counters behind alerts; a worker on the same store watches them.
    store.series().flush().await?;
    // Each adapter knows its own operations and settles their claims; two adapters take different rows.
    let lapsed = in_batches(|| store.keys().mark_lapsed_unknown(operations, MAX_ROWS)).await?;
    let mut forgotten = 0;
    if store.nodes().claim_task(SingletonTask::Ledger, node, ELECTED_FOR).await? {
        forgotten += in_batches(|| store.keys().sweep(MAX_ROWS)).await?;
        forgotten += in_batches(|| store.messages().sweep_contents(MAX_ROWS)).await?;
    }
    let unknown = unknown_outcomes::report(store, store.now().await?).await?;
    let unknown = unknown.iter().map(|found| found.count).sum();
    Ok(MaintenanceCounts { lapsed, forgotten, unknown })
}

/// Repeats a statement until it finds fewer rows than its limit. Returns the number of rows.
async fn in_batches<F>(statement: impl Fn() -> F) -> Result<u64, StoreError>
where
    F: Future<Output = Result<u64, StoreError>>,
{
    let mut rows = 0;
    for _ in 0..MAX_STATEMENTS {
        let more = statement().await?;
        rows += more;
        if more < u64::from(MAX_ROWS) {
            break;
        }
    }
    Ok(rows)
}
