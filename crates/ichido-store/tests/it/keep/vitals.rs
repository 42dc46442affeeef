use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::diagnostics::{DatabaseDiagnostics, Diagnostics, PostgresDiagnostics, inspect};
use ichido_store::error::StoreError;
use ichido_store::facts::QueueFacts;
use ichido_store::message::QueueName;
use ichido_store::testing::postgres::{durable_database, fresh_database};
use ichido_store::testing::sqlite::fresh_file;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use uuid::Uuid;

const LONG: Duration = Duration::from_hours(1);

fn server(vitals: Diagnostics) -> PostgresDiagnostics {
    match vitals.database {
        DatabaseDiagnostics::Postgres(server) => *server,
        other @ DatabaseDiagnostics::Sqlite { .. } => panic!("{other:?}"),
    }
}

fn no_clock() -> Timestamp {
    Timestamp::EPOCH
}

/// Publishes like a worker that starts, with a heartbeat.
async fn publish(store: &Store) {
    let queue = QueueName::parse("orders").unwrap();
    let (guarantee, max_attempts) = (Guarantee::None, NonZeroU32::MIN);
    let facts = QueueFacts { guarantee, requeue: true, max_attempts, retry_horizon: LONG };
    store.queues().key_kind(&queue, "derived").await.unwrap();
    store.nodes().heartbeat(Uuid::from_u128(1), "worker").await.unwrap();
    store.facts().publish(Uuid::from_u128(1), &[(queue, facts)]).await.unwrap();
}

#[tokio::test]
async fn diagnostics_read_a_file_without_creating_it() {
    let file = fresh_file();
    let missing = inspect(&file.url, no_clock, LONG).await;
    assert!(matches!(missing, Err(StoreError::Unavailable(_))), "{missing:?}");
    assert!(!file.path().exists());

    let store = Store::open(&file.url, 2).await.unwrap();
    publish(&store).await;
    let seen = inspect(&file.url, no_clock, LONG).await.unwrap();
    assert_eq!(seen.schema_found, Some(seen.schema_known));
    assert_eq!(seen.queues, store.facts().list().await.unwrap());
    assert_eq!(seen.queues.len(), 1);
    assert_eq!(seen.database, DatabaseDiagnostics::Sqlite { journal_mode: "wal".to_owned(), synchronous: 2 });

    store.close(LONG).await;
    drop(store);
    let mut connection = SqliteConnection::connect(&file.url).await.unwrap();
    sqlx::query("PRAGMA journal_mode = DELETE").execute(&mut connection).await.unwrap();
    let seen = inspect(&file.url, no_clock, LONG).await.unwrap();
    assert_eq!(
        seen.database,
        DatabaseDiagnostics::Sqlite { journal_mode: "delete".to_owned(), synchronous: 2 }
    );
}

#[tokio::test]
async fn diagnostics_read_the_server_through_our_connections() {
    let database = durable_database().await;
    let seen = inspect(&database.url, no_clock, LONG).await.unwrap();
    assert_eq!((seen.schema_found, server(seen).nodes), (None, 0), "nothing was made");

    let store = Store::open(&database.url, 2).await.unwrap();
    for node in [1, 2] {
        store.nodes().heartbeat(Uuid::from_u128(node), "worker").await.unwrap();
    }
    publish(&store).await;
    // A role's settings do not apply to us.
    let name = sqlx::query_scalar::<_, String>("SELECT current_database()::text");
    let name = name.fetch_one(store.postgres_pool().unwrap()).await.unwrap();
    let role = sqlx::AssertSqlSafe(format!("ALTER DATABASE \"{name}\" SET synchronous_commit = off"));
    sqlx::query(role).execute(store.postgres_pool().unwrap()).await.unwrap();
    let seen = inspect(&database.url, no_clock, LONG).await.unwrap();
    assert_eq!(seen.schema_found, Some(seen.schema_known));
    assert_eq!(seen.queues, store.facts().list().await.unwrap());
    assert_eq!(seen.queues.len(), 1);
    let server = server(seen);
    let mut plain = PgConnection::connect(&database.url).await.unwrap();
    let said = sqlx::query_as::<_, (String, String, String, String)>(
        "SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('max_connections'), current_setting('synchronous_commit')",
    );
    let (fsync, full_page_writes, connections, commits) = said.fetch_one(&mut plain).await.unwrap();
    assert_eq!((server.fsync, server.full_page_writes), (fsync == "on", full_page_writes == "on"));
    assert_eq!(server.max_connections.to_string(), connections);
    assert_eq!((server.synchronous_commit.as_str(), commits.as_str()), ("on", "off"));
    assert!(0 < server.connections_reserved && server.connections_reserved < server.max_connections);
    assert_eq!((server.nodes, server.follows), (2, false));
}

#[tokio::test]
async fn clocks_are_read_around_the_servers_answer() {
    let database = fresh_database().await;
    let ticks = Cell::new(0);
    let clock = || {
        ticks.set(ticks.get() + 1);
        Timestamp::from_secs(ticks.get())
    };
    let reading = server(inspect(&database.url, clock, LONG).await.unwrap()).clock;
    assert_eq!((reading.before, reading.after), (Timestamp::from_secs(1), Timestamp::from_secs(2)));
    assert!(Timestamp::from_secs(1_700_000_000) < reading.database, "{reading:?}");
}

#[tokio::test]
async fn open_transactions_are_listed_without_statements() {
    let database = fresh_database().await;
    let pool = PgPoolOptions::new().max_connections(1).connect(&database.url).await.unwrap();
    let mut open = pool.begin().await.unwrap();
    let mine = sqlx::query_as::<_, (i32, String)>("SELECT pg_backend_pid(), current_user::text");
    let (process, user) = mine.fetch_one(&mut *open).await.unwrap();
    sqlx::query("SELECT 's3cret'").execute(&mut *open).await.unwrap();
    let seen = server(inspect(&database.url, no_clock, Duration::ZERO).await.unwrap());
    let found: Vec<(i32, &str)> =
        seen.open_transactions.iter().map(|open| (open.process, open.user.as_str())).collect();
    assert_eq!(found, [(process, user.as_str())]);
    assert!(!format!("{seen:?}").contains("s3cret"));
    assert!(seen.open_transactions[0].since < seen.clock.database);
    let seen = server(inspect(&database.url, no_clock, LONG).await.unwrap());
    assert_eq!(seen.open_transactions, []);
    open.rollback().await.unwrap();
    let seen = server(inspect(&database.url, no_clock, Duration::ZERO).await.unwrap());
    assert_eq!(seen.open_transactions, []);
}

#[tokio::test]
async fn missing_server_is_unavailable() {
    let nobody = inspect("postgres://ichido:s3cret@127.0.0.1:1/ichido", no_clock, LONG).await.unwrap_err();
    assert!(matches!(nobody, StoreError::Unavailable(_)), "{nobody:?}");
    assert!(!nobody.with_causes().contains("s3cret"));
}
