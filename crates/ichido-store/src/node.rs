//! What the nodes of one database tell each other: that they live, and how fast a destination may be called.
//!
//! Guarantee: of two nodes that write a pace over the same version, one succeeds and the other is told, so no change is lost.
//!
//! # The upkeep
//!
//! Each call does a bounded amount and says how much; a full part means that there may be more. Promoting and rescuing are for
//! every node and may be done by many at once; the rest is enough once, by whoever has that [`Duty`].
//!
//! ```
//! use std::time::Duration;
//!
//! use ichido_core::time::Timestamp;
//! use ichido_store::Store;
//! use ichido_store::node::{Duty, SharedPace};
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! const PART: u32 = 1_000;
//! let (node, other) = (Uuid::now_v7(), Uuid::now_v7());
//! store.nodes().beat(node, "web-1").await?;
//! assert_eq!(store.nodes().list().await?[0].name, "web-1");
//!
//! assert!(store.nodes().claim_duty(Duty::Ledger, node, Duration::from_secs(30)).await?);
//! assert!(!store.nodes().claim_duty(Duty::Ledger, other, Duration::from_secs(30)).await?, "one at a time");
//! while store.keys().sweep(PART).await? == u64::from(PART) {}
//! while store.messages().sweep_contents(PART).await? == u64::from(PART) {}
//! while store.queues().fold_counts(PART).await? == u64::from(PART) {}
//! let kept_for = 90 * 24 * 3_600 * 1_000_000;
//! let finished_before = Timestamp::from_micros(store.now().await?.as_micros() - kept_for);
//! while store.messages().forget(finished_before, PART).await? == u64::from(PART) {}
//!
//! // A pace is read, changed and written; whoever is told `false` reads again.
//! assert_eq!(store.paces().read("mail.example").await?, None);
//! assert!(store.paces().write("mail.example", SharedPace::NEVER_WRITTEN, b"9/s").await?);
//! assert!(!store.paces().write("mail.example", SharedPace::NEVER_WRITTEN, b"8/s").await?);
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::time::Duration;

use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::message::QueueName;

/// A part of the upkeep that is enough once. Each is asked for apart, since not every node can do each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty<'a> {
    /// Forgetting expired keys and contents.
    Ledger,
    /// Folding the counts of queues.
    Outbox,
    /// Sealing the audit trail, forgetting finished messages with their entries, and pruning the seals.
    Trail,
    /// Measuring what alerts are about, and opening and ending their incidents.
    Alerts,
    /// Asking after the messages of a queue that are parked, or dead without it being known whether they were done.
    Parked(&'a QueueName),
    /// Moving many letters of a queue, or of all queues. Who has it is not a node but the bulk that moves them.
    Letters(Option<&'a QueueName>),
}

impl Duty<'_> {
    pub(crate) fn name(self) -> Cow<'static, str> {
        match self {
            Self::Ledger => Cow::Borrowed("ledger"),
            Self::Outbox => Cow::Borrowed("outbox"),
            Self::Trail => Cow::Borrowed("trail"),
            Self::Alerts => Cow::Borrowed("alerts"),
            Self::Parked(queue) => Cow::Owned(format!("parked:{}", queue.as_str())),
            Self::Letters(None) => Cow::Borrowed(LETTERS),
            Self::Letters(Some(queue)) => Cow::Owned(format!("{LETTERS}:{}", queue.as_str())),
        }
    }
}

/// The longest lease of a duty, or of a question to a model: one that ends later was taken while the clock was ahead, and has lapsed.
pub(crate) const DUTY_LEASE_MAX: Duration = Duration::from_hours(1);

/// What the duty of moving letters is called; that of one queue has its name after a colon.
const LETTERS: &str = "letters";

/// A bulk that has [`Duty::Letters`], its lease not lapsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LettersKept {
    /// Of which queue; `None` of all.
    pub queue: Option<String>,
    /// The bulk.
    pub by: Uuid,
}

impl LettersKept {
    pub(crate) fn of(duty: &str, by: Uuid) -> Self {
        Self { queue: duty.split_once(':').map(|(_, queue)| queue.to_owned()), by }
    }

    /// Whether it has letters of this queue, or, asked for all of them, any.
    pub fn overlaps(&self, queue: Option<&QueueName>) -> bool {
        match (&self.queue, queue) {
            (Some(own), Some(queue)) => own == queue.as_str(),
            (None, _) | (_, None) => true,
        }
    }
}

/// A queue that was ever paused, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePause {
    /// The queue.
    pub queue: String,
    /// Whether nothing of it is claimed.
    pub paused: bool,
    /// Who paused it, or ended the pause.
    pub by: Option<String>,
    /// Since when it stands so.
    pub since: Timestamp,
}

/// A node as it was last heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id, new for each start of the program.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// When it was first heard of.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub seen_at: Timestamp,
}

/// A destination's pace, the same for all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPace {
    /// Which writing of it this is; the next one must name it.
    pub version: i64,
    /// The pace, in the words of whoever wrote it.
    pub bytes: Vec<u8>,
}

impl SharedPace {
    /// The version that a first writing names.
    pub const NEVER_WRITTEN: i64 = 0;
}
