//! A transaction in which code that is not ours runs statements.
//!
//! Guarantee: it is not mistaken for open when it has ended or failed. Such code may run `COMMIT` or `ROLLBACK`, SQLite rolls back
//! by itself when the disk is full, and PostgreSQL answers the COMMIT of a failed transaction as if it had succeeded. Whatever
//! is written after that would commit on its own.
// Spec: D4, H1.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use ichido_store::error::StoreError;
use ichido_store::{Begun, StoreDatabase, TransactionState};
use sqlx::{Pool, Transaction};
use tokio::time::timeout;

/// How long to wait for a rollback. It goes on after that: a statement may still be running.
const ROLLBACK_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct OpenTransaction<DB: StoreDatabase> {
    inner: Transaction<'static, DB>,
    has_ended: bool,
}

impl<DB: StoreDatabase> OpenTransaction<DB> {
    pub(crate) async fn begin(pool: &Pool<DB>) -> Result<Self, StoreError> {
        Ok(Self { inner: DB::begin(pool).await?, has_ended: false })
    }

    /// Fails if a write would now commit on its own. On PostgreSQL asking costs a round trip, so it is not asked: see
    /// [`OpenTransaction::begun`].
    pub(crate) async fn check_for_write(&mut self) -> Result<(), StoreError> {
        if DB::ROLLS_BACK_BY_ITSELF { self.check().await } else { Ok(()) }
    }

    /// Fails if it has ended, or can only be rolled back.
    pub(crate) async fn check(&mut self) -> Result<(), StoreError> {
        let why = match self.state().await {
            TransactionState::Open => return Ok(()),
            TransactionState::Failed => {
                "a statement of the transaction failed, so it can only be rolled back"
            }
            TransactionState::Ended => {
                "the transaction has ended before its commit: by a COMMIT or ROLLBACK statement, a full disk or an I/O error"
            }
        };
        Err(StoreError::Refused(sqlx::Error::Protocol(why.to_owned())))
    }

    /// Returns the connection for a settlement, which on PostgreSQL writes nothing if the transaction has ended.
    pub(crate) fn begun(&mut self) -> Begun<'_, DB::Connection> {
        Begun(&mut self.inner)
    }

    async fn state(&mut self) -> TransactionState {
        if self.has_ended {
            return TransactionState::Ended;
        }
        let state = DB::state_of(&mut self.inner).await;
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
            let had_ended = self.state().await == TransactionState::Ended;
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

impl<DB: StoreDatabase> Deref for OpenTransaction<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.inner
    }
}

impl<DB: StoreDatabase> DerefMut for OpenTransaction<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.inner
    }
}
