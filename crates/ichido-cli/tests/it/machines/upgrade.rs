//! A rollout: the first node of the next release migrates the schema while nodes of this release run.

use std::process::Command;

use ichido_store::testing::postgres::durable_database;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::database::DatabaseProbe;
use super::in_time;
use super::load::{Acknowledged, Producers};
use super::node::{FAULTY, QUEUE, ServeNode};
use crate::mock_broker::broker::{MockBroker, order};
use crate::serve::client::RawRequest;
use crate::serve::program::{POLL_EVERY, ichido};

/// How many messages are enqueued before, during and after the migration.
const MESSAGES: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_nodes_keep_working_after_a_migration() {
    in_time(1, the_next_release_is_rolled_out()).await;
}

async fn the_next_release_is_rolled_out() {
    let (fresh, mock) = (durable_database().await, MockBroker::start(&FAULTY));
    let database = DatabaseProbe::open(&fresh.url).await;
    let mut nodes = Vec::new();
    for name in ["a", "b"] {
        nodes.push(ServeNode::start(name, &fresh.url, mock.address).await);
    }
    let load = Producers::start(&nodes);
    load.until_more(MESSAGES).await;
    let mut next = PgConnection::connect(&fresh.url).await.unwrap();
    let version = migrate(&mut next, &nodes[0]).await;
    load.until_more(MESSAGES).await;

    // Connections that are opened later work as well.
    for node in &nodes {
        node.link.cut();
        node.link.restore();
        node.until_ready().await;
    }
    load.until_more(MESSAGES).await;
    let by_next = write_as_the_next_release(&mut next, &nodes[0]).await;
    this_release_does_not_start_any_more(&fresh.url, version);
    load.until_more(MESSAGES).await;
    let mut acknowledged = load.end().await;
    let id = by_next.id;
    acknowledged.push(by_next);
    database.until_all_ended().await;
    database.holds_each_once(&acknowledged, &mock).await;
    let left = "SELECT count(*) FILTER (WHERE added = 'x'), count(*) FILTER (WHERE added = 'y' AND id = $1) FROM ichido.messages";
    let left = sqlx::query(left).bind(id).fetch_one(&mut next).await.unwrap();
    let all = i64::try_from(acknowledged.len()).unwrap();
    assert_eq!((left.get::<i64, _>(0), left.get::<i64, _>(1)), (all - 1, 1));
}

/// Adds a table, a column to each table, an index and a wider view in one transaction, as the migrator does.
///
/// The transaction stays open until a request has met it. Returns the version.
async fn migrate(next: &mut PgConnection, node: &ServeNode) -> i64 {
    let mut migration = next.begin().await.unwrap();
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'ichido' AND tablename <> 'migrations' ORDER BY 1";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *migration).await.unwrap();
    let mut steps = vec!["CREATE TABLE ichido.added (id bigint PRIMARY KEY)".to_owned()];
    steps.extend(
        tables.iter().map(|table| format!("ALTER TABLE ichido.{table} ADD COLUMN added text DEFAULT 'x'")),
    );
    steps.push("CREATE INDEX messages_added ON ichido.messages (added)".to_owned());
    let view: String = sqlx::query_scalar("SELECT pg_get_viewdef('ichido.message'::regclass)")
        .fetch_one(&mut *migration)
        .await
        .unwrap();
    let wider = view.replace("AS updated_at", "AS updated_at, m.added");
    assert_ne!(wider, view);
    steps.push(format!("CREATE OR REPLACE VIEW ichido.message AS {wider}"));
    for step in steps {
        sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut *migration).await.unwrap();
    }
    let version = "INSERT INTO ichido.migrations (version, description, success, checksum, execution_time) \
        SELECT max(version) + 1, 'next', true, '', 0 FROM ichido.migrations RETURNING version";
    let version = sqlx::query_scalar(version).fetch_one(&mut *migration).await.unwrap();
    // The tables are locked: a caller is asked to retry, and not told that anything was done.
    let refused = node.send(&put("meanwhile")).await;
    assert_eq!((refused.status(), refused.code()), (503, "store_unavailable".to_owned()));
    migration.commit().await.unwrap();
    version
}

fn put(key: &str) -> RawRequest {
    RawRequest::put(key, &order(key).body).to(&format!("/v1/queues/{QUEUE}/messages"))
}

/// Writes a message with a value in a column that this release does not know.
async fn write_as_the_next_release(next: &mut PgConnection, node: &ServeNode) -> Acknowledged {
    let pause = |verb: &str| RawRequest::post(&format!("/v1/queues/{QUEUE}/{verb}"));
    assert_eq!(node.send(&pause("pause")).await.status(), 200);
    let key = "meanwhile".to_owned();
    let id: Uuid = loop {
        let answer = node.send(&put(&key)).await;
        if answer.status() == 201 {
            break answer.json()["id"].as_str().unwrap().parse().unwrap();
        }
        tokio::time::sleep(POLL_EVERY).await;
    };
    let update = "UPDATE ichido.messages SET added = 'y' WHERE id = $1";
    sqlx::query(update).bind(id).execute(next).await.unwrap();
    assert_eq!(node.send(&pause("resume")).await.status(), 200);
    Acknowledged { key, id }
}

/// It cannot know what else the next release changed, and names the program that does.
fn this_release_does_not_start_any_more(url: &str, version: i64) {
    let serve =
        |command: &mut Command| command.args(["serve", "--listen", "127.0.0.1:0", "--store", url]).output();
    let refused = serve(&mut ichido(&std::env::temp_dir())).unwrap();
    let printed = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success());
    assert!(printed.contains(&format!("has schema version {version}")), "{printed}");
    assert!(printed.contains("run a newer version"), "{printed}");
}
