//! The transaction that a handler writes in and the layer ends.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use http::Extensions;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeySettle, KeySettled};
use sqlx::{Database, Postgres, Sqlite, Transaction};
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
use tokio::time::timeout;

use super::settings::{Pool, limits};

type Slot<DB> = Arc<Mutex<Option<Transaction<'static, DB>>>>;

/// A handler's transaction, in its request's extensions: `Tx<Postgres>` or `Tx<Sqlite>`.
///
/// The handler locks it, runs its statements and releases it; the layer commits or rolls back when the handler has
/// responded. Do not keep it: a clone that outlives the handler finds the transaction ended, and one that is still locked
/// makes the request fail.
pub struct Tx<DB: Database>(Slot<DB>);

impl<DB: Database> Clone for Tx<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<DB: Database> fmt::Debug for Tx<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tx<{}>", DB::NAME)
    }
}

/// Why a transaction is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxError {
    /// The handler has responded.
    #[error(
        "the handler has responded and its transaction has ended; finish all work before the handler returns"
    )]
    Over,
    /// Another part of the handler holds the lock.
    #[error(
        "the request's transaction is locked elsewhere in the handler and was not released within {:?}; lock it \
            in one place at a time",
        limits::LOCK_WAIT
    )]
    Locked,
}

impl<DB: Database> Tx<DB> {
    fn new(transaction: Transaction<'static, DB>) -> Self {
        Self(Arc::new(Mutex::new(Some(transaction))))
    }

    /// Locks the connection, with the transaction open on it, while the guard lives.
    pub async fn lock(&self) -> Result<TxGuard<DB>, TxError> {
        let slot = timeout(limits::LOCK_WAIT, Arc::clone(&self.0).lock_owned()).await;
        let slot = slot.map_err(|_| TxError::Locked)?;
        OwnedMutexGuard::try_map(slot, Option::as_mut).map(TxGuard).map_err(|_| TxError::Over)
    }

    /// Takes the transaction back.
    ///
    /// Returns `None` if it is still locked; it is then rolled back on release.
    async fn close(self) -> Option<Transaction<'static, DB>> {
        if let Ok(mut slot) = timeout(limits::TRANSACTION_WAIT, self.0.lock()).await {
            return slot.take();
        }
        tokio::spawn(async move { drop(self.0.lock().await.take()) });
        None
    }
}

/// A handler's lock on its transaction. Use `&mut *guard` to run statements.
pub struct TxGuard<DB: Database>(
    OwnedMappedMutexGuard<Option<Transaction<'static, DB>>, Transaction<'static, DB>>,
);

impl<DB: Database> Deref for TxGuard<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.0
    }
}

impl<DB: Database> DerefMut for TxGuard<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.0
    }
}

impl<DB: Database> fmt::Debug for TxGuard<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TxGuard<{}>", DB::NAME)
    }
}

/// The transaction of one run, while the handler has it.
pub(crate) enum HandlerTx {
    Postgres(Tx<Postgres>),
    Sqlite(Tx<Sqlite>),
}

impl HandlerTx {
    pub(crate) async fn begin(pool: &Pool) -> Result<Self, StoreError> {
        Ok(match pool {
            Pool::Postgres(pool) => Self::Postgres(Tx::new(pool.begin().await?)),
            Pool::Sqlite(pool) => Self::Sqlite(Tx::new(Store::begin_immediate(pool).await?)),
        })
    }

    /// Adds it to the request's extensions.
    pub(crate) fn lend(&self, extensions: &mut Extensions) {
        match self {
            Self::Postgres(tx) => drop(extensions.insert(tx.clone())),
            Self::Sqlite(tx) => drop(extensions.insert(tx.clone())),
        }
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
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
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

impl OpenTx {
    /// Writes the outcome into the transaction, under its fence.
    pub(crate) async fn settle(
        &mut self,
        store: &Store,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        match self {
            Self::Postgres(open) => store.keys().settle_in(open, settle).await,
            Self::Sqlite(open) => store.keys().settle_in(open, settle).await,
        }
    }

    pub(crate) async fn commit(self, store: &Store) -> CommitOutcome {
        let outcome = match self {
            Self::Postgres(open) => open.commit().await,
            Self::Sqlite(open) => open.commit().await,
        };
        match outcome.map_err(StoreError::from).and_then(|()| store.check_files()) {
            Ok(()) => CommitOutcome::Done,
            Err(StoreError::Busy) => CommitOutcome::Contended,
            // A file that was moved or replaced stores nothing.
            Err(error @ (StoreError::Refused(_) | StoreError::Full | StoreError::FileLost { .. })) => {
                CommitOutcome::Refused(error)
            }
            Err(error) => CommitOutcome::InDoubt(error),
        }
    }

    /// Rolls back and waits for it, so nothing blocks the next step.
    ///
    /// A failed rollback has ended the connection and with it the transaction.
    pub(crate) async fn roll_back(self) {
        let outcome = match self {
            Self::Postgres(open) => open.rollback().await,
            Self::Sqlite(open) => open.rollback().await,
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "rollback failed; the database rolls back automatically");
        }
    }
}
