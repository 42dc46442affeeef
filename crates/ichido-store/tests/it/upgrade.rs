//! A node of the next release changes the schema while this one runs: prepared statements still work.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, Failure, StateName};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::Effect;
use ichido_store::Store;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::message::{
    ClaimOptions, DeadLetterState, Enqueued, MessageFilter, NewMessage, Note, QueueName, Settlement,
};
use ichido_store::testing::{postgres, sqlite};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _, SqliteConnection};
use uuid::Uuid;

/// sqlx prepares a statement the first time; PostgreSQL caches its plan from the sixth time on.
const TIMES: usize = 8;

fn message(key: &str) -> NewMessage {
    let queue = QueueName::parse("orders").expect("a name");
    NewMessage::new(queue, "alice", IdempotencyKey::parse(key).expect("a key"), key.as_bytes().to_vec())
}

/// Enqueues a message and lets it die, so it is in every listing.
async fn die(store: &Store, key: &str) -> Uuid {
    let put = store.messages().enqueue(message(key)).await.expect("enqueued");
    let Enqueued::New { id } = put else { panic!("{put:?}") };
    let terms = ClaimOptions {
        node: Uuid::nil(),
        lease: Duration::from_secs(30),
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    let work =
        store.claims().claim(&message(key).queue, NonZeroU32::MIN, terms).await.expect("claimed").remove(0);
    let (fence, failure, effect) = (work.fence, Failure::Permanent, Effect::NotDone);
    let event =
        Event::Failed { fence, failure, effect, safety: Safety::Keyed, in_flight_until: work.claimed_at };
    let _ = store.claims().settle(Settlement::new(&work, event, Note::default())).await.expect("settled");
    store.queues().pause(&message(key).queue, false, Some("olivia")).await.expect("recorded");
    id
}

/// Reads everything that can be read.
async fn read_everything(store: &Store, id: Uuid) {
    for _ in 0..TIMES {
        assert!(store.messages().get(id).await.expect("read").is_some());
        assert_eq!(store.messages().transitions(id).await.expect("read").len(), 2);
        let dead = MessageFilter { status: Some(StateName::Dead), ..MessageFilter::default() };
        for filter in [MessageFilter::default(), dead] {
            assert!(!store.messages().list(&filter, 10).await.expect("read").is_empty());
        }
        assert!(
            !store.dead_letters().list(DeadLetterState::Dead, None, None, 10).await.expect("read").is_empty()
        );
        let queue = message("k").queue;
        assert!(
            !store
                .dead_letters()
                .list(DeadLetterState::Dead, Some(&queue), None, 10)
                .await
                .expect("read")
                .is_empty()
        );
        assert!(
            !store
                .dead_letters()
                .page(&DeadLetterFilter::default(), None, 10)
                .await
                .expect("read")
                .is_empty()
        );
        assert!(!store.dead_letters().find(&[id]).await.expect("read").is_empty());
        assert!(!store.messages().states(&[id]).await.expect("read").is_empty());
        assert!(!store.actions().list(None, 10).await.expect("read").is_empty());
        assert!(!store.queues().counts().await.expect("read").is_empty());
    }
}

#[tokio::test]
async fn a_column_added_by_the_next_release_does_not_stop_this_one_on_postgres() {
    let database = postgres::fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let id = die(&store, "before").await;
    read_everything(&store, id).await;
    let mut next = PgConnection::connect(&database.url).await.expect("connected");
    let tables =
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'ichido' AND tablename <> 'migrations'";
    for row in next.fetch_all(tables).await.expect("the tables") {
        let table: &str = row.get(0);
        let add = format!("ALTER TABLE ichido.{table} ADD COLUMN added text DEFAULT 'x'");
        next.execute(AssertSqlSafe(add)).await.expect("a column more");
    }
    let view = next.fetch_one("SELECT pg_get_viewdef('ichido.message'::regclass)").await.expect("the view");
    let wider = view.get::<&str, _>(0).replace("AS updated_at", "AS updated_at, m.added");
    assert!(wider.contains("m.added"), "{wider}");
    let wider = format!("CREATE OR REPLACE VIEW ichido.message AS {wider}");
    next.execute(AssertSqlSafe(wider)).await.expect("a wider view");
    read_everything(&store, id).await;
    let after = die(&store, "after").await;
    read_everything(&store, after).await;
}

#[tokio::test]
async fn a_column_added_by_the_next_release_does_not_stop_this_one_on_sqlite() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 2).await.expect("the store opens");
    let id = die(&store, "before").await;
    read_everything(&store, id).await;
    let mut next = SqliteConnection::connect(&file.url).await.expect("connected");
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'ichido%' AND name <> 'ichido_migrations'";
    for row in next.fetch_all(tables).await.expect("the tables") {
        let add = format!("ALTER TABLE {} ADD COLUMN added TEXT DEFAULT 'x'", row.get::<&str, _>(0));
        next.execute(AssertSqlSafe(add)).await.expect("a column more");
    }
    read_everything(&store, id).await;
    let after = die(&store, "after").await;
    read_everything(&store, after).await;
}
