//! The front door: typed messages in the application's own transactions, by the same calls on each database.

use std::time::Duration;

use ichido::prelude::*;
use ichido_core::clock::HEARTBEAT_EVERY;
use ichido_core::lifecycle::StateName;
use ichido_store::message::{MessageFilter, QueueName};
use ichido_store::testing::{postgres, sqlite};
use serde::{Deserialize, Serialize};

use crate::once::relay::{Cut, Relay};
use crate::worker::fixture::poll_pause;

/// The longest that a test may take.
const MAX_CASE: Duration = Duration::from_mins(2);
const LONG: Duration = Duration::from_hours(1);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Receipt {
    order: i64,
    item: String,
}

impl Message for Receipt {
    const QUEUE: &str = "mail";

    fn key(&self) -> Option<String> {
        Some(format!("order-{}", self.order))
    }
}

/// The same payload with its members in another order.
#[derive(Serialize, Deserialize)]
struct TurnedReceipt {
    item: String,
    order: i64,
}

impl Message for TurnedReceipt {
    const QUEUE: &str = "mail";

    fn key(&self) -> Option<String> {
        Some(format!("order-{}", self.order))
    }
}

fn receipt(order: i64, item: &str) -> Receipt {
    Receipt { order, item: item.to_owned() }
}

fn mail() -> QueueName {
    QueueName::parse("mail").unwrap()
}

/// An application with a table of orders, on a fresh database.
struct Shop<DB: ichido_store::StoreDatabase> {
    ichido: Ichido<DB>,
    _database: DatabaseOfTest,
}

/// Removed with the shop.
enum DatabaseOfTest {
    Postgres { _database: postgres::PgTestDatabase },
    Sqlite { _file: sqlite::SqliteTestFile },
}

const ORDERS: &str = "CREATE TABLE orders (item TEXT NOT NULL)";
const ORDER: &str = "INSERT INTO orders VALUES ('apple')";

impl Shop<Postgres> {
    async fn open() -> Self {
        let database = postgres::fresh_database().await;
        let ichido = Ichido::connect(&database.url).await.unwrap();
        sqlx::query(ORDERS).execute(ichido.pool()).await.unwrap();
        Self { ichido, _database: DatabaseOfTest::Postgres { _database: database } }
    }
}

impl Shop<Sqlite> {
    async fn open() -> Self {
        let file = sqlite::fresh_file();
        let ichido = Ichido::connect(&file.url).await.unwrap();
        sqlx::query(ORDERS).execute(ichido.pool()).await.unwrap();
        Self { ichido, _database: DatabaseOfTest::Sqlite { _file: file } }
    }
}

impl<DB: ichido_store::StoreDatabase> Shop<DB> {
    /// The payloads of all messages, oldest first.
    async fn mails(&self) -> Vec<Receipt> {
        let rows = self.ichido.store().messages().list(&MessageFilter::default(), 100).await.unwrap();
        rows.iter().rev().map(|row| serde_json::from_slice(&row.request).unwrap()).collect()
    }

    /// Whether a worker of the queue would have been woken.
    async fn is_woken(&self) -> bool {
        self.ichido.store().queues().wait(&mail(), LONG).await
    }
}

fn conflict(refused: Result<Enqueued, EnqueueError>) -> uuid::Uuid {
    match refused {
        Err(EnqueueError::KeyConflict { id }) => id,
        other => panic!("not a conflict: {other:?}"),
    }
}

/// Runs each test on each database. The body is written once, and compiled for both.
macro_rules! both_databases {
    ($($(#[doc = $doc:literal])* #[test] async fn $name:ident($shop:ident: Shop) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let $shop = Shop::<Postgres>::open().await;
                tokio::time::timeout(MAX_CASE, async move $body).await.unwrap();
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let $shop = Shop::<Sqlite>::open().await;
                tokio::time::timeout(MAX_CASE, async move $body).await.unwrap();
            }
        }
    )+ };
}

