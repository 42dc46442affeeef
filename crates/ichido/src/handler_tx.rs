//! The transaction that a handler writes in, and that the layer or the worker ends with its outcome.
//!
//! Guarantee: it begins when the handler first locks it, and commits only together with the settlement of its key or
//! message. Whatever the handler leaves behind is rolled back.
//!
//! Start at [`Tx`]. [`HandlerTx`] is the same for the code around the handler, which takes it back as an [`OpenTx`].
// Spec: C10, H1.

#[cfg(feature = "worker")]
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex as SyncMutex};
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_store::error::StoreError;
#[cfg(feature = "once")]
use ichido_store::ledger::{KeyRecorded, KeyRecording, KeySettle, KeySettled};
use ichido_store::message::QueueName;
#[cfg(feature = "worker")]
use ichido_store::message::{Enqueued, NewMessage, Settlement, StepResult};
use ichido_store::{Begun, Store, StoreDatabase};
use sqlx::{PgPool, Postgres, Sqlite, SqlitePool};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard, watch};
use tokio::time::timeout;

#[cfg(feature = "worker")]
use crate::message::{Draft, EnqueueError, drafted};
use crate::open_transaction::OpenTransaction;

/// How long a handler waits for its transaction while another part of it holds the lock.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(10);
/// How long to wait for a transaction that is locked after its handler ended.
pub(crate) const TRANSACTION_WAIT: Duration = Duration::from_secs(2);

/// How long the last statement of a transaction may take, and then its COMMIT.
///
/// Their connection is the handler's own, which may have no timeout.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(20);

/// The service's own connections to the store's database.
#[derive(Clone, Debug)]
pub enum Pool {
    /// To PostgreSQL.
    Postgres(PgPool),
    /// To an SQLite file.
    Sqlite(SqlitePool),
}

impl Pool {
    /// Warns in the background if tables of its user would be taken for Ichido's.
    pub(crate) fn warn_of_our_schema(&self) {
        let (Self::Postgres(pool), Ok(runtime)) = (self, Handle::try_current()) else { return };
        let pool = pool.clone();
        runtime.spawn(async move {
            // Whatever else is wrong with it appears at its first use.
            if let Err(StoreError::Address(why)) = Postgres::check_schema(&pool).await {
                tracing::warn!(why, "tables of this pool would be taken for Ichido's");
            }
        });
    }

    /// Returns whether it leads to the store's database.
    #[cfg(feature = "once")]
    pub(crate) async fn is_on(&self, store: &Store) -> Result<bool, StoreError> {
        match self {
            Self::Postgres(pool) => store.is_database_of(&mut *pool.acquire().await?).await,
            Self::Sqlite(pool) => store.is_database_of(&mut *pool.acquire().await?).await,
        }
    }
}

impl From<PgPool> for Pool {
    fn from(pool: PgPool) -> Self {
        Self::Postgres(pool)
    }
}

impl From<SqlitePool> for Pool {
    fn from(pool: SqlitePool) -> Self {
        Self::Sqlite(pool)
    }
}

/// A handler's transaction on the store's database: `Tx<Postgres>` or `Tx<Sqlite>`.
///
/// It begins with the first [`Tx::lock`]. The handler locks it, runs its statements and releases it; it is committed or
/// rolled back when the handler has ended. Do not keep it: a clone that outlives the handler finds the transaction ended,
/// and one that is still locked makes the handler fail.
pub struct Tx<DB: StoreDatabase>(Arc<TxState<DB>>);

struct TxState<DB: StoreDatabase> {
    store: Store,
    pool: sqlx::Pool<DB>,
    stage: Arc<Mutex<Stage<DB>>>,
    /// How far it has come, for those who do not lock it.
    progress: watch::Sender<TxProgress>,
    /// The queues that got messages, to wake after the commit.
    woken: SyncMutex<BTreeSet<QueueName>>,
}

enum Stage<DB: StoreDatabase> {
    NotBegun,
    Open(OpenTransaction<DB>),
    Over,
}

