//! The front door: typed messages in the application's own transactions, by the same calls on each database.

use std::str::FromStr as _;
use std::task::Poll;
use std::time::Duration;

use ichido::application::MAX_CONNECTIONS;
use ichido::prelude::*;
use ichido_core::clock::HEARTBEAT_EVERY;
use ichido_core::lifecycle::StateName;
use ichido_store::message::{MessageFilter, QueueName};
use ichido_store::testing::{postgres, sqlite};
use serde::{Deserialize, Serialize};

use crate::once::relay::{Cut, Relay};
use crate::warnings::WarningCapture;
use crate::worker::fixture::poll_pause;

/// The longest that a test may take.
const MAX_CASE: Duration = Duration::from_mins(5);
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

/// Compared by content.
#[derive(Serialize, Deserialize)]
struct Newsletter {
    number: i64,
}

impl Message for Newsletter {
    const QUEUE: &str = "mail";
    const SAME_CONTENT_WITHIN: Option<Duration> = Some(LONG);
}

/// Two types of one queue, compared by content.
macro_rules! compared_type {
    ($name:ident, $type:literal) => {
        #[derive(Serialize, Deserialize)]
        struct $name {
            order: i64,
        }

        impl Message for $name {
            const QUEUE: &str = "mail";
            const TYPE: Option<&str> = Some($type);
            const SAME_CONTENT_WITHIN: Option<Duration> = Some(LONG);
        }
    };
}

compared_type!(Placed, "order.placed");
compared_type!(Cancelled, "order.cancelled");

fn receipt(order: i64, item: &str) -> Receipt {
    Receipt { order, item: item.to_owned() }
}

fn mail() -> QueueName {
    QueueName::parse("mail").unwrap()
}

/// An application with a table of orders, on a fresh database.
struct Shop<DB: ichido_store::StoreDatabase> {
    ichido: Ichido<DB>,
    database: DatabaseOfTest,
}

/// Removed with the shop.
enum DatabaseOfTest {
    Postgres { database: postgres::PgTestDatabase },
    Sqlite { _file: sqlite::SqliteTestFile },
}

const ORDERS: &str = "CREATE TABLE orders (item TEXT NOT NULL)";
const ORDER: &str = "INSERT INTO orders VALUES ('apple')";

impl Shop<Postgres> {
    async fn open() -> Self {
        let database = postgres::fresh_database().await;
        let ichido = Ichido::connect(&database.url).await.unwrap();
        sqlx::query(ORDERS).execute(ichido.pool()).await.unwrap();
        Self { ichido, database: DatabaseOfTest::Postgres { database } }
    }
}

impl Shop<Postgres> {
    fn url(&self) -> &str {
        match &self.database {
            DatabaseOfTest::Postgres { database } => &database.url,
            DatabaseOfTest::Sqlite { .. } => unreachable!("it is on PostgreSQL"),
        }
    }
}

impl Shop<Sqlite> {
    async fn open() -> Self {
        let file = sqlite::fresh_file();
        let ichido = Ichido::connect(&file.url).await.unwrap();
        sqlx::query(ORDERS).execute(ichido.pool()).await.unwrap();
        Self { ichido, database: DatabaseOfTest::Sqlite { _file: file } }
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
    /// Written after its end, a row or a message would commit on its own.
    #[test]
    async fn transaction_that_has_ended_does_not_commit(shop: Shop) {
        for _ in 0..MAX_CONNECTIONS {
            let mut tx = shop.ichido.begin().await.unwrap();
            sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
            tx.enqueue(&receipt(1, "apple")).await.unwrap();
            sqlx::raw_sql("ROLLBACK").execute(&mut *tx).await.unwrap();
            let refused = tx.commit().await.unwrap_err();
            assert!(format!("{refused:?}").contains("the transaction has ended before its commit"), "{refused:?}");
        }
        assert_eq!(shop.mails().await, []);
        let mut tx = shop.ichido.begin().await.unwrap();
        tx.enqueue(&receipt(2, "pear")).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(shop.mails().await, [receipt(2, "pear")]);
    }
}

/// The server answers such a COMMIT as if it had succeeded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_with_a_failed_statement_does_not_commit_on_postgres() {
    let shop = Shop::<Postgres>::open().await;
    let mut tx = shop.ichido.begin().await.unwrap();
    tx.enqueue(&receipt(1, "apple")).await.unwrap();
    sqlx::raw_sql("SELECT 1 / 0").execute(&mut *tx).await.unwrap_err();
    let refused = tx.commit().await.unwrap_err();
    assert!(format!("{refused:?}").contains("a statement of the transaction failed"), "{refused:?}");
    assert_eq!(shop.mails().await, []);
}

