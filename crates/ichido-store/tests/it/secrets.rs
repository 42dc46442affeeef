//! An error never contains what was to be stored, whatever the database reports, and however the error is printed.

use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{NewMessage, Note, QueueName, ReceiverResponse, RequestBody};
use ichido_store::testing::{postgres, sqlite};
use sqlx::{Connection as _, Executor as _, PgConnection};

const SECRET: &str = "0123-4567-8901";

fn message() -> NewMessage {
    let queue = QueueName::parse("orders").expect("a name");
    let key = IdempotencyKey::parse("k1").expect("a key");
    let bytes = SECRET.as_bytes().to_vec();
    let request = RequestBody::new(format!("text/{SECRET}"), bytes, CanonicalForm::default());
    NewMessage::new(queue, SECRET, key, request.expect("not JSON"))
}

/// Returns everything that can be printed of an error and its causes.
fn printed(error: &StoreError) -> String {
    let first: &dyn std::error::Error = error;
    let causes = std::iter::successors(Some(first), |error| error.source());
    let all: Vec<String> = causes.map(|error| format!("{error} {error:?} {error:#?}")).collect();
    all.join(" ")
}

fn assert_names_only_the_cause(refused: Result<impl std::fmt::Debug, StoreError>, why: &str) {
    let error = refused.expect_err("it is refused");
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    let printed = printed(&error);
    assert!(printed.contains(why), "{printed}");
    let hex: Vec<String> = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!printed.contains(SECRET) && !printed.contains(&hex.concat()), "{printed}");
}

// SPEC D18.
#[test]
fn a_kept_response_is_not_printed() {
    let body = Some(SECRET.as_bytes().to_vec());
    let (content_type, bytes) = ("text/plain".to_owned(), SECRET.len());
    let response = ReceiverResponse { content_type, bytes, is_whole: true, body };
    let note = Note { response: Some(response), ..Note::default() };
    let printed = format!("{note:?} {note:#?}");
    assert!(printed.contains("text/plain"), "{printed}");
    assert!(!printed.contains(SECRET) && !printed.contains(&format!("{:?}", SECRET.as_bytes())), "{printed}");
}

#[tokio::test]
async fn a_row_that_postgres_refuses_is_not_in_the_error() {
    let database = postgres::fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let refuse = "ALTER TABLE ichido.messages ADD CONSTRAINT no_orders CHECK (queue <> 'orders')";
    connection.execute(refuse).await.expect("a constraint of somebody's");
    assert_names_only_the_cause(store.messages().enqueue(message()).await, "no_orders");
    let mut open = connection.begin().await.expect("begun");
    assert_names_only_the_cause(store.messages().enqueue_in(&mut *open, message()).await, "no_orders");
}

#[tokio::test]
async fn a_row_that_sqlite_refuses_is_not_in_the_error() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 2).await.expect("the store opens");
    let refuse = "CREATE TRIGGER no_orders BEFORE INSERT ON ichido_messages BEGIN SELECT RAISE(ABORT, 'no_orders'); END";
    store.sqlite_writer().expect("on SQLite").execute(refuse).await.expect("a trigger of somebody's");
    assert_names_only_the_cause(store.messages().enqueue(message()).await, "no_orders");
}