/// How far a transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxProgress {
    NotBegun,
    /// The handler wanted it, but the database did not begin it.
    Failed,
    Begun,
}

impl<DB: StoreDatabase> Clone for Tx<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<DB: StoreDatabase> fmt::Debug for Tx<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tx<{}>", DB::NAME)
    }
}

/// Why a transaction is not available.
#[derive(Debug, thiserror::Error)]
pub enum TxError {
    /// The handler has ended.
    #[error("the handler has ended and so has its transaction; finish all work before the handler returns")]
    Over,
    /// Another part of the handler holds the lock.
    #[error(
        "the transaction is locked elsewhere in the handler and was not released within {LOCK_WAIT:?}; lock it in one \
            place at a time"
    )]
    Locked,
    /// The database did not begin it.
    #[error("the transaction could not be begun")]
    Begin(#[source] StoreError),
}

impl<DB: StoreDatabase> Tx<DB> {
    fn new(store: Store, pool: sqlx::Pool<DB>) -> Self {
        let stage = Arc::new(Mutex::new(Stage::NotBegun));
        let progress = watch::Sender::new(TxProgress::NotBegun);
        Self(Arc::new(TxState { store, pool, stage, progress, woken: SyncMutex::default() }))
    }

    /// Locks the connection, with the transaction open on it, while the guard lives. The first lock begins it.
    pub async fn lock(&self) -> Result<TxGuard<DB>, TxError> {
        let stage = timeout(LOCK_WAIT, Arc::clone(&self.0.stage).lock_owned()).await;
        let mut stage = stage.map_err(|_| TxError::Locked)?;
        if let Stage::NotBegun = *stage {
            let begun = OpenTransaction::begin(&self.0.pool).await;
            let progress = if begun.is_ok() { TxProgress::Begun } else { TxProgress::Failed };
            self.0.progress.send_replace(progress);
            *stage = Stage::Open(begun.map_err(TxError::Begin)?);
        }
        let open = OwnedMutexGuard::try_map(stage, |stage| match stage {
            Stage::Open(open) => Some(open),
            Stage::NotBegun | Stage::Over => None,
        });
        let open = open.map_err(|_| TxError::Over)?;
        Ok(TxGuard { open, tx: self.clone() })
    }

    /// Takes the transaction back.
    ///
    /// Returns `None` if it is still locked; it is then rolled back on release.
    async fn close(self) -> Option<EndedTx<DB>> {
        let Ok(mut stage) = timeout(TRANSACTION_WAIT, Arc::clone(&self.0.stage).lock_owned()).await else {
            tokio::spawn(async move { *self.0.stage.lock().await = Stage::Over });
            return None;
        };
        let open = match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Open(open) => Some(open),
            Stage::NotBegun | Stage::Over => None,
        };
        Some(EndedTx { tx: self, open })
    }
}

/// A handler's lock on its transaction. Use `&mut *guard` to run statements.
pub struct TxGuard<DB: StoreDatabase> {
    open: OwnedMappedMutexGuard<Stage<DB>, OpenTransaction<DB>>,
    #[cfg_attr(not(feature = "worker"), expect(dead_code, reason = "only the outbox needs it"))]
    tx: Tx<DB>,
}

#[cfg(feature = "worker")]
impl<DB: StoreDatabase> TxGuard<DB> {
    /// Enqueues a message in the transaction: it is sent only if the handler's work commits.
    ///
    /// Its queue is woken after the commit. Return an error with `?`: otherwise the handler's work commits without the message.
    pub async fn enqueue(&mut self, message: impl Into<Draft>) -> Result<Enqueued, EnqueueError> {
        let message = message.into().into_message()?;
        // Unreachable: one message has one outcome.
        Ok(self.enqueue_all(vec![message]).await?.pop().ok_or(StoreError::Busy)?)
    }