/// SQLite rolls back by itself when the disk is full, and then accepts the next statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_enqueued_after_sqlite_rolled_back() {
    let shop = Shop::<Sqlite>::open().await;
    sqlx::query("CREATE UNIQUE INDEX once ON orders (item)").execute(shop.ichido.pool()).await.unwrap();
    for _ in 0..MAX_CONNECTIONS {
        let mut tx = shop.ichido.begin().await.unwrap();
        sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
        sqlx::query("INSERT OR ROLLBACK INTO orders VALUES ('apple')").execute(&mut *tx).await.unwrap_err();
        tx.enqueue(&receipt(1, "apple")).await.unwrap_err();
        tx.enqueue_many([&receipt(2, "pear")]).await.unwrap_err();
    }
    assert_eq!(shop.mails().await, []);
    shop.ichido.begin().await.unwrap().rollback().await;
}

/// The user's own statement ends the transaction; some begin another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_enqueued_after_the_application_rolled_back() {
    let shop = Shop::<Postgres>::open().await;
    for ending in ["ROLLBACK", "COMMIT", "ROLLBACK AND CHAIN", "ROLLBACK; BEGIN"] {
        let mut tx = shop.ichido.begin().await.unwrap();
        sqlx::raw_sql(ending).execute(&mut *tx).await.unwrap();
        let refused = tx.enqueue(&receipt(1, "apple")).await.unwrap_err();
        assert!(format!("{refused:?}").contains("has ended before its commit"), "{ending}: {refused:?}");
        tx.enqueue_many([&receipt(2, "pear")]).await.unwrap_err();
        tx.enqueue(&Newsletter { number: 3 }).await.unwrap_err();
        tx.commit().await.unwrap_err();
    }
    assert_eq!(shop.mails().await, []);
    let contents: i64 = sqlx::query_scalar("SELECT count(*) FROM ichido.contents")
        .fetch_one(shop.ichido.pool())
        .await
        .unwrap();
    assert_eq!(contents, 0);
    // The connections are usable, for a transaction of the application's own too.
    let mut tx = shop.ichido.begin().await.unwrap();
    sqlx::raw_sql("SAVEPOINT s; ROLLBACK TO s").execute(&mut *tx).await.unwrap();
    tx.enqueue(&receipt(4, "fig")).await.unwrap();
    tx.commit().await.unwrap();
    let mut raw = shop.ichido.pool().begin().await.unwrap();
    shop.ichido.enqueue_in(&mut *raw, &receipt(5, "date")).await.unwrap();
    raw.commit().await.unwrap();
    assert_eq!(shop.mails().await, [receipt(4, "fig"), receipt(5, "date")]);
}

/// SQLite says that a transaction is open, but not which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_begun_in_place_of_ours_does_not_commit_on_sqlite() {
    let shop = Shop::<Sqlite>::open().await;
    for (ending, enqueues) in [
        ("ROLLBACK; BEGIN", true),
        ("ROLLBACK; BEGIN", false),
        ("COMMIT; BEGIN", true),
        ("COMMIT; BEGIN", false),
    ] {
        let mut tx = shop.ichido.begin().await.unwrap();
        sqlx::raw_sql(ending).execute(&mut *tx).await.unwrap();
        if enqueues {
            tx.enqueue(&receipt(1, "apple")).await.unwrap();
        }
        let refused = tx.commit().await.unwrap_err();
        assert!(format!("{refused:?}").contains("has ended before its commit"), "{ending}: {refused:?}");
    }
    assert_eq!(shop.mails().await, []);
    // The connections are usable, and so are savepoints.
    for order in 2..=4 {
        let mut tx = shop.ichido.begin().await.unwrap();
        sqlx::raw_sql("SAVEPOINT s").execute(&mut *tx).await.unwrap();
        tx.enqueue(&receipt(1, "apple")).await.unwrap();
        sqlx::raw_sql("ROLLBACK TO s").execute(&mut *tx).await.unwrap();
        tx.enqueue(&receipt(order, "pear")).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(shop.mails().await, [receipt(2, "pear"), receipt(3, "pear"), receipt(4, "pear")]);
}

