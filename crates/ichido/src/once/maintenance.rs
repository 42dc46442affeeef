//! Maintenance of the ledger, by every process that has the layer.
//!
//! One process at a time deletes expired keys and contents: a proxy, a worker or a service. Each one marks claims of its own
//! operations that a crash left behind as unknown, so a person sees them even if nobody repeats the request, and reports
//! how many keys wait for a person. If no worker runs on the store, one process seals the audit trail and the settled key
//! records.
// Spec: A5, C5, F2, F5.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::clock::is_alive;
use ichido_core::sync::lock;
use ichido_store::Store;
use ichido_store::audit::{AuditSealed, MAX_SEAL_ENTRIES};
use ichido_store::error::StoreError;
use ichido_store::facts::ALIVE_WITHIN;
use ichido_store::node::SingletonTask;
use uuid::Uuid;

use crate::clock::Clock;
use crate::counters;
use crate::key_seals::KeySealer;
use crate::unknown_outcomes;

/// The time between runs, on average.
const EVERY: Duration = Duration::from_secs(30);
/// The time to the first run, on average: a service that is restarted often must come to one.
const FIRST_AFTER: Duration = Duration::from_secs(1);
/// The longest sleep between looks at the local clock. Timers do not notice that a test moves it.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How long the singleton task is claimed. Another process takes over after two missed runs.
const ELECTED_FOR: Duration = Duration::from_secs(75);
/// The maximum number of rows per statement, so no statement holds its locks for long.
const MAX_ROWS: u32 = 500;
/// The maximum number of statements of a kind per run. A backlog takes several runs.
const MAX_STATEMENTS: u32 = 20;

/// The operations of this process whose lapsed claims are of unknown outcome.
pub(super) type OperationNames = Arc<Mutex<BTreeSet<String>>>;

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

/// Seals the audit trail of a store without a worker.
struct TrailSealer {
    keys: KeySealer,
    /// The trail is sealed with a key, which this process does not have.
    lacks_key: bool,
}

impl TrailSealer {
    fn new() -> Self {
        Self { keys: KeySealer::with_rounds_every(EVERY), lacks_key: false }
    }

    /// Seals a bounded part. A worker may have the audit key, so the task is left to any that is alive.
    async fn run_once(&mut self, store: &Store, node: Uuid) -> Result<(), StoreError> {
        let now = store.now().await?;
        let last_seen = store.nodes().list().await?.first().map(|worker| worker.seen_at);
        if self.lacks_key
            || last_seen.is_some_and(|seen| is_alive(seen, now, ALIVE_WITHIN))
            || !store.nodes().claim_task(SingletonTask::Trail, node, ELECTED_FOR).await?
        {
            return Ok(());
        }
        self.keys.run_once(store).await?;
        for _ in 0..MAX_STATEMENTS {
            match store.audit().seal(None, MAX_SEAL_ENTRIES).await? {
                AuditSealed::Sealed { .. } => (),
                AuditSealed::Nothing => break,
                AuditSealed::KeyNeeded => {
                    self.lacks_key = true;
                    // The owner of the key should not wait for the lease. Other tasks are claimed again in the next run.
                    store.nodes().release_tasks(node).await?;
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Maintains the store until it is aborted. That leaves nothing half done: each step is one transaction.
pub(super) async fn run(store: Store, clock: Arc<Clock>, operations: OperationNames) {
    let node = Uuid::now_v7();
    let (mut unknown_before, mut trail) = (0, TrailSealer::new());
    let mut due = clock.elapsed() + jittered(FIRST_AFTER);
    loop {
        let wait = due.saturating_sub(clock.elapsed());
        if !wait.is_zero() {
            tokio::time::sleep(wait.min(CHECK_EVERY)).await;
            continue;
        }
        due = clock.elapsed() + jittered(EVERY);
        let operations: Vec<String> = lock(&operations).iter().cloned().collect();
        if let Err(error) = trail.run_once(&store, node).await {
            tracing::warn!(error = error.with_causes(), "failed to seal the audit trail; will retry");
        }
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

/// Returns a time within a quarter of this one, so processes that start together do not run together.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.75 + fastrand::f64() / 2.0)
}

async fn run_once(store: &Store, operations: &[String], node: Uuid) -> Result<MaintenanceCounts, StoreError> {
    // The counters behind alerts and series; a worker on the same store watches them.
    store.series().flush().await?;
    // Each process knows its own operations and settles their claims; two processes take different rows.
    let lapsed = in_batches(|| store.keys().mark_lapsed_unknown(operations, MAX_ROWS)).await?;
    let mut forgotten = 0;
    if store.nodes().claim_task(SingletonTask::Ledger, node, ELECTED_FOR).await? {
        forgotten += in_batches(|| store.keys().sweep(MAX_ROWS)).await?;
        forgotten += in_batches(|| store.messages().sweep_contents(MAX_ROWS)).await?;
        counters::maintain(store).await?;
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

#[cfg(test)]
mod tests;
