//! State that the nodes of one database share: heartbeats, and the pace of each destination.
//!
//! Guarantee: a node that is declared dead learns of it by its next heartbeat, and its claims lapse in the same transaction.
//!
//! Guarantee: if two nodes write a pace over the same version, one succeeds and the other learns that it did not, so no change
//! is lost.
//!
//! # Maintenance
//!
//! Each call does a bounded amount of work and returns how much; a full batch means that there may be more. Promoting and
//! rescuing are for every node, and several may do them at once. The rest is for one node at a time, the one that holds that
//! [`SingletonTask`].
//!
//! ```
//! use std::time::Duration;
//!
//! use ichido_core::time::Timestamp;
//! use ichido_store::Store;
//! use ichido_store::node::{SingletonTask, SharedPace};
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! const PART: u32 = 1_000;
//! let (node, other) = (Uuid::now_v7(), Uuid::now_v7());
//! store.nodes().heartbeat(node, "web-1").await?;
//! assert_eq!(store.nodes().list().await?[0].name, "web-1");
//!
//! assert!(store.nodes().claim_task(SingletonTask::Ledger, node, Duration::from_secs(30)).await?);
//! assert!(!store.nodes().claim_task(SingletonTask::Ledger, other, Duration::from_secs(30)).await?, "one at a time");
//! while store.keys().sweep(PART).await? == u64::from(PART) {}
//! while store.messages().sweep_contents(PART).await? == u64::from(PART) {}
//! while store.queues().fold_counts(PART).await? == u64::from(PART) {}
//! while store.failure_groups().fold(PART).await? == u64::from(PART) {}
//! let kept_for = 90 * 24 * 3_600 * 1_000_000;
//! let finished_before = Timestamp::from_micros(store.now().await?.as_micros() - kept_for);
//! while store.messages().delete_finished(finished_before, PART).await? == u64::from(PART) {}
//!
//! // A pace is read, changed and written; after `false`, read it again.
//! assert_eq!(store.paces().read("mail.example").await?, None);
//! assert!(store.paces().write("mail.example", SharedPace::NEVER_WRITTEN, b"9/s").await?);
//! assert!(!store.paces().write("mail.example", SharedPace::NEVER_WRITTEN, b"8/s").await?);
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::clock::{HEARTBEAT_DEADLINE, is_alive};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::message::{QueueName, limits};
pub use crate::node_lock::NodeLock;

/// A maintenance task that one node does at a time. Each is claimed separately, because not every node can do every task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingletonTask<'a> {
    /// Deleting expired keys and contents.
    Ledger,
    /// Folding the counts of queues.
    Outbox,
    /// Sealing the audit trail, deleting finished messages with their entries, and pruning the seals.
    Trail,
    /// Measuring for alerts, and opening and resolving their incidents.
    Alerts,
    /// Reconciling the messages of a queue that are parked, or dead with an unknown effect.
    Parked(&'a QueueName),
    /// Moving many dead letters of a queue, or of all queues. The holder is not a node but the bulk operation that moves them.
    DeadLetters(Option<&'a QueueName>),
}

impl SingletonTask<'_> {
    pub(crate) fn name(self) -> Cow<'static, str> {
        match self {
            Self::Ledger => Cow::Borrowed("ledger"),
            Self::Outbox => Cow::Borrowed("outbox"),
            Self::Trail => Cow::Borrowed("trail"),
            Self::Alerts => Cow::Borrowed("alerts"),
            Self::Parked(queue) => Cow::Owned(format!("parked:{}", queue.as_str())),
            Self::DeadLetters(None) => Cow::Borrowed(LETTERS),
            Self::DeadLetters(Some(queue)) => Cow::Owned(format!("{LETTERS}:{}", queue.as_str())),
        }
    }
}

/// The maximum lease of a task, or of a question to a model. One that ends later was taken while the clock was ahead, and
/// counts as lapsed.
pub(crate) const MAX_TASK_LEASE: Duration = Duration::from_hours(1);

/// The name of the task of moving dead letters. For one queue, the queue's name follows a colon.
const LETTERS: &str = "dead_letters";

/// A bulk operation that holds [`SingletonTask::DeadLetters`] with a valid lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkLease {
    /// Its queue; `None` for all queues.
    pub queue: Option<String>,
    /// The bulk operation.
    pub by: Uuid,
}

impl BulkLease {
    pub(crate) fn new(duty: &str, by: Uuid) -> Self {
        Self { queue: duty.split_once(':').map(|(_, queue)| queue.to_owned()), by }
    }

    /// Returns whether it covers dead letters of this queue, or of any queue for `None`.
    pub fn overlaps(&self, queue: Option<&QueueName>) -> bool {
        match (&self.queue, queue) {
            (Some(own), Some(queue)) => own == queue.as_str(),
            (None, _) | (_, None) => true,
        }
    }
}

/// The pause state of a queue that was paused at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePause {
    /// The queue.
    pub queue: String,
    /// Whether claiming is stopped.
    pub paused: bool,
    /// Who paused or resumed it.
    pub by: Option<String>,
    /// When it was paused or resumed.
    pub since: Timestamp,
}

/// How many messages of a queue each worker runs at the same time, because an operator said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueParallelism {
    /// The queue.
    pub queue: String,
    /// The number of messages, per worker.
    pub parallelism: NonZeroU32,
    /// Who set it.
    pub by: Option<String>,
    /// When it was set.
    pub since: Timestamp,
}

/// A node, as last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its id, new for each start of the program.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// When it was first seen.
    pub started_at: Timestamp,
    /// When it was last seen.
    pub seen_at: Timestamp,
    /// Whether it stopped, or was declared dead, and sent no heartbeat since.
    pub gone: bool,
}

impl NodeRow {
    /// Returns whether it was alive at `now`.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        !self.gone && is_alive(self.seen_at, now, HEARTBEAT_DEADLINE)
    }
}

/// A heartbeat, as the store wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The store's time.
    pub at: Timestamp,
    /// The life that it prolongs. If it is another one than before, the node was declared dead in between: all its claims of
    /// before may have been rescued.
    pub life: NodeLife,
    /// Messages that somebody asked to cancel while they were in flight, on any node.
    ///
    /// A node that holds one tells its handler to stop; [`Messages::apply_cancellations`](crate::Messages::apply_cancellations) ends
    /// the others. At most [`MAX_CANCELLATIONS`]; [`Messages::cancellations`](crate::Messages::cancellations) lists those behind them.
    pub cancellations: Vec<Uuid>,
}

/// The most requests to cancel messages on a page, and that one heartbeat carries: those of the oldest messages.
pub const MAX_CANCELLATIONS: u32 = limits::MAX_PAGE;

/// The life of a node, until others declare it dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLife {
    pub(crate) started_at: Timestamp,
    pub(crate) deaths: u32,
}

/// The node that holds a message in flight, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHolder {
    /// The node.
    pub node: Uuid,
    /// Its name; `None` if it sends no heartbeats.
    pub name: Option<String>,
    /// When its lease lapses unless it is renewed.
    pub lease_until: Timestamp,
    /// When it counts as dead without another heartbeat; `None` if it sends none.
    pub alive_until: Option<Timestamp>,
}

/// A destination's pace, shared by all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPace {
    /// The version of this pace; the next write must name it.
    pub version: i64,
    /// The pace, in the writer's own encoding.
    pub bytes: Vec<u8>,
}

impl SharedPace {
    /// The version that the first write names.
    pub const NEVER_WRITTEN: i64 = 0;
}
