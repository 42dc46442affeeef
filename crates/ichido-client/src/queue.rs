//! A durable offline queue in one SQLite file: accept now, send when the network is back (SPEC A13).
//!
//! Guarantee: what [`Queue::accept`] has answered for is on the disk, under the key it came with, which never changes. It is sent in the order
//! of acceptance, destination by destination, by one sender at a time, over all processes. It goes only when the server has said that it is
//! done; until then it is sent again under the same key, or stands there, failed or held, with the reason. Killed at any moment, nothing is
//! lost, and nothing is sent that the server could take for something new.
//!
//! Start at [`Queue::open`]. [`Sender`] sends, [`next`] is what it decides, [`age`] is how it knows how old something is.
//!
//! ```
//! use ichido_client::Action;
//! use ichido_client::queue::{Accepted, Queue};
//! use ichido_core::key::IdempotencyKey;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("ichido-doc-{}", std::process::id()));
//! # std::fs::create_dir(&folder)?;
//! # let file = folder.join("orders.queue");
//! let queue = Queue::open(&file).await?;
//! let order = |body: &'static str| {
//!     let key = IdempotencyKey::parse("order-1").expect("a key");
//!     Action::new(http::Method::POST, "/orders", key, "application/json", body)
//! };
//! let server = "https://shop.example";
//! let accepted = queue.accept(server, &[order(r#"{"qty":1}"#)?]).await?;
//! assert!(matches!(accepted[0], Accepted::New { .. }), "it is on the disk");
//! // The same again is the same, and under its key nothing else is taken.
//! assert!(matches!(queue.accept(server, &[order(r#"{"qty":1}"#)?]).await?[0], Accepted::Same { .. }));
//! assert!(matches!(queue.accept(server, &[order(r#"{"qty":2}"#)?]).await?[0], Accepted::Different { .. }));
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
//! use ichido_client::queue::{Queue, SendTerms};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let server = "https://shop.example";
//! let client = Arc::new(ClientSettings::new(server).resolve()?);
//! let queue = Queue::open("orders.queue").await?;
//! let mut sender = queue.sender(server, client, SendTerms::default()).await?;
//! // Until it is told to stop. `Sender::drain` sends what is there and comes back.
//! let stop = tokio::time::sleep(std::time::Duration::from_secs(60));
//! sender.run(stop, |event| println!("{event:?}")).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is in the file
//!
//! The requests as they will be sent: bodies and header fields are in it plainly, so that the file is made readable by its owner alone (mode
//! 0600). No token is: credentials come with the [`Client`](crate::Client) when an entry is sent, and a header field that is a
//! secret is refused. So a file belongs to whoever sends from it: the same key is the same action in it, unless the field `Ichido-Identity`
//! says that it is another's.
//!
//! Beside the file SQLite has its log (`-wal`, `-shm`), and each destination a lock (`.sender-…`) that the system frees when its holder dies.
//! Move and copy the file only while nobody uses it, and with its log.

mod accept;
pub mod age;
mod decide;
mod entry;
mod error;
mod fields;
mod file;
mod lock;
mod look;
pub mod next;
mod sender;
mod settle;
mod write_transaction;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::sqlite::SqlitePool;
use tokio::sync::watch;

pub use accept::Accepted;
pub use entry::{Entry, EntryId, Reason, State};
pub use error::QueueError;
pub use look::{EntryCount, Filter};
pub use sender::{Drained, Event, Proof, SendTerms, Sender, StepOutcome, What};

/// The most entries of a file, whatever their state.
pub const ENTRIES_MAX: i64 = 100_000;
/// The most bytes of an entry: body, header fields and path.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;
/// The longest name of a destination.
pub const DESTINATION_BYTES_MAX: usize = 2_048;
/// The most entries of one list.
pub const PAGE_MAX: u32 = 1_000;

/// A queue in a file. A clone is another handle on the same one.
#[derive(Clone, Debug)]
pub struct Queue {
    pool: SqlitePool,
    /// From the root, and the same by whatever name it was opened, so that its locks are.
    file: Arc<PathBuf>,
    signals: Arc<Signals>,
}

/// What those who wait are told.
#[derive(Debug, Default)]
struct Signals {
    /// There may be something to do.
    look: watch::Sender<()>,
    /// The network may be back.
    online: watch::Sender<()>,
}

impl Queue {
    /// Opens a queue, or makes one where there is no file. A file that is something else is refused, and left as it is.
    pub async fn open(file: impl AsRef<Path>) -> Result<Self, QueueError> {
        Self::open_or_create(file.as_ref(), true).await
    }

    /// The same, where the file must be there.
    pub async fn open_existing(file: impl AsRef<Path>) -> Result<Self, QueueError> {
        Self::open_or_create(file.as_ref(), false).await
    }

    async fn open_or_create(file: &Path, may_create: bool) -> Result<Self, QueueError> {
        let (pool, file) = file::open(file, may_create).await?;
        Ok(Self { pool, file: Arc::new(file), signals: Arc::default() })
    }

    /// Tells the senders of this process that the network may be back: whoever waits for it tries now.
    pub fn wake(&self) {
        self.signals.online.send_replace(());
    }

    /// Ends every handle on the file, in good order. What was answered for is durable without it.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    fn notify_senders(&self) {
        self.signals.look.send_replace(());
    }
}
