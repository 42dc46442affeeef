//! A transaction in which code that is not ours runs statements.
//!
//! Guarantee: it is not mistaken for open when it has ended or failed. Such code may run `COMMIT` or `ROLLBACK`, SQLite rolls back
//! by itself when the disk is full, and PostgreSQL answers the COMMIT of a failed transaction as if it had succeeded. Whatever
//! is written after that would commit on its own.
// Spec: D4, H1.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

#[cfg(feature = "worker")]
use ichido_store::Store;
use ichido_store::error::StoreError;
#[cfg(feature = "worker")]
use ichido_store::message::{Enqueued, NewMessage};
use ichido_store::{Begun, StoreDatabase, TransactionState};
use sqlx::{Pool, Transaction};
use tokio::time::timeout;

/// How long to wait for a rollback. It goes on after that: a statement may still be running.
const ROLLBACK_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct OpenTransaction<DB: StoreDatabase> {
    inner: Transaction<'static, DB>,
    has_ended: bool,
    /// Our last statement found it open, and no other has run since: there is nothing to ask.
    is_known_open: bool,
    /// A call may have enqueued only some of its messages.
    is_partial: bool,
    /// It was asked for the last time, which on SQLite removes the mark.
    is_unmarked: bool,
}

impl<DB: StoreDatabase> OpenTransaction<DB> {
    pub(crate) async fn begin(pool: &Pool<DB>) -> Result<Self, StoreError> {
        let inner = DB::begin(pool).await?;
        Ok(Self { inner, has_ended: false, is_known_open: true, is_partial: false, is_unmarked: false })
    }

    /// Fails if a write would now commit on its own. On PostgreSQL asking costs a round trip, so it is not asked: see
    /// [`OpenTransaction::begun`].
    #[cfg(feature = "worker")]
    async fn check_for_write(&mut self) -> Result<(), StoreError> {
        if DB::ROLLS_BACK_BY_ITSELF { self.state().await.check() } else { Ok(()) }
    }

    /// The same for the settlement, which is its last write.
    pub(crate) async fn check_for_settlement(&mut self) -> Result<(), StoreError> {
        if DB::ROLLS_BACK_BY_ITSELF { self.check().await } else { self.check_whole() }
    }

    /// Fails if it has ended, or can only be rolled back. Nothing but our own statements may follow.
    pub(crate) async fn check(&mut self) -> Result<(), StoreError> {
        self.last_state().await.check()?;
        self.check_whole()
    }

    /// Fails if it may have a part of the messages of one call.
    fn check_whole(&self) -> Result<(), StoreError> {
        if self.is_partial { TransactionState::Partial.check() } else { Ok(()) }
    }

    /// Enqueues messages, unless it has ended. If some of many fail, it cannot commit.
    #[cfg(feature = "worker")]
    pub(crate) async fn enqueue(
        &mut self,
        store: &Store,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        self.check_for_write().await?;
        let was_known_open = self.is_known_open;
        let count = messages.len();
        let enqueued = store.messages().enqueue_all_in(&mut self.begun(), messages).await;
        self.is_partial |= 1 < count && enqueued.as_ref().is_err_and(may_have_written);
        let enqueued = enqueued?;
        // Without a message there was no statement. On SQLite none tells this transaction from another.
        self.is_known_open = was_known_open || (!DB::ROLLS_BACK_BY_ITSELF && !enqueued.is_empty());
        Ok(enqueued)
    }

    /// Returns the connection for a write of ours, which on PostgreSQL does nothing if the transaction has ended.
    pub(crate) fn begun(&mut self) -> Begun<'_, DB::Connection> {
        self.is_known_open = false;
        Begun(&mut self.inner)
    }

    #[cfg(feature = "worker")]
    async fn state(&mut self) -> TransactionState {
        self.ask(false).await
    }

    async fn last_state(&mut self) -> TransactionState {
        self.ask(true).await
    }

    async fn ask(&mut self, is_last: bool) -> TransactionState {
        if self.has_ended {
            return TransactionState::Ended;
        }
        if self.is_known_open {
            return TransactionState::Open;
        }
        let state = if is_last && !self.is_unmarked {
            self.is_unmarked = true;
            DB::last_state_of(&mut self.inner).await
        } else {
            DB::state_of(&mut self.inner).await
        };
        if state == TransactionState::Ended {
            tracing::error!(
                "a transaction had ended before its commit; run no COMMIT or ROLLBACK in it, and look for a full disk"
            );
            self.has_ended = true;
        }
        state
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        Ok(self.inner.commit().await?)
    }

    /// Rolls back. Returns whether it had ended before, so that its writes may be committed.
    ///
    /// Waits for it, unless a statement runs for too long: that one is rolled back when it ends.
    pub(crate) async fn roll_back(mut self) -> bool {
        let ending = tokio::spawn(async move {
            let had_ended = self.last_state().await == TransactionState::Ended;
            if let Err(error) = self.inner.rollback().await {
                tracing::debug!(%error, "rollback failed; the database rolls back automatically");
            }
            had_ended
        });
        if let Ok(Ok(had_ended)) = timeout(ROLLBACK_WAIT, ending).await {
            return had_ended;
        }
        tracing::warn!("a rollback waits for a statement that still runs");
        false
    }
}

/// Returns whether a call that failed like this may have enqueued some of its messages.
#[cfg(feature = "worker")]
const fn may_have_written(error: &StoreError) -> bool {
    // The arguments are checked before the first statement.
    !matches!(
        error,
        StoreError::TooLarge { .. }
            | StoreError::OutOfRange { .. }
            | StoreError::Empty { .. }
            | StoreError::NulInText { .. }
            | StoreError::WrongDatabase(_)
    )
}

impl<DB: StoreDatabase> Deref for OpenTransaction<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.inner
    }
}

impl<DB: StoreDatabase> DerefMut for OpenTransaction<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.is_known_open = false;
        &mut self.inner
    }
}
