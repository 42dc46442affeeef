//! A fresh database, and queries for the tests.

use std::time::Duration;

use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{Enqueued, MessageFilter, MessageRow, NewMessage, QueueName, RequestBody};
use ichido_store::testing::{postgres, sqlite, while_busy};
use uuid::Uuid;

pub(crate) const QUEUE: &str = "orders";
/// The interval between polls.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(25);
/// The time limit of a test; the long storm gets more.
const MAX_CASE: Duration = Duration::from_mins(8);

pub(crate) struct OutboxDatabase {
    pub(crate) url: String,
    pub(crate) store: Store,
    _kept: DatabaseGuard,
}

/// Removes the database when dropped.
enum DatabaseGuard {
    Postgres { _database: postgres::PgTestDatabase },
    Sqlite { _file: sqlite::SqliteTestFile },
}

/// How often to try opening a store. Beside storms, a new server may take longer to respond than the store waits.
const MAX_OPENS: usize = 6;

async fn opened(url: &str) -> Store {
    for _ in 1..MAX_OPENS {
        match Store::open(url, 4).await {
            Err(StoreError::Unavailable(_)) => {}
            outcome => return outcome.expect("the store opens"),
        }
    }
    Store::open(url, 4).await.expect("the store opens")
}

impl OutboxDatabase {
    pub(crate) async fn postgres() -> Self {
        Self::on_postgres(postgres::fresh_database().await).await
    }

    /// Creates a database on a server that syncs, for tests that kill processes.
    pub(crate) async fn durable_postgres() -> Self {
        Self::on_postgres(postgres::durable_database().await).await
    }

    async fn on_postgres(database: postgres::PgTestDatabase) -> Self {
        Self::at(database.url.clone(), DatabaseGuard::Postgres { _database: database }).await
    }

    pub(crate) async fn sqlite() -> Self {
        let file = sqlite::fresh_file();
        Self::at(file.url.clone(), DatabaseGuard::Sqlite { _file: file }).await
    }

    async fn at(url: String, kept: DatabaseGuard) -> Self {
        Self { store: opened(&url).await, url, _kept: kept }
    }

    /// Enqueues an order.
    // The form is that of spec D18.
    pub(crate) async fn put(&self, key: &str) -> Uuid {
        self.put_in(QUEUE, key).await
    }

    /// Enqueues an order in another queue.
    pub(crate) async fn put_in(&self, queue: &str, key: &str) -> Uuid {
        let order = NewMessage { queue: QueueName::parse(queue).expect("a name"), ..order(key) };
        match while_busy(|| self.store.messages().enqueue(order.clone())).await {
            Enqueued::New { id } => id,
            other => panic!("not new: {other:?}"),
        }
    }

    pub(crate) async fn row(&self, id: Uuid) -> MessageRow {
        while_busy(|| self.store.messages().get(id)).await.expect("it is there")
    }

    /// Waits until a message meets a condition.
    pub(crate) async fn until(&self, id: Uuid, is: impl Fn(&MessageRow) -> bool) -> MessageRow {
        loop {
            let row = self.row(id).await;
            if is(&row) {
                return row;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    pub(crate) async fn until_stage(&self, id: Uuid, stage: StateName) -> MessageRow {
        self.until(id, |row| row.status == stage).await
    }

    /// Returns how many messages are in one of these states.
    pub(crate) async fn count(&self, stages: &[StateName]) -> i64 {
        let counts = while_busy(|| self.store.queues().counts()).await;
        counts.into_iter().filter(|count| stages.contains(&count.state)).map(|count| count.count).sum()
    }

    /// Returns the message with a key.
    pub(crate) async fn by_key(&self, text: &str) -> MessageRow {
        let filter = MessageFilter { key: Some(key(text)), ..MessageFilter::default() };
        let mut rows = self.store.messages().list(&filter, 2).await.expect("an answer");
        assert_eq!(rows.len(), 1, "one message has key {text}");
        rows.remove(0)
    }
}

pub(crate) fn order(text: &str) -> NewMessage {
    let queue = QueueName::parse(QUEUE).expect("a name");
    let body = crate::mock_broker::broker::order(text).body.into_bytes();
    let body = RequestBody::new("application/json", body, CanonicalForm::default()).expect("JSON");
    NewMessage::new(queue, "ann", key(text), body)
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect("a key")
}

/// Fails a test that never ends.
pub(crate) async fn in_time(times: u32, case: impl Future<Output = ()>) {
    tokio::time::timeout(MAX_CASE * times, case).await.expect("the case ends");
}

/// Defines one test per database for each behaviour.
macro_rules! both_databases {
    ($($(#[doc = $doc:literal])* #[test] async fn $name:ident($database:ident: OutboxDatabase) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            async fn case($database: OutboxDatabase) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $crate::outbox::database::in_time(1, case(OutboxDatabase::postgres().await)).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $crate::outbox::database::in_time(1, case(OutboxDatabase::sqlite().await)).await;
            }
        }
    )+ };
}

pub(crate) use both_databases;
