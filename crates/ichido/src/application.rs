//! An application's own database, with Ichido's tables in it.
//!
//! Guarantee: a message is enqueued by the same call on a pool, in a transaction, on PostgreSQL and on SQLite. In a
//! transaction it commits together with the application's rows, or not at all. A key that was used for another payload is
//! an error.
//!
//! ```
//! use ichido::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct SendReceipt {
//!     order: i64,
//! }
//!
//! impl Message for SendReceipt {
//!     const QUEUE: &str = "mail";
//!
//!     fn key(&self) -> Option<String> {
//!         Some(format!("order-{}", self.order))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let url = &file.url;
//! let ichido = Ichido::<Sqlite>::connect(url).await?;
//! # sqlx::query("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)").execute(ichido.pool()).await?;
//! let mut tx = ichido.begin().await?;
//! let order = sqlx::query("INSERT INTO orders (item) VALUES ('apple')").execute(&mut *tx).await?.last_insert_rowid();
//! tx.enqueue(&SendReceipt { order }).await?;
//! tx.commit().await?; // The order and its message, or neither; the worker is woken.
//! # Ok(())
//! # }
//! ```
//!
//! # A conflict cannot be overlooked
//!
//! A result that is dropped is a warning of the compiler:
//!
//! ```compile_fail
//! #![deny(unused_must_use)]
//! # use ichido::prelude::*;
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct SendReceipt;
//! # impl Message for SendReceipt { const QUEUE: &str = "mail"; }
//! async fn place(tx: &mut Transaction<Sqlite>) {
//!     tx.enqueue(&SendReceipt).await;
//! }
//! ```
//!
//! Pass it on with `?`, or decide what it means:
//!
//! ```
//! #![deny(unused_must_use)]
//! # use ichido::prelude::*;
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct SendReceipt;
//! # impl Message for SendReceipt { const QUEUE: &str = "mail"; }
//! async fn place(tx: &mut Transaction<Sqlite>) -> Result<(), EnqueueError> {
//!     tx.enqueue(&SendReceipt).await?;
//!     Ok(())
//! }
//! ```
// Spec: D1, D4, H4.

#[cfg(feature = "once")]
use std::sync::{Arc, OnceLock};

use ichido_store::error::StoreError;
use ichido_store::message::{CancelOutcome, Enqueued, Note, QueueName};
use ichido_store::{CallerConnection, Store, StoreDatabase};
use sqlx::Pool;
use uuid::Uuid;

use crate::message::{Draft, EnqueueError, drafted};
#[cfg(feature = "once")]
use crate::once::{self, LeaseKeeper};
use crate::open_transaction::OpenTransaction;
use crate::transaction::Transaction;
use crate::worker::Worker;

/// How many connections [`Ichido::connect`] opens at most, for the store and for the application each.
pub const MAX_CONNECTIONS: u32 = 8;

/// An application's own database, with Ichido's tables in it: `Ichido<Postgres>` or `Ichido<Sqlite>`.
///
/// Cheap to clone; all clones are the same. The [module](self) has an example.
pub struct Ichido<DB: StoreDatabase> {
    store: Store,
    pool: Pool<DB>,
    /// Created with the first layer: a program without one has no keys to maintain.
    #[cfg(feature = "once")]
    keeper: Arc<OnceLock<LeaseKeeper>>,
}

// Not derived: that would ask for a database type that is cloned.
impl<DB: StoreDatabase> Clone for Ichido<DB> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            pool: self.pool.clone(),
            #[cfg(feature = "once")]
            keeper: Arc::clone(&self.keeper),
        }
    }
}

