//! Facts about queues that workers publish, for commands and servers without such settings.
//!
//! Guarantee: if nodes disagree, the weaker facts apply. The last facts of a queue stay known while no worker runs.
//!
//! A worker publishes when it starts, and periodically afterwards. The facts of a queue combine those of the node that was seen
//! last and of all nodes that were alive then, that is, seen within [`ALIVE_WITHIN`] before it. While workers run, these are
//! the live ones; when all are gone, they are the last ones that lived. A node that stopped cleanly no longer counts once another
//! node is seen after it, so a restart with other settings applies at once.
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//!
//! use ichido_core::retry::Guarantee;
//! use ichido_store::Store;
//! use ichido_store::facts::QueueFacts;
//! use ichido_store::message::QueueName;
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! let (node, queue) = (Uuid::now_v7(), QueueName::parse("orders").ok_or("not a name")?);
//! let facts = QueueFacts {
//!     guarantee: Guarantee::Keyed { keeps_for: Duration::from_hours(24) },
//!     requeue: true,
//!     max_attempts: NonZeroU32::MIN,
//!     retry_horizon: Duration::from_mins(10),
//! };
//! store.queues().key_kind(&queue, "derived").await?;
//! store.nodes().heartbeat(node, "web-1").await?;
//! store.facts().publish(node, &[(queue.clone(), facts)]).await?;
//!
//! let published = store.facts().list().await?;
//! assert_eq!((&published[0].queue, published[0].facts), (&queue, facts));
//! # Ok(())
//! # }
//! ```

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;

use crate::columns::{Columns as _, Row};
use crate::error::StoreError;
use crate::message::QueueName;
use crate::node::NodeRow;
use crate::statement::{DbConnection, Statement, shared};
use crate::{guarantee_columns, rows};

/// The facts of a node that was seen within this time count. Longer than a node counts as alive: in doubt, the weaker facts win.
pub const ALIVE_WITHIN: Duration = Duration::from_secs(30);
/// How long facts of an absent node are kept, if another node serves the queue.
pub(crate) const KEPT_FOR: Duration = Duration::from_hours(1);

/// The schema version that introduced the facts.
const SINCE_VERSION: i64 = 4;
const TABLE: &str = "queue_facts";
pub(crate) const LIST: Statement = shared!("facts_list");

/// The facts about a queue, from a worker that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFacts {
    /// The destination's guarantee about repeated calls.
    pub guarantee: Guarantee,
    /// Whether an operator may requeue its dead letters.
    pub requeue: bool,
    /// The maximum number of attempts per message, including the first.
    pub max_attempts: NonZeroU32,
    /// How long all attempts of a message may take together, including backoff.
    pub retry_horizon: Duration,
}

impl QueueFacts {
    /// Combines two sets of facts: the weaker value of each applies.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        Self {
            guarantee: self.guarantee.weaker(other.guarantee),
            requeue: self.requeue && other.requeue,
            max_attempts: self.max_attempts.min(other.max_attempts),
            retry_horizon: self.retry_horizon.max(other.retry_horizon),
        }
    }
}

/// A queue that at least one worker has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedQueue {
    /// Its name.
    pub queue: QueueName,
    /// The kind of key that its calls carry.
    pub key_kind: String,
    /// The facts that apply: the weaker ones of all nodes.
    pub facts: QueueFacts,
    /// The facts of each node, the one seen last first.
    pub nodes: Vec<(NodeRow, QueueFacts)>,
}

impl PublishedQueue {
    /// Returns whether nodes disagree about it.
    pub fn nodes_disagree(&self) -> bool {
        // If all were the same, the combination would be the same too.
        self.nodes.iter().any(|(_, facts)| *facts != self.facts)
    }

    /// Returns when the most recently seen node was seen.
    fn seen_at(&self) -> Timestamp {
        self.nodes.first().map_or(Timestamp::EPOCH, |(node, _)| node.seen_at)
    }
}

/// Reads a node's facts about a queue, and the queue's kind of key.
fn read_row(row: &Row) -> Result<(QueueName, String, NodeRow, QueueFacts), StoreError> {
    let max_attempts = NonZeroU32::new(row.positive("max_attempts")?);
    let corrupt = || StoreError::Corrupt { table: TABLE, detail: "no attempt is allowed".to_owned() };
    let facts = QueueFacts {
        guarantee: guarantee_columns::guarantee(row, TABLE)?,
        requeue: row.truth("requeue")?,
        max_attempts: max_attempts.ok_or_else(corrupt)?,
        retry_horizon: guarantee_columns::duration(row.number("horizon")?),
    };
    Ok((rows::queue_name(row.text("queue")?)?, row.text("kind")?.to_owned(), rows::node(row)?, facts))
}

/// Reads the queues from a database of this version, which may be older than the facts.
pub(crate) async fn read_published(
    mut connection: DbConnection<'_>,
    version: Option<i64>,
    now: Timestamp,
) -> Result<Vec<PublishedQueue>, StoreError> {
    if version.is_none_or(|version| version < SINCE_VERSION) {
        return Ok(Vec::new());
    }
    by_queue(&connection.all(LIST, &[]).await?, now)
}

/// Groups rows by queue. The rows of a queue are adjacent, the node seen last first.
pub(crate) fn by_queue(rows: &[Row], now: Timestamp) -> Result<Vec<PublishedQueue>, StoreError> {
    let mut queues: Vec<PublishedQueue> = Vec::new();
    // Whether the node of the last queue that was seen last has stopped.
    let mut last_ended = false;
    for row in rows {
        let (queue, key_kind, node, facts) = read_row(row)?;
        let ended = row.truth("ended")?;
        let Some(known) = queues.last_mut().filter(|known| known.queue == queue) else {
            queues.push(PublishedQueue { queue, key_kind, facts, nodes: vec![(node, facts)] });
            last_ended = ended;
            continue;
        };
        // Its node sent a heartbeat while the clock was ahead, so the time of that heartbeat is unknown.
        let is_ahead = now.plus(ALIVE_WITHIN) < known.seen_at();
        let counts = known.seen_at().since(node.seen_at) <= ALIVE_WITHIN;
        if is_ahead {
            (known.facts, known.nodes) = (facts, vec![(node, facts)]);
            last_ended = ended;
        } else if counts && (last_ended || !ended) {
            known.facts = known.facts.weaker(facts);
            known.nodes.push((node, facts));
        }
    }
    Ok(queues)
}
