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
/// Dropped without a commit, it is rolled back, with its messages.
#[must_use = "a transaction that is not committed is rolled back"]
pub struct Transaction<DB: StoreDatabase> {
    store: Store,
    inner: OpenTransaction<DB>,
    /// The queues with new messages.
    queues: BTreeSet<QueueName>,
}

impl<DB: StoreDatabase> Transaction<DB> {
    pub(crate) fn new(store: Store, inner: OpenTransaction<DB>) -> Self {
        Self { store, inner, queues: BTreeSet::new() }
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
    /// After an error, roll back: some of them may be in the transaction.
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
        self.queues.extend(messages.iter().map(|message| message.queue.clone()));
        self.inner.enqueue(&self.store, messages).await
    }

    /// Commits, and wakes the workers of the queues that got messages.
    ///
    /// A transaction in which a statement failed cannot commit: this fails, and nothing was done. After
    /// [`StoreError::Unknown`] it may or may not have committed.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        if let Err(error) = self.inner.check().await {
            self.inner.roll_back().await;
            return Err(error);
        }
        let Self { store, inner, queues } = self;
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
    pub async fn rollback(self) {
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
