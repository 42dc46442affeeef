//! Sealing of settled key records into the audit trail, a bounded number per round.
//!
//! Guarantee: a round examines a bounded number of records and never waits for a request. Workers run it, and
//! keepers of a layer on a store without a worker.
// Spec: C5, F5.

use std::time::Duration;

use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::audit::MAX_SEAL_KEYS;
use ichido_store::error::StoreError;
use tokio::time::Instant;

/// The time from the start of one pass over the records to the next.
const PASS_EVERY: Duration = Duration::from_mins(1);
/// The most batches of [`MAX_SEAL_KEYS`] records per second, on average. A batch takes a few milliseconds.
const BATCHES_PER_SECOND: u64 = 6;

/// How far a pass over the records has come.
pub(crate) struct KeySealer {
    batches_per_round: u64,
    /// Where the pass continues; `None` if it is over.
    after: Option<Timestamp>,
    /// When the next pass begins.
    next: Option<Instant>,
}

impl KeySealer {
    /// Creates one for rounds at this interval.
    pub(crate) fn with_rounds_every(interval: Duration) -> Self {
        Self { batches_per_round: interval.as_secs().max(1) * BATCHES_PER_SECOND, after: None, next: None }
    }

    /// Runs one round: continues the pass, or begins the next one if it is due. Returns how many records were sealed.
    ///
    /// It writes entries of the audit trail, which are then sealed like all others.
    pub(crate) async fn run_once(&mut self, store: &Store) -> Result<u64, StoreError> {
        if self.after.is_none() {
            if self.next.is_some_and(|next| Instant::now() < next) {
                return Ok(0);
            }
            self.next = Some(Instant::now() + PASS_EVERY);
        }
        let mut records = 0;
        for _ in 0..self.batches_per_round {
            let sealed = store.audit().seal_keys(self.after, MAX_SEAL_KEYS).await?;
            records += sealed.records;
            self.after = sealed.after;
            if self.after.is_none() {
                break;
            }
        }
        Ok(records)
    }
}
