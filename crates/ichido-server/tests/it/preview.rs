//! The preview of a bulk operation on more letters than are counted.

// Spec: E4, H9.

use http::header::LOCATION;
use http::{Method, StatusCode};
use ichido_client::Client;
use ichido_store::Store;
use ichido_store::dead_letter::limits::MAX_COUNTED;
use ichido_store::testing::{postgres, sqlite};
use ichido_store::token::TokenRole;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};

use crate::dashboard::Browser;
use crate::groups::{LETTERS, MAX_CASE, die, get, post, publish};
use crate::mounting::{client, foreign_app, token_of};

/// A requeue of all letters of the queue, with further members.
fn requeue(more: &Value) -> Value {
    let mut body = json!({ "action": "requeue", "filter": { "queue": "orders" } });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

async fn until_ended(operator: &Client, operation: &str) -> Value {
    loop {
        let shown = get(operator, operation).await;
        if shown["state"] == "ended" && shown["result"] != Value::Null {
            return shown;
        }
    }
}

/// The store has [`LETTERS`] and, in the same queue, as many rows as are counted. These have no message, so nothing moves them.
async fn case(store: Store) {
    let url = foreign_app(&store).await;
    let operator = client(&url, Some(&token_of(&store, TokenRole::Operator).await));
    let counted = post(&operator, "/v1/operations", &requeue(&json!({ "preview": true }))).await;
    let preview = serde_json::from_slice::<Value>(&counted.body).unwrap()["preview"].take();
    for number in [&preview["matched"], &preview["eligible"], &preview["queues"]["orders"]] {
        assert_eq!(number, MAX_COUNTED, "{preview}");
    }
    assert_eq!(preview["has_more"], true, "{preview}");
    let narrow = json!({ "preview": true, "filter": { "queue": "orders", "text": "not enough money" } });
    let narrow = post(&operator, "/v1/operations", &requeue(&narrow)).await;
    let narrow = serde_json::from_slice::<Value>(&narrow.body).unwrap()["preview"].take();
    assert_eq!((&narrow["matched"], &narrow["has_more"]), (&json!(LETTERS / 3), &json!(false)));

    for confirmed in [u64::from(MAX_COUNTED), 1_000_000] {
        let refused = post(&operator, "/v1/operations", &requeue(&json!({ "confirmed": confirmed }))).await;
        let problem = refused.problem();
        assert_eq!((refused.status, problem.code.as_deref()), (409, Some("operation_refused")));
        let detail = problem.detail.unwrap_or_default();
        for said in [
            "more than 30000 messages match",
            "nothing was started",
            "narrow the filter, or leave out `confirmed`",
        ] {
            assert!(detail.contains(said), "{said}: {detail}");
        }
    }

    let mut browser = Browser::signed_in(&store, "").await;
    let page = "/operations/new?action=requeue&state=dead&queue=orders";
    let (_, _, shown) = browser.send(Method::GET, page, String::new()).await;
    for said in
        ["More than 30,000 messages match.", "Type ALL to confirm", "name=\"confirmed\" value=\"ALL\""]
    {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let form = "action=requeue&state=dead&queue=orders";
    let stale = format!("{form}&confirmed={MAX_COUNTED}&typed={MAX_COUNTED}");
    let (status, _, shown) = browser.send(Method::POST, "/operations", stale).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(shown.contains("Nothing was started") && shown.contains("Type ALL to confirm"), "{shown}");
    assert_eq!(get(&operator, "/v1/operations").await["operations"], json!([]));

    let begun = post(&operator, "/v1/operations", &requeue(&json!({}))).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    let operation = format!("/v1/operations/{}", begun.text_at("/operation/id").unwrap());
    let ended = until_ended(&operator, &operation).await;
    assert_eq!(ended["result"]["moved"], LETTERS, "also those that were not counted: {ended}");
    assert_eq!(ended["start"]["has_more"], true, "{ended}");
    assert!(ended["detail"].as_str().unwrap().contains("; at least 30000 of more than 30000"), "{ended}");

    let all = format!("{form}&confirmed=ALL&typed=all");
    let (status, headers, shown) = browser.send(Method::POST, "/operations", all).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{shown}");
    let location = headers[LOCATION].to_str().unwrap();
    until_ended(&operator, &format!("/v1{location}")).await;
}

#[tokio::test]
async fn what_is_not_counted_is_not_confirmed_by_a_number_on_postgres() {
    let database = postgres::fresh_database().await;
    let store = Store::open(&database.url, 4).await.unwrap();
    die(&store).await;
    publish(&store).await;
    let rows = format!(
        "INSERT INTO ichido.dead_letters (message_id, queue, state, effect, code, since, attempts, deaths) \
         SELECT gen_random_uuid(), 'orders', 'dead', 'not_done', 'BAD_REQUEST', now() + n * interval '1 ms' - interval '1 day', 1, 0 \
         FROM generate_series(1, {MAX_COUNTED}) n"
    );
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    connection.execute(AssertSqlSafe(rows)).await.unwrap();
    tokio::time::timeout(MAX_CASE, case(store)).await.unwrap();
}

#[tokio::test]
async fn what_is_not_counted_is_not_confirmed_by_a_number_on_sqlite() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 4).await.unwrap();
    die(&store).await;
    publish(&store).await;
    let rows = format!(
        "WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < {MAX_COUNTED}) \
         INSERT INTO ichido_dead_letters (message_id, queue, state, effect, code, since, attempts, deaths) \
         SELECT randomblob(16), 'orders', 'dead', 'not_done', 'BAD_REQUEST', n, 1, 0 FROM i"
    );
    let mut connection = SqliteConnection::connect(&file.url).await.unwrap();
    connection.execute(AssertSqlSafe(rows)).await.unwrap();
    tokio::time::timeout(MAX_CASE, case(store)).await.unwrap();
}
