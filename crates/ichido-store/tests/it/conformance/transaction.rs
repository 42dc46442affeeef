//! The caller's own transaction: a business row and its message commit together, or not at all.
// SPEC D4.

use std::str::FromStr as _;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyRecorded, KeyRecording, KeySettle, KeySettled};
use ichido_store::message::{Enqueued, NewMessage, SameContent, limits};
use sqlx::postgres::{PgPool, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqlitePool};
use sqlx::{Row as _, Transaction};

use crate::both_databases;
use crate::fixture::{StoreFixture, body, ids, message, new_id, queue};

/// A business on the store's database, with its own table of orders.
pub(crate) enum Business {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

const ORDERS: &str = "CREATE TABLE orders (number INTEGER)";
const ORDER: &str = "INSERT INTO orders VALUES (1)";
const COUNT: &str = "SELECT count(*) FROM orders";

impl Business {
    pub(crate) async fn open(fixture: &StoreFixture) -> Self {
        if fixture.url().starts_with("sqlite:") {
            let options =
                SqliteConnectOptions::from_str(fixture.url()).unwrap().busy_timeout(Duration::from_secs(30));
            let pool = SqlitePool::connect_with(options).await.unwrap();
            sqlx::query(ORDERS).execute(&pool).await.unwrap();
            Self::Sqlite(pool)
        } else {
            let pool = PgPool::connect(fixture.url()).await.unwrap();
            sqlx::query(ORDERS).execute(&pool).await.unwrap();
            Self::Postgres(pool)
        }
    }

    pub(crate) async fn begin(&self) -> BusinessTransaction {
        match self {
            Self::Postgres(pool) => BusinessTransaction::Postgres(pool.begin().await.unwrap()),
            Self::Sqlite(pool) => BusinessTransaction::Sqlite(Store::begin_immediate(pool).await.unwrap()),
        }
    }

    /// Begins a transaction on a connection that is set up not to wait for the disk.
    pub(crate) async fn begin_careless(&self) -> BusinessTransaction {
        match self {
            Self::Postgres(pool) => {
                let mut open = pool.begin().await.unwrap();
                sqlx::query("SET LOCAL synchronous_commit = off").execute(&mut *open).await.unwrap();
                BusinessTransaction::Postgres(open)
            }
            Self::Sqlite(pool) => {
                // The pool's only connection so far, which the transaction then uses.
                sqlx::query("PRAGMA synchronous = OFF").execute(pool).await.unwrap();
                self.begin().await
            }
        }
    }

    pub(crate) async fn orders(&self) -> i64 {
        match self {
            Self::Postgres(pool) => sqlx::query(COUNT).fetch_one(pool).await.unwrap().get(0),
            Self::Sqlite(pool) => sqlx::query(COUNT).fetch_one(pool).await.unwrap().get(0),
        }
    }
}

/// A transaction of the business.
pub(crate) enum BusinessTransaction {
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

impl BusinessTransaction {
    pub(crate) async fn order(&mut self) {
        match self {
            Self::Postgres(open) => drop(sqlx::query(ORDER).execute(&mut **open).await.unwrap()),
            Self::Sqlite(open) => drop(sqlx::query(ORDER).execute(&mut **open).await.unwrap()),
        }
    }

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

    pub(crate) async fn record(
        &mut self,
        store: &Store,
        recording: &KeyRecording,
    ) -> Result<KeyRecorded, StoreError> {
        match self {
            Self::Postgres(open) => store.keys().record_in(open, recording).await,
            Self::Sqlite(open) => store.keys().record_in(open, recording).await,
        }
    }

    pub(crate) async fn is_on(&mut self, store: &Store) -> Result<bool, StoreError> {
        match self {
            Self::Postgres(open) => store.is_database_of(open).await,
            Self::Sqlite(open) => store.is_database_of(open).await,
        }
    }

    /// Returns whether its commit waits for the disk.
    pub(crate) async fn is_durable(&mut self) -> bool {
        match self {
            Self::Postgres(open) => {
                let row = sqlx::query("SHOW synchronous_commit").fetch_one(&mut **open).await.unwrap();
                row.get::<String, _>(0) == "on"
            }
            Self::Sqlite(open) => {
                let row = sqlx::query("PRAGMA synchronous").fetch_one(&mut **open).await.unwrap();
                row.get::<i64, _>(0) == 2
            }
        }
    }

    async fn enqueue(&mut self, store: &Store, message: NewMessage) -> Result<Enqueued, StoreError> {
        match self {
            Self::Postgres(open) => store.messages().enqueue_in(open, message).await,
            Self::Sqlite(open) => store.messages().enqueue_in(open, message).await,
        }
    }

    async fn enqueue_many(&mut self, store: &Store, messages: Vec<NewMessage>) -> Vec<Enqueued> {
        match self {
            Self::Postgres(open) => store.messages().enqueue_all_in(open, messages).await.unwrap(),
            Self::Sqlite(open) => store.messages().enqueue_all_in(open, messages).await.unwrap(),
        }
    }

    pub(crate) async fn commit(self) {
        match self {
            Self::Postgres(open) => open.commit().await.unwrap(),
            Self::Sqlite(open) => open.commit().await.unwrap(),
        }
    }