/// The enqueue has just found the transaction open, so its commit sends nothing but COMMIT.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commit_after_an_enqueue_does_not_ask_again() {
    let database = postgres::fresh_database().await;
    let direct = Ichido::<Postgres>::connect(&database.url).await.unwrap();
    sqlx::query(ORDERS).execute(direct.pool()).await.unwrap();
    let relay = Relay::before(&database.url).await;
    for ask in [false, true] {
        let pool = sqlx::PgPool::connect_with(relay.options(&database.url)).await.unwrap();
        let mut tx = Ichido::new(direct.store().clone(), pool).begin().await.unwrap();
        tx.enqueue(&receipt(1, "apple")).await.unwrap();
        if ask {
            sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
        }
        // The question of transaction_probe.sql, which this connection has not prepared.
        relay.arm("is_open", Cut::Before);
        assert_eq!(tx.commit().await.is_err(), ask);
        assert_eq!(relay.has_cut(), ask);
    }
}

/// Otherwise the connection would go back to the pool with a transaction open on it, and swallow what others write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_begin_leaves_no_transaction_open_on_postgres() {
    let shop = Shop::<Postgres>::open().await;
    let url = shop.url();
    let one = sqlx::postgres::PgPoolOptions::new().max_connections(1).connect(url).await.unwrap();
    let ichido = Ichido::new(shop.ichido.store().clone(), one.clone());
    for polls in 1..6 {
        let mut begin = Box::pin(ichido.begin());
        let mut polled = 0;
        let cancelled = std::future::poll_fn(|context| match begin.as_mut().poll(context) {
            Poll::Pending if polled + 1 < polls => {
                polled += 1;
                Poll::Pending
            }
            Poll::Pending => Poll::Ready(true),
            Poll::Ready(_) => Poll::Ready(false),
        });
        cancelled.await;
        drop(begin);
        sqlx::query(ORDER).execute(&one).await.unwrap();
        let seen: i64 =
            sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(shop.ichido.pool()).await.unwrap();
        assert_eq!(seen, polls, "cancelled at poll {polls}");
    }
}

