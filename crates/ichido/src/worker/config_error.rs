//! Why settings do not make a worker: what is wrong, and how to fix it.

use std::time::Duration;

use ichido_core::retry::{Guarantee, ScheduleError};
use ichido_store::message::limits as store_limits;

use super::settings::limits;

/// Why the settings do not make a worker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerConfigError {
    /// There is no queue.
    #[error(
        "the worker serves no queue; add at least one with handle_idempotent(…), handle_keyed(…), handle_once(…), \
            handle_tx(…) or queue(…)"
    )]
    NoQueue,
    /// An idle worker would spin.
    #[error(
        "idle_sleep is zero, so an idle worker would query the database without pause; set it (200 ms is usual)"
    )]
    NoIdleSleep,
    /// The name is missing or cannot be stored.
    #[error("a worker's name must have 1 to {} bytes and no NUL", limits::MAX_NAME_BYTES)]
    WorkerName,
    /// The name is missing or cannot be stored.
    #[error("destination `{name}`: a name must have 1 to {} bytes and no NUL", limits::MAX_NAME_BYTES)]
    DestinationName {
        /// The name.
        name: String,
    },
    /// Two destinations have the same name.
    #[error("destination `{name}` is given twice; names must be unique, and queues may share a destination")]
    DuplicateDestination {
        /// The name.
        name: String,
    },
    /// The name is not valid for a queue.
    #[error(
        "queue `{queue}`: a name must have 1 to {} letters, digits, `.`, `_`, `-` or `:`",
        store_limits::MAX_QUEUE_BYTES
    )]
    QueueName {
        /// The name.
        queue: String,
    },
    /// A queue is configured twice.
    #[error("queue `{queue}` is given twice; configure it once")]
    DuplicateQueue {
        /// The queue.
        queue: String,
    },
    /// The destination is missing.
    #[error(
        "queue `{queue}` goes to `{destination}`, but no destination or handler has that name; add it with \
            destination(…)"
    )]
    NoDestination {
        /// The queue.
        queue: String,
        /// The name of the destination.
        destination: String,
    },
    /// The claim would lapse while its call is in flight.
    #[error(
        "queue `{queue}`: the lease, {lease:?}, must be longer than the destination's timeout, {timeout:?}; \
            lengthen the lease or shorten the timeout"
    )]
    LeaseTooShort {
        /// The queue.
        queue: String,
        /// Its lease.
        lease: Duration,
        /// The timeout of its destination.
        timeout: Duration,
    },
    /// The lease is too short for a database.
    #[error("queue `{queue}`: the lease, {lease:?}, must be at least {:?}", limits::MIN_LEASE)]
    LeaseBelowMinimum {
        /// The queue.
        queue: String,
        /// Its lease.
        lease: Duration,
    },
    /// The lease would look as if it was taken while the clock was ahead.
    #[error(
        "queue `{queue}`: the lease, {lease:?}, must be at most {:?}; leases are renewed automatically",
        limits::MAX_LEASE
    )]
    LeaseTooLong {
        /// The queue.
        queue: String,
        /// Its lease.
        lease: Duration,
    },
    /// A number above its limit.
    #[error("queue `{queue}`: {what} is {found}; it must be at most {max}")]
    TooMany {
        /// The queue.
        queue: String,
        /// Which number.
        what: &'static str,
        /// Its value.
        found: u32,
        /// The limit.
        max: u32,
    },
    /// An invalid schedule.
    #[error("queue `{queue}`: {error}")]
    Retry {
        /// The queue.
        queue: String,
        /// What is wrong.
        error: ScheduleError,
    },
    /// The name is not valid for a type of message.
    #[error(
        "queue `{queue}`: `{name}` is not a type's name; set TYPE to 1 to {} letters, digits, `.`, `_` or `-`",
        store_limits::MAX_QUEUE_BYTES
    )]
    TypeName {
        /// The queue.
        queue: String,
        /// The name.
        name: &'static str,
    },
    /// A handler among several does not say which messages are its own.
    #[error(
        "queue `{queue}` has several handlers, and one of them takes no particular type; set TYPE of each \
            message type of the queue, so every message reaches its handler"
    )]
    MissingType {
        /// The queue.
        queue: String,
    },
    /// Two handlers would take the same messages.
    #[error(
        "queue `{queue}` has two handlers of type `{name}`; remove one, or give its message type another TYPE"
    )]
    DuplicateType {
        /// The queue.
        queue: String,
        /// The type's name.
        name: &'static str,
    },
    /// A queue has one guarantee.
    #[error(
        "queue `{queue}`: its handlers have different guarantees ({} and {}), and a queue has one; \
            register them alike, or give a type its own QUEUE",
        guarantee_text(*one),
        guarantee_text(*other)
    )]
    DifferentGuarantees {
        /// The queue.
        queue: String,
        /// The guarantee of the first handler.
        one: Guarantee,
        /// Another one.
        other: Guarantee,
    },
    /// A queue has one retry schedule.
    #[error(
        "queue `{queue}`: its message types have different RETRY, and a queue has one; make them equal, or give \
            a type its own QUEUE"
    )]
    DifferentRetries {
        /// The queue.
        queue: String,
    },
    /// A lookup knows the key of a message, not its type.
    #[error(
        "queue `{queue}` has several handlers, and one of them has reconcile(…), which cannot know whose message \
            it looks up; give its type its own QUEUE"
    )]
    ReconcileAmongTypes {
        /// The queue.
        queue: String,
    },
    /// The transactions of handlers would have no time, or block the store for too long.
    #[error(
        "tx_timeout is {tx_timeout:?}; it must be longer than zero and at most {:?}, because an open transaction \
            on SQLite blocks every other writer",
        limits::MAX_TX_TIMEOUT
    )]
    TxTimeout {
        /// The setting.
        tx_timeout: Duration,
    },
    /// A transactional handler has no connections.
    #[error(
        "queue `{queue}` has a transactional handler, but the worker has no connections for it; set them with \
            pool(…)"
    )]
    NoPool {
        /// The queue.
        queue: String,
    },
    /// A transaction on another database could not commit with the store.
    #[error(
        "queue `{queue}`: its transactional handler is on {handler} and the worker's pool on {pool}, but the \
            store is on {store}; use the store's own database"
    )]
    OtherDatabase {
        /// The queue.
        queue: String,
        /// The database of the store.
        store: &'static str,
        /// The database of the pool.
        pool: &'static str,
        /// The database of the handler.
        handler: &'static str,
    },
    /// There is nothing to tune.
    #[error("tune(…) names queue `{queue}`, which has no handler yet; register its handler first")]
    TunedTooEarly {
        /// The queue.
        queue: String,
    },
}

/// All errors of a builder. Displays one error per line.
pub type WorkerConfigErrors = crate::BuildErrors<WorkerConfigError>;

fn guarantee_text(guarantee: Guarantee) -> String {
    match guarantee {
        Guarantee::Keyed { keeps_for } => format!("keyed for {keeps_for:?}"),
        Guarantee::Idempotent | Guarantee::Transactional | Guarantee::None => guarantee.as_str().to_owned(),
    }
}