    /// Enqueues many messages in the transaction. Returns the outcomes in the same order.
    ///
    /// Return an error with `?`: some of the messages may be in the transaction, which then cannot commit.
    ///
    /// At most [`MAX_ENQUEUE`](ichido_store::message::limits::MAX_ENQUEUE) messages and 64 MiB in one call; more are refused, and none
    /// is enqueued.
    pub async fn enqueue_many<D: Into<Draft>>(
        &mut self,
        messages: impl IntoIterator<Item = D> + Send,
    ) -> Result<Vec<Enqueued>, EnqueueError> {
        Ok(self.enqueue_all(drafted(messages)?).await?)
    }

    async fn enqueue_all(&mut self, messages: Vec<NewMessage>) -> Result<Vec<Enqueued>, StoreError> {
        let queues: Vec<QueueName> = messages.iter().map(|message| message.queue.clone()).collect();
        let enqueued = self.open.enqueue(&self.tx.0.store, messages).await?;
        lock(&self.tx.0.woken).extend(queues);
        Ok(enqueued)
    }
}

impl<DB: StoreDatabase> Deref for TxGuard<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.open
    }
}

impl<DB: StoreDatabase> DerefMut for TxGuard<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.open
    }
}

impl<DB: StoreDatabase> fmt::Debug for TxGuard<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TxGuard<{}>", DB::NAME)
    }
}

/// A handler's transaction after the handler ended. Dropping it rolls back.
pub(crate) struct EndedTx<DB: StoreDatabase> {
    tx: Tx<DB>,
    /// `None` if the handler did not use it.
    open: Option<OpenTransaction<DB>>,
}

/// The outcome of a commit.
pub(crate) enum CommitOutcome {
    Done,
    /// It conflicted with another transaction: rolled back, can be run again.
    Contended,
    /// It was refused: rolled back.
    Refused(StoreError),
    /// The outcome is unknown.
    InDoubt(StoreError),
}

impl<DB: StoreDatabase> EndedTx<DB> {
    /// Returns the open transaction for its settlement. It begins now if the handler did not use it; otherwise it must not have ended.
    async fn connection_to_settle(&mut self) -> Result<Begun<'_, DB::Connection>, StoreError> {
        match &mut self.open {
            Some(open) => open.check_for_settlement().await?,
            None => self.open = Some(OpenTransaction::begin(&self.tx.0.pool).await?),
        }
        // Unreachable: it is open.
        self.open.as_mut().map(OpenTransaction::begun).ok_or(StoreError::Busy)
    }

    #[cfg(feature = "once")]
    async fn settle_key(&mut self, settle: &KeySettle) -> Result<KeySettled, StoreError> {
        let store = self.tx.0.store.clone();
        let mut open = self.connection_to_settle().await?;
        store.keys().settle_in(&mut open, settle).await
    }

    #[cfg(feature = "once")]
    async fn record_key(&mut self, recording: &KeyRecording) -> Result<KeyRecorded, StoreError> {
        let store = self.tx.0.store.clone();
        let mut open = self.connection_to_settle().await?;
        store.keys().record_in(&mut open, recording).await
    }

    #[cfg(feature = "worker")]
    async fn settle_message(&mut self, settlement: &Settlement) -> Result<StepResult, StoreError> {
        let store = self.tx.0.store.clone();
        let mut open = self.connection_to_settle().await?;
        store.claims().settle_in(&mut open, settlement).await
    }

    async fn commit(self) -> CommitOutcome {
        let Self { tx, open } = self;
        let outcome = match open {
            Some(open) => open.commit().await,
            None => Ok(()),
        };
        let store = &tx.0.store;
        match outcome.and_then(|()| store.check_files()) {
            Ok(()) => {
                for queue in &*lock(&tx.0.woken) {
                    store.queues().wake(queue);
                }
                CommitOutcome::Done
            }
            Err(StoreError::Busy) => CommitOutcome::Contended,
            // A file that was moved or replaced stores nothing.
            Err(error @ (StoreError::Refused(_) | StoreError::Full | StoreError::FileLost { .. })) => {
                CommitOutcome::Refused(error)
            }
            Err(error) => CommitOutcome::InDoubt(error),
        }
    }

    async fn roll_back(self) -> bool {
        match self.open {
            Some(open) => open.roll_back().await,
            None => false,
        }
    }
}