both_databases! {
    #[test]
    async fn program_cancels_what_waits_and_what_runs(shop: Shop) {
        let ichido = &shop.ichido;
        let Ok(Enqueued::New { id }) = ichido.enqueue(&receipt(1, "apple")).await else { panic!("it is new") };
        assert_eq!(ichido.cancel(id).await.unwrap(), CancelOutcome::Cancelled);
        let (started, mut has_started) = tokio::sync::watch::channel(false);
        let worker = ichido.worker().handle_once(move |job: Job<Receipt>| {
            started.send_replace(true);
            async move {
                job.cancel.cancelled().await;
                Err::<(), _>(JobError::cancelled())
            }
        });
        let worker = worker.start().unwrap();
        let Ok(Enqueued::New { id }) = ichido.enqueue(&receipt(2, "pear")).await else { panic!("it is new") };
        has_started.wait_for(|has_started| *has_started).await.unwrap();
        assert_eq!(ichido.cancel(id).await.unwrap(), CancelOutcome::Requested);
        ichido.store().advance_clock(HEARTBEAT_EVERY);
        while ichido.store().messages().get(id).await.unwrap().unwrap().status != StateName::Cancelled {
            poll_pause().await;
        }
        worker.stop();
        worker.ended().await;
    }

    #[test]
    async fn row_and_typed_message_commit_together(shop: Shop) {
        let mut tx = shop.ichido.begin().await.unwrap();
        sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
        let enqueued = tx.enqueue(&receipt(1, "apple")).await.unwrap();
        assert!(matches!(enqueued, Enqueued::New { .. }), "{enqueued:?}");
        assert_eq!(shop.mails().await, [], "nobody else sees it");
        tx.commit().await.unwrap();
        assert_eq!(shop.mails().await, [receipt(1, "apple")]);
        let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(shop.ichido.pool()).await.unwrap();
        assert_eq!(orders, 1);
    }

    #[test]
    async fn dropped_transaction_leaves_neither_row_nor_message(shop: Shop) {
        let mut tx = shop.ichido.begin().await.unwrap();
        sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
        tx.enqueue(&receipt(1, "apple")).await.unwrap();
        drop(tx);
        let mut tx = shop.ichido.begin().await.unwrap();
        tx.enqueue_many(&[receipt(1, "pear"), receipt(2, "plum")]).await.unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(shop.mails().await, []);
        let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(shop.ichido.pool()).await.unwrap();
        assert_eq!(orders, 0);
    }

    #[test]
    async fn commit_wakes_the_queues_it_enqueued_to(shop: Shop) {
        let mut tx = shop.ichido.begin().await.unwrap();
        tx.enqueue(&receipt(1, "apple")).await.unwrap();
        tx.commit().await.unwrap();
        assert!(shop.is_woken().await);
    }

    #[test]
    async fn key_conflict_is_an_error_at_every_door(shop: Shop) {
        let first = shop.ichido.enqueue(&receipt(1, "apple")).await.unwrap().id();
        let other = receipt(1, "pear");
        assert_eq!(conflict(shop.ichido.enqueue(&other).await), first);
        let many = shop.ichido.enqueue_many(&[receipt(2, "plum"), other.clone()]).await;
        assert!(matches!(many, Err(EnqueueError::KeyConflict { id }) if id == first), "{many:?}");
        let mut tx = shop.ichido.begin().await.unwrap();
        assert_eq!(conflict(tx.enqueue(&other).await), first);
        let many = tx.enqueue_many([&other]).await;
        assert!(matches!(many, Err(EnqueueError::KeyConflict { id }) if id == first), "{many:?}");
        tx.rollback().await.unwrap();
        let mut raw = shop.ichido.pool().begin().await.unwrap();
        assert_eq!(conflict(shop.ichido.enqueue_in(&mut *raw, &other).await), first);
        drop(raw);
        assert_eq!(shop.mails().await, [receipt(1, "apple")], "of many, all or none");
    }

    #[test]
    async fn raw_transaction_is_enqueued_to_and_woken_by_name(shop: Shop) {
        let mut raw = shop.ichido.pool().begin().await.unwrap();
        sqlx::query(ORDER).execute(&mut *raw).await.unwrap();
        shop.ichido.enqueue_in(&mut *raw, &receipt(1, "apple")).await.unwrap();
        shop.ichido.enqueue_in(&mut raw, &receipt(2, "pear")).await.unwrap();
        raw.commit().await.unwrap();
        shop.ichido.wake("mail");
        assert!(shop.is_woken().await);
        assert_eq!(shop.mails().await, [receipt(1, "apple"), receipt(2, "pear")]);
    }

    /// The draft of a single message changes what its type declares.
    #[test]
    async fn draft_changes_one_message(shop: Shop) {
        let draft = Draft::new(&receipt(1, "apple")).key("other").identity("ann").priority(0).delay(LONG);
        let id = shop.ichido.enqueue(draft).await.unwrap().id();
        let row = shop.ichido.store().messages().get(id).await.unwrap().unwrap();
        assert_eq!((row.key.as_str(), row.identity.as_str(), row.priority), ("other", "ann", 0));
        assert_eq!((row.status, row.next_attempt), (StateName::Queued, Some(row.created_at.plus(LONG))));
        assert!(matches!(shop.ichido.enqueue(&receipt(1, "apple")).await.unwrap(), Enqueued::New { .. }));
    }

    #[test]
    async fn payload_in_another_member_order_is_the_same_message(shop: Shop) {
        let first = shop.ichido.enqueue(&receipt(1, "apple")).await.unwrap().id();
        let turned = TurnedReceipt { item: "apple".to_owned(), order: 1 };
        assert_eq!(shop.ichido.enqueue(&turned).await.unwrap(), Enqueued::Replay { id: first });
        let mut tx = shop.ichido.begin().await.unwrap();
        assert_eq!(tx.enqueue(&turned).await.unwrap(), Enqueued::Replay { id: first });
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn url_of_the_other_database_is_refused() {
    let file = sqlite::fresh_file();
    let refused = Ichido::<Postgres>::connect(&file.url).await.err();
    assert!(matches!(refused, Some(StoreError::WrongDatabase(_))), "{refused:?}");
}

/// The response to COMMIT is lost, or COMMIT itself: the caller learns that nobody knows, and asks again with the same key.
// Spec: D1, D4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_commit_is_an_unknown_outcome() {
    for (cut, count) in [(Cut::After, 1), (Cut::Before, 0)] {
        let database = postgres::fresh_database().await;
        let direct = Ichido::<Postgres>::connect(&database.url).await.unwrap();
        sqlx::query(ORDERS).execute(direct.pool()).await.unwrap();
        let relay = Relay::before(&database.url).await;
        let pool = sqlx::PgPool::connect_with(relay.options(&database.url)).await.unwrap();
        let ichido = Ichido::new(direct.store().clone(), pool);
        let mut tx = ichido.begin().await.unwrap();
        sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
        tx.enqueue(&receipt(1, "apple")).await.unwrap();
        // The statement itself, not a text that mentions it.
        relay.arm("COMMIT\0", cut);
        let lost = tx.commit().await.unwrap_err();
        assert!(matches!(lost, StoreError::Unknown(_)), "{cut:?}: {lost:?}");
        assert!(relay.has_cut());
        let orders = sqlx::query("SELECT item FROM orders").fetch_all(direct.pool()).await.unwrap();
        assert_eq!(orders.len(), count, "{cut:?}");
        let again = direct.enqueue(&receipt(1, "apple")).await.unwrap();
        assert_eq!(matches!(again, Enqueued::Replay { .. }), cut == Cut::After, "{cut:?}: {again:?}");
    }
}
