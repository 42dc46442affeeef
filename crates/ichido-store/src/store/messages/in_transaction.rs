//! Enqueuing in the caller's own transaction.

use sqlx::PgConnection;
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::super::Messages;
use super::numbered;
use crate::error::StoreError;
use crate::message::{Enqueued, NewMessage, NumberedMessage};

impl Messages<'_> {
    /// Enqueues a message within the caller's open PostgreSQL transaction: both commit, or neither.
    ///
    /// Call [`Queues::wake`](crate::Queues::wake) after the commit.
    ///
    /// The transaction must be on the store's own database; on a connection without a transaction, the message is enqueued at
    /// once. Two transactions that enqueue the same key wait for each other, so keep them short. A message that is out of
    /// bounds is refused before it reaches the database and leaves the transaction usable; a database error aborts it.
    ///
    /// ```
    /// use ichido_core::key::IdempotencyKey;
    /// use ichido_store::Store;
    /// use ichido_store::message::{NewMessage, QueueName};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let database = ichido_store::testing::postgres::fresh_database().await;
    /// # let url = &database.url;
    /// let store = Store::open(url, 4).await?;
    /// let pool = sqlx::PgPool::connect(url).await?; // Your own.
    /// # sqlx::query("CREATE TABLE orders (what text)").execute(&pool).await?;
    /// let queue = QueueName::parse("mail").ok_or("a name")?;
    /// let key = IdempotencyKey::parse("order-4711")?;
    ///
    /// let mut transaction = pool.begin().await?;
    /// sqlx::query("INSERT INTO orders VALUES ('apple')").execute(&mut *transaction).await?;
    /// let message = NewMessage::new(queue.clone(), "ann", key, b"thanks!".to_vec());
    /// store.messages().enqueue_in_postgres(&mut transaction, message).await?;
    /// transaction.commit().await?;
    /// store.queues().wake(&queue);
    /// # Ok(())
    /// # }
    /// ```
    // SPEC D4.
    pub async fn enqueue_in_postgres(
        self,
        connection: &mut PgConnection,
        message: NewMessage,
    ) -> Result<Enqueued, StoreError> {
        let message = message.checked()?;
        self.0.postgres()?.enqueue_content(connection, &(Uuid::now_v7(), message)).await
    }

    /// Enqueues many messages like [`Messages::enqueue_in_postgres`]. Returns the outcomes in the same order.
    ///
    /// All new ones are enqueued, or none. If any is compared by content, they are enqueued one after another: this is slower,
    /// and after an error only a rollback undoes the earlier ones.
    pub async fn enqueue_all_in_postgres(
        self,
        connection: &mut PgConnection,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        let (postgres, messages) = (self.0.postgres()?, numbered(messages)?);
        if !any_by_content(&messages) {
            return postgres.enqueue_in(connection, &messages).await;
        }
        let mut answers = Vec::with_capacity(messages.len());
        for message in &messages {
            answers.push(postgres.enqueue_content(connection, message).await?);
        }
        Ok(answers)
    }

    /// Enqueues a message within the caller's open SQLite transaction: both commit, or neither.
    ///
    /// Call [`Queues::wake`](crate::Queues::wake) after the commit.
    ///
    /// Begin that transaction with [`Store::begin_immediate`](crate::Store::begin_immediate), keep it short, and await nothing
    /// else of this store inside it: while it is open nobody else can write, and a write of this store waits 5 seconds and then
    /// fails with [`StoreError::Busy`].
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
    /// let mut transaction = Store::begin_immediate(&pool).await?;
    /// sqlx::query("INSERT INTO orders VALUES ('apple')").execute(&mut *transaction).await?;
    /// let message = NewMessage::new(queue.clone(), "ann", key, b"thanks!".to_vec());
    /// store.messages().enqueue_in_sqlite(&mut transaction, message).await?;
    /// transaction.commit().await?;
    /// store.queues().wake(&queue);
    /// # Ok(())
    /// # }
    /// ```
    // SPEC D4.
    pub async fn enqueue_in_sqlite(
        self,
        connection: &mut SqliteConnection,
        message: NewMessage,
    ) -> Result<Enqueued, StoreError> {
        let message = message.checked()?;
        self.0.sqlite()?.enqueue_content(connection, &(Uuid::now_v7(), message)).await
    }

    /// Enqueues many messages like [`Messages::enqueue_in_sqlite`]. Returns the outcomes in the same order.
    ///
    /// All new ones are enqueued, or none. If any is compared by content, they are enqueued one after another: this is slower,
    /// and after an error only a rollback undoes the earlier ones.
    pub async fn enqueue_all_in_sqlite(
        self,
        connection: &mut SqliteConnection,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        let (sqlite, messages) = (self.0.sqlite()?, numbered(messages)?);
        if !any_by_content(&messages) {
            return sqlite.enqueue_in(connection, &messages).await;
        }
        let mut answers = Vec::with_capacity(messages.len());
        for message in &messages {
            answers.push(sqlite.enqueue_content(connection, message).await?);
        }
        Ok(answers)
    }
}

fn any_by_content(messages: &[NumberedMessage]) -> bool {
    messages.iter().any(|(_, new)| new.same_content.is_some())
}