/// An acknowledgement means durable, however the role or the database is configured, and no secret is logged.
#[tokio::test]
async fn connections_of_the_application_are_durable_and_keep_secrets() {
    let shop = Shop::<Postgres>::open().await;
    let name: String =
        sqlx::query_scalar("SELECT current_database()::text").fetch_one(shop.ichido.pool()).await.unwrap();
    for setting in ["synchronous_commit = off", "default_transaction_isolation = 'repeatable read'"] {
        let alter = sqlx::AssertSqlSafe(format!("ALTER DATABASE \"{name}\" SET {setting}"));
        sqlx::raw_sql(alter).execute(shop.ichido.pool()).await.unwrap();
    }
    let warnings = WarningCapture::default();
    let _captured = tracing::subscriber::set_default(warnings.clone());
    let url = format!("{}{}sslpassword=S3CRET", shop.url(), if shop.url().contains('?') { '&' } else { '?' });
    let ichido = Ichido::<Postgres>::connect(&url).await.unwrap();
    for (setting, expected) in [("synchronous_commit", "on"), ("transaction_isolation", "read committed")] {
        let setting_of = sqlx::query_scalar("SELECT current_setting($1)").bind(setting);
        let found: String = setting_of.fetch_one(ichido.pool()).await.unwrap();
        assert_eq!(found, expected, "{setting}");
    }
    let warnings = warnings.take();
    assert!(!warnings.iter().any(|text| text.contains("S3CRET")), "{warnings:?}");
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
        tx.rollback().await;
        assert_eq!(shop.mails().await, []);
        let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(shop.ichido.pool()).await.unwrap();
        assert_eq!(orders, 0);
    }

    /// Nothing else would say that the messages are gone.
    #[test]
    async fn forgotten_commit_is_logged(shop: Shop) {
        let warnings = WarningCapture::default();
        let _captured = tracing::subscriber::set_default(warnings.clone());
        let logged = || {
            let logged = warnings.take().into_iter();
            logged.filter(|text| text.contains("dropped without a commit")).collect::<Vec<_>>()
        };
        let mut tx = shop.ichido.begin().await.unwrap();
        tx.enqueue(&receipt(1, "apple")).await.unwrap();
        drop(tx);
        let forgotten = logged();
        assert!(matches!(&forgotten[..], [text] if text.contains("queues=\"mail\"")), "{forgotten:?}");
        // Without a message there is nothing to lose, and a rollback says what is meant.
        let mut tx = shop.ichido.begin().await.unwrap();
        sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
        drop(tx);
        let mut tx = shop.ichido.begin().await.unwrap();
        tx.enqueue(&receipt(1, "apple")).await.unwrap();
        tx.rollback().await;
        let mut tx = shop.ichido.begin().await.unwrap();
        tx.enqueue(&receipt(1, "apple")).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(logged(), [""; 0]);
    }

    /// The caller overlooks the error of one, and would lose it.
    #[test]
    async fn part_of_many_messages_does_not_commit(shop: Shop) {
        shop.ichido.enqueue(&receipt(1, "apple")).await.unwrap();
        let mut tx = shop.ichido.begin().await.unwrap();
        sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
        let many = tx.enqueue_many(&[receipt(2, "plum"), receipt(1, "pear")]).await;
        assert!(matches!(many, Err(EnqueueError::KeyConflict { .. })), "{many:?}");
        let refused = tx.commit().await.unwrap_err();
        assert!(format!("{refused:?}").contains("enqueued only some of its messages"), "{refused:?}");
        assert_eq!(shop.mails().await, [receipt(1, "apple")]);
        let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(shop.ichido.pool()).await.unwrap();
        assert_eq!(orders, 0);
        // One message is enqueued or not, so its caller may go on.
        let mut tx = shop.ichido.begin().await.unwrap();
        tx.enqueue(&receipt(1, "pear")).await.unwrap_err();
        tx.enqueue_many([&receipt(1, "pear")]).await.unwrap_err();
        tx.enqueue_many([&receipt(3, "fig")]).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(shop.mails().await, [receipt(1, "apple"), receipt(3, "fig")]);
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
        tx.rollback().await;
        let mut raw = shop.ichido.pool().begin().await.unwrap();
        assert_eq!(conflict(shop.ichido.enqueue_in(&mut *raw, &other).await), first);
        drop(raw);
        assert_eq!(shop.mails().await, [receipt(1, "apple")], "of many, all or none");
    }

    #[test]
    async fn call_with_too_many_messages_enqueues_none(shop: Shop) {
        let too_many = || (0..).map(|order| Draft::new(&receipt(order, "apple")));
        let refused = shop.ichido.enqueue_many(too_many()).await.unwrap_err();
        assert!(refused.to_string().contains("between 0 and 10000"), "{refused}");
        let mut tx = shop.ichido.begin().await.unwrap();
        tx.enqueue_many(too_many()).await.unwrap_err();
        let large: Vec<Receipt> = (0..65).map(|order| receipt(order, &"x".repeat(1 << 20))).collect();
        let refused = tx.enqueue_many(&large).await.unwrap_err();
        assert!(refused.to_string().contains("at most 67108864"), "{refused}");
        tx.enqueue(&receipt(1, "pear")).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(shop.mails().await, [receipt(1, "pear")]);
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

    /// They are two kinds of work, and one of them would be lost.
    #[test]
    async fn equal_payloads_of_two_types_are_two_messages(shop: Shop) {
        let placed = shop.ichido.enqueue(&Placed { order: 1 }).await.unwrap();
        let Enqueued::New { id } = placed else { unreachable!("{placed:?}") };
        let cancelled = shop.ichido.enqueue(&Cancelled { order: 1 }).await.unwrap();
        assert!(matches!(cancelled, Enqueued::New { .. }), "{cancelled:?}");
        assert_eq!(shop.ichido.enqueue(&Placed { order: 1 }).await.unwrap(), Enqueued::SameContent { id });
        let mut tx = shop.ichido.begin().await.unwrap();
        assert_eq!(tx.enqueue(&Placed { order: 1 }).await.unwrap(), Enqueued::SameContent { id });
        assert!(matches!(tx.enqueue(&Cancelled { order: 2 }).await.unwrap(), Enqueued::New { .. }));
        assert!(matches!(tx.enqueue(&Placed { order: 2 }).await.unwrap(), Enqueued::New { .. }));
        tx.commit().await.unwrap();
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

/// It would be sent as `null`, which its handler could not read.
#[tokio::test]
async fn payload_with_a_number_that_json_lacks_is_refused() {
    #[derive(Serialize, Deserialize)]
    struct Measurement {
        celsius: f64,
    }

    impl Message for Measurement {
        const QUEUE: &str = "mail";
    }

    let shop = Shop::<Sqlite>::open().await;
    let refused = shop.ichido.enqueue(&Measurement { celsius: f64::NAN }).await.unwrap_err();
    assert!(refused.to_string().contains("NaN"), "{refused}");
    assert!(shop.ichido.store().messages().list(&MessageFilter::default(), 1).await.unwrap().is_empty());
}

#[tokio::test]
async fn url_of_the_other_database_is_refused() {
    let file = sqlite::fresh_file();
    let refused = Ichido::<Postgres>::connect(&file.url).await.err();
    assert!(matches!(refused, Some(StoreError::WrongDatabase(_))), "{refused:?}");
}

/// The schema of a role named `ichido` is Ichido's, and PostgreSQL looks there first.
// Spec: H4, H8.
#[tokio::test]
async fn role_whose_tables_would_be_mistaken_for_ours_is_refused() {
    let database = postgres::fresh_database().await;
    Ichido::<Postgres>::connect(&database.url).await.unwrap().pool().close().await;
    let with_path = |path: &str| {
        let mark = if database.url.contains('?') { '&' } else { '?' };
        format!("{}{mark}options=-csearch_path%3D{path}", database.url)
    };
    let refused = Ichido::<Postgres>::connect(&with_path("ichido,public")).await.err();
    let Some(StoreError::Address(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("search_path=public"), "{text}");
    Ichido::<Postgres>::connect(&with_path("public,ichido")).await.unwrap();
}

/// A pool of the application's own is not refused: it may name the schema of each table.
// Spec: H4, H8.
#[tokio::test]
async fn pool_whose_tables_would_be_mistaken_for_ours_is_a_warning() {
    let database = postgres::fresh_database().await;
    let store = Store::open(&database.url, MAX_CONNECTIONS).await.unwrap();
    let options = sqlx::postgres::PgConnectOptions::from_str(&database.url).unwrap();
    let pool = sqlx::PgPool::connect_with(options.options([("search_path", "ichido,public")])).await.unwrap();
    let ichido = Ichido::new(store, pool);
    let warnings = WarningCapture::default();
    // On a single thread, so it captures what the background says.
    let _captured = tracing::subscriber::set_default(warnings.clone());
    let until_warned = async || loop {
        let warned =
            warnings.take().into_iter().find(|text| text.contains("begins with the schema `ichido`"));
        if let Some(text) = warned {
            return text;
        }
        poll_pause().await;
    };
    let once = Once::operation("shop.order").class(Class::Mutate).guarantee(ichido.transactional());
    let _layer = once.single_identity("shop").build(&ichido).unwrap();
    let text = tokio::time::timeout(MAX_CASE, until_warned()).await.unwrap();
    assert!(text.contains("search_path=public"), "{text}");
    let worker = ichido.worker().handle_idempotent(|_: Job<Receipt>| async { Ok(()) }).start().unwrap();
    tokio::time::timeout(MAX_CASE, until_warned()).await.unwrap();
    worker.stop();
    worker.ended().await;
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

/// A server that shuts down, or a pooler before it, answers COMMIT with an error that means "nothing was done" for a statement.
// Spec: D4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commit_that_finds_no_server_is_an_unknown_outcome() {
    let shop = Shop::<Postgres>::open().await;
    let at_commit = "
        CREATE FUNCTION shut_down() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'the database system is shutting down' USING ERRCODE = '57P03'; END $$;
        CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION shut_down()";
    sqlx::raw_sql(at_commit).execute(shop.ichido.pool()).await.unwrap();
    let mut tx = shop.ichido.begin().await.unwrap();
    sqlx::query(ORDER).execute(&mut *tx).await.unwrap();
    let lost = tx.commit().await.unwrap_err();
    assert!(matches!(lost, StoreError::Unknown(_)), "{lost:?}");
}
