//! How long letters wait for a resolution, measured when they are resolved.
// Spec: A14.

use ichido_core::time::Timestamp;
use ichido_store::message::QueueName;
use metrics::{Unit, describe_histogram, histogram};

const RESOLVED: &str = "outbox_dead_letter_resolve_seconds";

ichido_core::words! {
    /// How a letter was resolved.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Resolution {
        /// It was requeued.
        Requeued = "requeued",
        /// It needs no more attention.
        Discarded = "discarded",
        /// A new message was made from it.
        Replaced = "replaced",
        /// A person decided its effect.
        Decided = "decided",
        /// Its destination reported its effect.
        Reconciled = "reconciled",
    }
}

/// Records the resolution of a letter that died at `since`.
///
/// Call it after moving letters with the store's own methods; a [`Bulk`](crate::dead_letters::BulkOperation) and a worker record their
/// own.
pub fn record_resolution(queue: &QueueName, by: Resolution, since: Timestamp, now: Timestamp) {
    histogram!(RESOLVED, "queue" => queue.as_str().to_owned(), "by" => by.as_str())
        .record(now.since(since).as_secs_f64());
}

/// Describes these metrics to the recorder.
pub(crate) fn describe_resolved() {
    let resolved = "Time from when a message was dead or parked until it was requeued, discarded, replaced, \
        decided or reconciled";
    describe_histogram!(RESOLVED, Unit::Seconds, resolved);
}
