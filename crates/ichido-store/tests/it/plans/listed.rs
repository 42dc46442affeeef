//! Lists of messages read what they show.

use ichido_store::Store;
use ichido_store::testing::postgres::fresh_database;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};

use super::{plan_as, rows_read};

/// A waiting message is looked up by its own key, not by its queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_queue_are_listed_however_many_wait_in_it() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let id = "md5(n::text)::uuid";
    for statement in [
        format!(
            "INSERT INTO ichido.messages SELECT {id}, 'orders', 'alice', 'p' || n, sha256('x'), 'text/plain', 'x', NULL, 2, 9, NULL, NULL, now() \
             FROM generate_series(1, 20000) n"
        ),
        format!(
            "INSERT INTO ichido.ready (queue, priority, message_id) SELECT 'orders', 2, {id} FROM generate_series(1, 20000) n"
        ),
        "VACUUM ANALYZE ichido.messages".to_owned(),
        "VACUUM ANALYZE ichido.ready".to_owned(),
    ] {
        connection.execute(AssertSqlSafe(statement)).await.expect("waiting messages");
    }
    let ids = "SELECT array_agg(md5(n::text)::uuid)::text FROM generate_series(1, 50) n";
    let ids = connection.fetch_one(ids).await.expect("ids").get::<String, _>(0);
    let list = plan_as(
        &mut connection,
        "SET LOCAL plan_cache_mode = force_custom_plan",
        include_str!("../../../src/postgres/sql/message_list.sql"),
        &format!("'orders', NULL, NULL, NULL, NULL, NULL, NULL, '{ids}', 50, NULL, NULL"),
    )
    .await;
    let rows = rows_read(&serde_json::from_str(&list.text).expect("a plan"));
    assert!(rows <= 50.0 * 7.0, "{rows} rows for 50 messages: {}", list.text);
    assert!(list.buffers < 50 * 30, "{} pages for 50 messages: {}", list.buffers, list.text);
    drop(store);
}
