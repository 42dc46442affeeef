//! How long letters wait for somebody, measured when they are done with (SPEC A14).

use ichido_core::time::Timestamp;
use ichido_store::message::QueueName;
use metrics::{Unit, describe_histogram, histogram};

const RESOLVED: &str = "outbox_letter_resolve_seconds";

ichido_core::words! {
    /// By what a letter was done with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Resolution {
        /// It is sent again.
        Requeued = "requeued",
        /// It needs no more attention.
        Discarded = "discarded",
        /// A new message was made from it.
        Replaced = "replaced",
        /// A person said what became of it.
        Decided = "decided",
        /// Its destination said what became of it.
        Reconciled = "reconciled",
    }
}

/// A letter was done with, `since` being when it became one. For whoever moves letters by the store's own methods; a
/// [`Bulk`](crate::letters::Bulk) and a worker tell of theirs.
pub fn tell_resolved(queue: &QueueName, by: Resolution, since: Timestamp, now: Timestamp) {
    histogram!(RESOLVED, "queue" => queue.as_str().to_owned(), "by" => by.as_str())
        .record(now.since(since).as_secs_f64());
}

/// Tells the recorder of metrics what is measured here.
pub(crate) fn describe_resolved() {
    let resolved = "From when a message was dead or parked until it was requeued, discarded, replaced, decided or reconciled";
    describe_histogram!(RESOLVED, Unit::Seconds, resolved);
}
