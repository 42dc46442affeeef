//! Keys of unknown outcome, as metrics.
//!
//! Guarantee: a key that waits for a person is counted until it is decided, by every worker and every keeper of a layer. One
//! call reads one index, up to a limit.
// Spec: F2.

use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::UnknownCount;
use metrics::{Unit, describe_gauge, gauge};

const KEYS: &str = "ichido_ledger_unknown";
const OLDEST: &str = "ichido_ledger_unknown_oldest_seconds";

pub(crate) fn describe_metrics() {
    let keys = "Keys of unknown outcome that wait for a person, up to 10,000. Every program on a store reports the \
        total: do not sum it";
    describe_gauge!(KEYS, Unit::Count, keys);
    describe_gauge!(OLDEST, Unit::Seconds, "Age of the oldest key of unknown outcome; 0 if there is none");
}

/// Counts keys of unknown outcome by operation, and sets the metrics. `now` is the store's time.
pub(crate) async fn report(store: &Store, now: Timestamp) -> Result<Vec<UnknownCount>, StoreError> {
    let counts = store.keys().count_unknown(now).await?;
    let total: u64 = counts.iter().map(|found| found.count).sum();
    let oldest = counts.iter().map(|found| now.since(found.oldest)).max().unwrap_or_default();
    gauge!(KEYS).set(f64::from(u32::try_from(total).unwrap_or(u32::MAX)));
    gauge!(OLDEST).set(oldest.as_secs_f64());
    Ok(counts)
}