/// The transaction of one run on either database, while the handler has it.
#[derive(Clone, Debug)]
pub(crate) enum HandlerTx {
    Postgres(Tx<Postgres>),
    Sqlite(Tx<Sqlite>),
}

/// Calls a method that both databases have.
macro_rules! on {
    ($kind:ident, $this:expr, $tx:ident => $call:expr) => {
        match $this {
            $kind::Postgres($tx) => $call,
            $kind::Sqlite($tx) => $call,
        }
    };
}

impl HandlerTx {
    pub(crate) fn new(store: &Store, pool: &Pool) -> Self {
        match pool {
            Pool::Postgres(pool) => Self::Postgres(Tx::new(store.clone(), pool.clone())),
            Pool::Sqlite(pool) => Self::Sqlite(Tx::new(store.clone(), pool.clone())),
        }
    }

    /// Returns it, if it is on this database.
    #[cfg(feature = "worker")]
    pub(crate) fn on<DB: StoreDatabase>(&self) -> Option<Tx<DB>> {
        on!(Self, self, tx => (tx as &dyn Any).downcast_ref().cloned())
    }

    /// Adds it to the request's extensions.
    #[cfg(feature = "once")]
    pub(crate) fn lend(&self, extensions: &mut http::Extensions) {
        on!(Self, self, tx => drop(extensions.insert(tx.clone())));
    }

    /// Returns how far it has come.
    #[cfg(feature = "once")]
    pub(crate) fn progress(&self) -> TxProgress {
        on!(Self, self, tx => *tx.0.progress.borrow())
    }

    /// Waits until it has begun.
    #[cfg(feature = "worker")]
    pub(crate) async fn begun(&self) {
        let mut progress = on!(Self, self, tx => tx.0.progress.subscribe());
        // The sender is ours, so it cannot be dropped.
        drop(progress.wait_for(|progress| *progress == TxProgress::Begun).await);
    }

    /// Takes it back. Returns `None` if it is still locked after the handler ended.
    pub(crate) async fn take_back(self) -> Option<OpenTx> {
        match self {
            Self::Postgres(tx) => tx.close().await.map(OpenTx::Postgres),
            Self::Sqlite(tx) => tx.close().await.map(OpenTx::Sqlite),
        }
    }
}

/// The transaction of one run after the handler ended. Dropping it rolls back.
pub(crate) enum OpenTx {
    Postgres(EndedTx<Postgres>),
    Sqlite(EndedTx<Sqlite>),
}

impl OpenTx {
    /// Writes the outcome of a key into the transaction, under its fence.
    #[cfg(feature = "once")]
    pub(crate) async fn settle_key(&mut self, settle: &KeySettle) -> Result<KeySettled, StoreError> {
        on!(Self, self, tx => tx.settle_key(settle).await)
    }

    /// Writes the outcome of a key that nobody claimed into the transaction.
    #[cfg(feature = "once")]
    pub(crate) async fn record_key(&mut self, recording: &KeyRecording) -> Result<KeyRecorded, StoreError> {
        on!(Self, self, tx => tx.record_key(recording).await)
    }

    /// Writes the success of a message into the transaction, under its fence.
    #[cfg(feature = "worker")]
    pub(crate) async fn settle_message(&mut self, settlement: &Settlement) -> Result<StepResult, StoreError> {
        on!(Self, self, tx => tx.settle_message(settlement).await)
    }

    /// Commits, and wakes the queues that got messages.
    pub(crate) async fn commit(self) -> CommitOutcome {
        on!(Self, self, tx => tx.commit().await)
    }

    /// Rolls back and waits for it, so nothing blocks the next step. Returns whether it had ended before the handler did: by a
    /// statement of its own, such as `COMMIT`, or by the database.
    ///
    /// A failed rollback has ended the connection and with it the transaction.
    pub(crate) async fn roll_back(self) -> bool {
        on!(Self, self, tx => tx.roll_back().await)
    }
}