impl<DB: StoreDatabase> Ichido<DB> {
    /// Opens a database and creates Ichido's tables in it.
    ///
    /// The URL is `postgres://…` or `sqlite:path`, whose file is created. [`Store::open`] has the details.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let store = Store::open(url, MAX_CONNECTIONS).await?;
        Ok(Self::new(store, DB::connect(url, MAX_CONNECTIONS).await?))
    }

    /// Combines a store and a pool, which must be on the same database.
    pub fn new(store: Store, pool: Pool<DB>) -> Self {
        Self {
            store,
            pool,
            #[cfg(feature = "once")]
            keeper: Arc::default(),
        }
    }

    /// Returns the application's own connections, for its reads and its writes without messages.
    pub fn pool(&self) -> &Pool<DB> {
        &self.pool
    }

    /// Returns the store: Ichido's tables.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Begins a transaction for the application's rows and the messages about them.
    ///
    /// On SQLite it is the only writer from here on: keep it short.
    pub async fn begin(&self) -> Result<Transaction<DB>, StoreError> {
        Ok(Transaction::new(self.store.clone(), OpenTransaction::begin(&self.pool).await?))
    }

    /// Enqueues a message in its own transaction. It is durable when this returns.
    pub async fn enqueue(&self, message: impl Into<Draft> + Send) -> Result<Enqueued, EnqueueError> {
        Ok(self.store.messages().enqueue(message.into().into_message()?).await?)
    }

    /// Enqueues many messages in one transaction: all of them, or none. Returns the outcomes in the same order.
    ///
    /// At most [`MAX_ENQUEUE`](ichido_store::message::limits::MAX_ENQUEUE) messages and 64 MiB in one call; more are refused, and none
    /// is enqueued.
    pub async fn enqueue_many<D: Into<Draft>>(
        &self,
        messages: impl IntoIterator<Item = D> + Send,
    ) -> Result<Vec<Enqueued>, EnqueueError> {
        let messages = drafted(messages)?;
        let mut transaction = self.begin().await?;
        let enqueued = transaction.enqueue_all(messages).await?;
        transaction.commit().await?;
        Ok(enqueued)
    }

    /// Enqueues a message in a transaction that sqlx began, such as `&mut *transaction`.
    ///
    /// Call [`Ichido::wake`] after its commit; otherwise the worker finds the message when it next polls. On SQLite, begin
    /// the transaction with [`Store::begin_immediate`]: one that reads before it writes may fail otherwise.
    pub async fn enqueue_in(
        &self,
        connection: &mut impl CallerConnection,
        message: impl Into<Draft> + Send,
    ) -> Result<Enqueued, EnqueueError> {
        Ok(self.store.messages().enqueue_in(connection, message.into().into_message()?).await?)
    }

    /// Cancels a message that waits, or asks its handler to stop if it runs.
    ///
    /// The handler sees it as [`Job::cancel`](crate::destination::Job::cancel), within seconds and on any node. The message is
    /// cancelled if nothing was done; otherwise what is known of the effect decides. `ichido.store().messages().cancel(…)` also
    /// takes who asked, and why.
    // Spec: D2, H5.
    pub async fn cancel(&self, id: Uuid) -> Result<CancelOutcome, StoreError> {
        self.store.messages().cancel(id, &Note::default()).await
    }

    /// Wakes the workers of a queue.
    ///
    /// Call it after the commit of a transaction that [`Ichido::begin`] did not begin.
    pub fn wake(&self, queue: &str) {
        // A name that is not valid has no workers.
        if let Some(queue) = QueueName::parse(queue) {
            self.store.queues().wake(&queue);
        }
    }

    /// Creates a worker that delivers this database's messages. Its transactional handlers use this pool.
    pub fn worker(&self) -> Worker
    where
        Pool<DB>: Into<crate::Pool>,
    {
        Worker::new(self.store.clone()).pool(self.pool.clone())
    }
}

#[cfg(feature = "once")]
impl<DB: StoreDatabase> Ichido<DB> {
    /// Returns the guarantee of a handler that writes in this database: its rows and its response commit together.
    pub fn transactional(&self) -> once::Guarantee
    where
        Pool<DB>: Into<crate::Pool>,
    {
        once::Guarantee::Transactional(self.pool.clone().into())
    }

    /// Returns the keeper of this database's layers. The first call starts it, within a tokio runtime.
    ///
    /// [`Once::build`](once::Once::build) takes `&ichido` itself; on shutdown, await [`LeaseKeeper::drained`].
    pub fn keeper(&self) -> &LeaseKeeper {
        self.keeper.get_or_init(|| LeaseKeeper::new(self.store.clone()))
    }
}

#[cfg(feature = "once")]
impl<DB: StoreDatabase> AsRef<LeaseKeeper> for Ichido<DB> {
    fn as_ref(&self) -> &LeaseKeeper {
        self.keeper()
    }
}
