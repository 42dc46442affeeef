//! A durable offline queue in one SQLite file.
//!
//! It accepts actions now and sends them when the network is back.
//!
//! Guarantee: an action that [`OfflineQueue::accept`] confirmed is on disk, under its original key, which never changes.
//! Entries are sent in order of acceptance per destination, by one sender at a time across all processes. An entry is
//! removed only when the server reports it as done. Until then it is retried under the same key, or stays as failed
//! or held with its reason. If the process is killed at any moment, nothing is lost, and nothing is sent that the
//! server could treat as new.
//!
//! Start at [`OfflineQueue::open`]. [`Sender`] sends, [`next`] decides, and [`age`] measures how old an entry is.
//!
//! ```
//! use ichido_client::Action;
//! use ichido_client::queue::{AcceptOutcome, OfflineQueue};
//! use ichido_core::key::IdempotencyKey;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("ichido-doc-{}", std::process::id()));
//! # std::fs::create_dir(&folder)?;
//! # let file = folder.join("orders.queue");
//! let queue = OfflineQueue::open(&file).await?;
//! let order = |body: &'static str| {
//!     let key = IdempotencyKey::parse("order-1").expect("a key");
//!     Action::new(http::Method::POST, "/orders", key, "application/json", body)
//! };
//! let server = "https://shop.example";
//! let accepted = queue.accept(server, &[order(r#"{"qty":1}"#)?]).await?;
//! assert!(matches!(accepted[0], AcceptOutcome::New { .. }), "it is on the disk");
//! // The same action again changes nothing, and a different one under its key is not accepted.
//! assert!(matches!(queue.accept(server, &[order(r#"{"qty":1}"#)?]).await?[0], AcceptOutcome::Same { .. }));
//! assert!(matches!(queue.accept(server, &[order(r#"{"qty":2}"#)?]).await?[0], AcceptOutcome::Conflict { .. }));
//! # queue.close().await;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Sending
//!
//! ```no_run
//! use std::sync::Arc;
//! use ichido_client::ClientSettings;
//! use ichido_client::queue::{OfflineQueue, SendSettings};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let server = "https://shop.example";
//! let client = Arc::new(ClientSettings::new(server).resolve()?);
//! let queue = OfflineQueue::open("orders.queue").await?;
//! let mut sender = queue.sender(server, client, SendSettings::default()).await?;
//! // Runs until `stop` completes. `Sender::drain` sends what is there and returns.
//! let stop = tokio::time::sleep(std::time::Duration::from_secs(60));
//! sender.run(stop, |event| println!("{event:?}")).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is in the file
//!
//! The file contains the requests as they will be sent, with bodies and header fields in plain text, so it is
//! readable only by its owner (mode 0600). It contains no token: credentials come from the [`Client`](crate::Client)
//! when an entry is sent, and a header field with a secret is refused. A file therefore belongs to one caller: the
//! same key means the same action, unless the field `Ichido-Identity` names another identity.
//!
//! Beside the file are SQLite's log (`-wal`, `-shm`) and one lock per destination (`.sender-…`), which the system
//! releases when its holder dies. Move or copy the file only while it is not in use, and together with its log.
// Spec: A13.

mod accept;
pub mod age;
mod decide;
mod entry;
mod error;
mod fields;
mod file;
mod list;
mod lock;
pub mod next;
mod sender;
mod settle;
mod write_transaction;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::sqlite::SqlitePool;
use tokio::sync::watch;

pub use accept::AcceptOutcome;
pub use entry::{Entry, EntryId, Reason, State};
pub use error::QueueError;
pub use list::{EntryCount, EntryFilter};
pub use sender::{DrainOutcome, Event, EventKind, Proof, SendSettings, Sender, StepOutcome};

/// The maximum number of entries in a file, in any state.
pub const MAX_ENTRIES: i64 = 100_000;
/// The maximum size of an entry: body, header fields and path.
pub const MAX_ENTRY_BYTES: usize = 8 << 20;
/// The longest name of a destination.
pub const MAX_DESTINATION_BYTES: usize = 2_048;
/// The maximum number of entries in one list.
pub const MAX_PAGE: u32 = 1_000;

/// A queue in a file. Clones are handles to the same queue.
#[derive(Clone, Debug)]
pub struct OfflineQueue {
    pool: SqlitePool,
    /// The canonical path, so every name of the file leads to the same locks.
    file: Arc<PathBuf>,
    signals: Arc<Signals>,
}

/// Signals to waiting senders.
#[derive(Debug, Default)]
struct Signals {
    /// There may be something to send.
    look: watch::Sender<()>,
    /// The network may be back.
    online: watch::Sender<()>,
}

impl OfflineQueue {
    /// Opens a queue, or creates it if the file does not exist.
    ///
    /// A file that is not a queue is refused and left unchanged.
    pub async fn open(file: impl AsRef<Path>) -> Result<Self, QueueError> {
        Self::open_or_create(file.as_ref(), true).await
    }

    /// Opens a queue that must exist.
    pub async fn open_existing(file: impl AsRef<Path>) -> Result<Self, QueueError> {
        Self::open_or_create(file.as_ref(), false).await
    }

    async fn open_or_create(file: &Path, may_create: bool) -> Result<Self, QueueError> {
        let (pool, file) = file::open(file, may_create).await?;
        Ok(Self { pool, file: Arc::new(file), signals: Arc::default() })
    }

    /// Signals that the network may be back, so waiting senders of this process try now.
    pub fn wake(&self) {
        self.signals.online.send_replace(());
    }

    /// Closes every handle of this process. Accepted entries are durable even without it.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    fn notify_senders(&self) {
        self.signals.look.send_replace(());
    }
}
