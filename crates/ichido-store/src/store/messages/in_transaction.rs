//! Enqueuing in the caller's own transaction.

use super::super::Messages;
use super::numbered;
use crate::caller_transaction::CallerConnection;
use crate::check;
use crate::error::StoreError;
use crate::message::{Enqueued, NewMessage, count_enqueue, limits};

impl Messages<'_> {
    /// Enqueues a message within the caller's open transaction: both commit, or neither.
    ///
    /// Call [`Queues::wake`](crate::Queues::wake) after the commit.
    ///
    /// The transaction must be on the store's own database; on a connection without a transaction, the message is enqueued at
    /// once. A message that is out of bounds is refused before it reaches the database and leaves the transaction usable, and
    /// so does a key that was used before for another request ([`StoreError::KeyConflict`]); roll back after any other error.
    ///
    /// - **PostgreSQL**: two transactions that enqueue the same key wait for each other, so keep them short.
    /// - **SQLite**: begin the transaction with [`Store::begin_immediate`](crate::Store::begin_immediate), keep it short, and
    ///   await nothing else of this store inside it: while it is open nobody else can write, and a write of this store waits 5
    ///   seconds and then fails with [`StoreError::Busy`].
    ///
    /// ```
    /// use ichido_core::key::IdempotencyKey;
    /// use ichido_store::Store;
    /// use ichido_store::message::{NewMessage, QueueName};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let file = ichido_store::testing::sqlite::fresh_file();
    /// # let url = &file.url;
    /// let store = Store::open(url, 4).await?;
    /// let pool = sqlx::SqlitePool::connect(url).await?; // Your own, on the same file.
    /// # sqlx::query("CREATE TABLE orders (what TEXT)").execute(&pool).await?;
    /// let queue = QueueName::parse("mail").ok_or("a name")?;
    /// let key = IdempotencyKey::parse("order-4711")?;
    ///
    /// let mut transaction = Store::begin_immediate(&pool).await?; // On PostgreSQL: `pool.begin()`.
    /// sqlx::query("INSERT INTO orders VALUES ('apple')").execute(&mut *transaction).await?;
    /// let message = NewMessage::new(queue.clone(), "ann", key, b"thanks!".to_vec());
    /// store.messages().enqueue_in(&mut transaction, message).await?;
    /// transaction.commit().await?;
    /// store.queues().wake(&queue);
    /// # Ok(())
    /// # }
    /// ```
    // SPEC D4.
    pub async fn enqueue_in(
        self,
        connection: &mut impl CallerConnection,
        message: NewMessage,
    ) -> Result<Enqueued, StoreError> {
        self.enqueue_all_in(connection, vec![message]).await?.pop().ok_or(StoreError::Busy)
    }

    /// Enqueues many messages like [`Messages::enqueue_in`]. Returns the outcomes in the same order.
    ///
    /// At most [`limits::MAX_ENQUEUE`] messages and [`limits::MAX_ENQUEUE_BYTES`] in one call.
    ///
    /// After an error, only a rollback undoes those that were enqueued before it. If any is compared by content, they are
    /// enqueued one after another, which is slower.
    pub async fn enqueue_all_in(
        self,
        connection: &mut impl CallerConnection,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        check_size(&messages)?;
        let transaction = self.0.in_transaction(connection)?;
        let messages = numbered(messages)?;
        let outcomes = transaction.enqueue(&messages).await?;
        // Only the caller knows whether they commit, so a rollback is counted too.
        for ((_, new), outcome) in messages.iter().zip(&outcomes) {
            count_enqueue(&self.0.counters, &new.queue, *outcome);
        }
        outcomes.into_iter().map(|outcome| Ok(outcome?)).collect()
    }
}

/// Refuses more messages than one statement should carry.
fn check_size(messages: &[NewMessage]) -> Result<(), StoreError> {
    let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
    check::number("the number of messages in one call", count, 0..=limits::MAX_ENQUEUE)?;
    let bytes = messages.iter().map(|message| message.request.bytes().len()).sum();
    if limits::MAX_ENQUEUE_BYTES < bytes {
        let what = "the messages of one call";
        return Err(StoreError::TooLarge { what, found: bytes, most: limits::MAX_ENQUEUE_BYTES });
    }
    Ok(())
}