    pub(crate) async fn roll_back(self) {
        match self {
            Self::Postgres(open) => open.rollback().await.unwrap(),
            Self::Sqlite(open) => open.rollback().await.unwrap(),
        }
    }
}

both_databases! {
    #[test]
    async fn an_order_and_its_message_commit_together(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let mut open = business.begin().await;
        open.order().await;
        let id = new_id(open.enqueue(&fixture.store, message("m1")).await.unwrap());
        let many = open.enqueue_many(&fixture.store, vec![message("m1"), message("m2")]).await;
        assert_eq!(many[0], Enqueued::Replay { id });
        let other = new_id(many[1]);
        open.commit().await;
        assert_eq!(business.orders().await, 1);
        assert_eq!(ids(&fixture.claim(10).await), [id, other]);
        fixture.assert_counts(&[("sending", 2)]).await;
    }

    #[test]
    async fn equal_content_in_one_transaction_is_one_action(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let same = SameContent { content: Digest::of_bytes(b"c"), window: Duration::from_mins(1) };
        let with_same_content = |key: &str| NewMessage { same_content: Some(same), ..message(key) };
        let mut open = business.begin().await;
        let batch = vec![with_same_content("p1"), message("m1"), with_same_content("p2"), with_same_content("p1")];
        let answers = open.enqueue_many(&fixture.store, batch).await;
        let (first, plain) = (new_id(answers[0]), new_id(answers[1]));
        assert_eq!(answers[2..], [Enqueued::SameContent { id: first }, Enqueued::Replay { id: first }]);
        open.commit().await;
        assert_eq!(ids(&fixture.claim(10).await), [first, plain]);
    }

    #[test]
    async fn rolled_back_order_drops_its_message(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let mut open = business.begin().await;
        open.order().await;
        let id = new_id(open.enqueue(&fixture.store, message("m1")).await.unwrap());
        open.roll_back().await;
        assert_eq!(business.orders().await, 0);
        assert_eq!(fixture.store.messages().get(id).await.unwrap(), None);
        assert!(fixture.claim(10).await.is_empty());
        fixture.assert_counts(&[]).await;
        // Its key was never used.
        fixture.enqueue("m1").await;
    }

    #[test]
    async fn a_message_is_not_claimed_before_its_order_is_committed(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let mut open = business.begin().await;
        open.order().await;
        let id = new_id(open.enqueue(&fixture.store, message("m1")).await.unwrap());
        assert_eq!(fixture.store.messages().get(id).await.unwrap(), None, "nobody else sees it");
        open.commit().await;
        fixture.store.queues().wake(&queue());
        assert!(fixture.store.queues().wait(&queue(), Duration::from_hours(1)).await);
        assert_eq!(ids(&fixture.claim(10).await), [id]);
    }

    #[test]
    async fn a_duplicate_does_not_end_the_order_it_comes_with(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let id = fixture.enqueue("m1").await;
        let mut open = business.begin().await;
        open.order().await;
        assert_eq!(open.enqueue(&fixture.store, message("m1")).await.unwrap(), Enqueued::Replay { id });
        let other = NewMessage { request: b"other".to_vec().into(), ..message("m1") };
        let refused = open.enqueue(&fixture.store, other).await;
        assert!(matches!(refused, Err(StoreError::KeyConflict { id: first }) if first == id), "{refused:?}");
        open.commit().await;
        assert_eq!(business.orders().await, 1);
        assert_eq!(ids(&fixture.claim(10).await), [id]);
    }

    #[test]
    async fn equal_content_is_one_message_within_an_order_too(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let same = SameContent { content: Digest::of_bytes(b"ten"), window: Duration::from_mins(1) };
        let alike = |key: &str| NewMessage { same_content: Some(same), ..message(key) };
        let mut open = business.begin().await;
        let id = new_id(open.enqueue(&fixture.store, alike("m1")).await.unwrap());
        assert_eq!(open.enqueue(&fixture.store, alike("m2")).await.unwrap(), Enqueued::SameContent { id });
        open.roll_back().await;
        let mut open = business.begin().await;
        let id = new_id(open.enqueue(&fixture.store, alike("m2")).await.unwrap());
        open.commit().await;
        assert_eq!(fixture.put(alike("m3")).await, Enqueued::SameContent { id });
    }

    #[test]
    async fn invalid_message_is_refused_and_the_order_continues(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let mut open = business.begin().await;
        open.order().await;
        let long = NewMessage { identity: "a".repeat(limits::MAX_IDENTITY_BYTES + 1), ..message("m1") };
        let refused = open.enqueue(&fixture.store, long).await;
        assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
        for nul in [
            NewMessage { identity: "a\0".to_owned(), ..message("m2") },
            NewMessage { request: body("a\0", b""), ..message("m3") },
            NewMessage { trace: Some("a\0".to_owned()), ..message("m4") },
            NewMessage { hops: Some("a\0".to_owned()), ..message("m5") },
        ] {
            let refused = open.enqueue(&fixture.store, nul).await;
            assert!(matches!(refused, Err(StoreError::NulInText { .. })), "{refused:?}");
        }
        open.commit().await;
        assert_eq!(business.orders().await, 1);
    }
}
