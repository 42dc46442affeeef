//! A transaction for the application's rows and the messages about them.
// Spec: D4, H4.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use ichido_store::error::StoreError;
use ichido_store::message::{Enqueued, NewMessage, QueueName};
use ichido_store::{Store, StoreDatabase};

use crate::message::{Draft, EnqueueError, drafted};
use crate::open_transaction::OpenTransaction;

/// A transaction that [`Ichido::begin`](crate::Ichido::begin) began. Run statements on `&mut *transaction`.
///
/// Dropped without a commit, it is rolled back, with its messages. The log then warns: call [`Transaction::rollback`] if
/// that is meant.
#[must_use = "a transaction that is not committed is rolled back"]
pub struct Transaction<DB: StoreDatabase> {
    store: Store,
    inner: OpenTransaction<DB>,
    /// The queues with new messages.
    queues: Uncommitted,
}

/// The queues of messages that are neither committed nor rolled back.
#[derive(Default)]
struct Uncommitted(BTreeSet<QueueName>);

impl Drop for Uncommitted {
    fn drop(&mut self) {
        if self.0.is_empty() || std::thread::panicking() {
            return;
        }
        let queues: Vec<&str> = self.0.iter().map(QueueName::as_str).collect();
        tracing::warn!(
            queues = queues.join(","),
            "transaction with messages was dropped without a commit, so they were not enqueued; call commit(), or \
                rollback() if that is meant"
        );
    }
}

impl<DB: StoreDatabase> Transaction<DB> {
    pub(crate) fn new(store: Store, inner: OpenTransaction<DB>) -> Self {
        Self { store, inner, queues: Uncommitted::default() }
    }

    /// Enqueues a message. It is visible to workers after the commit.
    ///
    /// After an error, roll back: otherwise the rows commit without their message.
    pub async fn enqueue(&mut self, message: impl Into<Draft> + Send) -> Result<Enqueued, EnqueueError> {
        let message = message.into().into_message()?;
        // Unreachable: one message has one outcome.
        Ok(self.enqueue_all(vec![message]).await?.pop().ok_or(StoreError::Busy)?)
    }

    /// Enqueues many messages. Returns the outcomes in the same order.
    ///
    /// After an error of the store, such as a key conflict, some of them may be in the transaction: it cannot commit.
    ///
    /// At most [`MAX_ENQUEUE`](ichido_store::message::limits::MAX_ENQUEUE) messages and 64 MiB in one call; more are refused, and none
    /// is enqueued.
    pub async fn enqueue_many<D: Into<Draft>>(
        &mut self,
        messages: impl IntoIterator<Item = D> + Send,
    ) -> Result<Vec<Enqueued>, EnqueueError> {
        Ok(self.enqueue_all(drafted(messages)?).await?)
    }

    pub(crate) async fn enqueue_all(
        &mut self,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        let queues: Vec<QueueName> = messages.iter().map(|message| message.queue.clone()).collect();
        let enqueued = self.inner.enqueue(&self.store, messages).await?;
        self.queues.0.extend(queues);
        Ok(enqueued)
    }

    /// Commits, and wakes the workers of the queues that got messages.
    ///
    /// A transaction in which a statement or [`Transaction::enqueue_many`] failed cannot commit: this fails, and nothing was
    /// done. After [`StoreError::Unknown`] it may or may not have committed.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        let queues = std::mem::take(&mut self.queues.0);
        if let Err(error) = self.inner.check().await {
            self.inner.roll_back().await;
            return Err(error);
        }
        let Self { store, inner, .. } = self;
        inner.commit().await.map_err(|error| match error {
            // A COMMIT was sent, so this does not say that nothing was done.
            StoreError::Unavailable(cause) => StoreError::Unknown(cause),
            error => error,
        })?;
        store.check_files()?;
        for queue in &queues {
            store.queues().wake(queue);
        }
        Ok(())
    }

    /// Rolls back, and waits for it.
    pub async fn rollback(mut self) {
        self.queues.0.clear();
        self.inner.roll_back().await;
    }
}

impl<DB: StoreDatabase> Deref for Transaction<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.inner
    }
}

impl<DB: StoreDatabase> DerefMut for Transaction<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.inner
    }
}
