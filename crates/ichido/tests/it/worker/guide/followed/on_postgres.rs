//! The page's PostgreSQL version: the same function with three words changed.

use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_store::Store;
use ichido_store::message::{MessageFilter, NewMessage, QueueName};
use ichido_store::testing::{postgres, sqlite};
use sqlx::PgPool;

use super::super::{Error, Mailer, Ordered, work};
use super::blocks;
use crate::worker::fixture::poll_pause;

async fn place(store: &Store, pool: &PgPool, person: &str, item: &str) -> Result<i64, Error> {
    let queue = QueueName::parse("mail").ok_or("a queue's name")?;
    let mut transaction = pool.begin().await?;
    let insert = sqlx::query_scalar("INSERT INTO orders (item) VALUES ($1) RETURNING id").bind(item);
    let order: i64 = insert.fetch_one(&mut *transaction).await?;
    let body = serde_json::to_vec(&Ordered { order, item: item.to_owned() })?;
    // One key per mail: enqueuing it twice makes one message.
    let key = IdempotencyKey::parse(&format!("order-{order}"))?;
    let message = NewMessage::new(queue.clone(), person, key, body);
    store.messages().enqueue_in(&mut transaction, message).await?;
    // Checked this late to show that both rows, already written, are rolled back.
    if item == "nothing" {
        return Err("nothing cannot be ordered".into());
    }
    transaction.commit().await?;
    store.queues().wake(&queue); // Otherwise the worker finds it a moment later.
    Ok(order)
}

#[test]
fn only_documented_lines_differ() {
    let page = blocks("rust")[1]
        .replace("SqlitePool", "PgPool")
        .replace("Store::begin_immediate(pool)", "pool.begin()");
    assert!(include_str!("on_postgres.rs").contains(&page), "not compiled:\n{page}");
}

/// The order and its mail, or neither; and one mail, although the first attempt failed.
// Spec: D4.
#[tokio::test]
async fn order_and_mail_commit_together_or_not_at_all() {
    let database = postgres::fresh_database().await;
    let store = Store::open(&database.url, 4).await.unwrap();
    let pool = PgPool::connect(&database.url).await.unwrap();
    let orders =
        "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text NOT NULL)";
    sqlx::query(orders).execute(&pool).await.unwrap();
    let place_for_mails = sqlite::fresh_file();
    let folder = place_for_mails.folder().join("mails");
    let worker = work(store.clone(), Mailer { folder: folder.clone() }).unwrap();
    assert!(place(&store, &pool, "ann", "nothing").await.is_err());
    let order = place(&store, &pool, "ann", "apple").await.unwrap();
    let only = loop {
        let messages = store.messages().list(&MessageFilter::default(), 10).await.unwrap();
        assert_eq!(messages.len(), 1, "a rollback leaves no message");
        match messages[0].status {
            StateName::Sent => break messages[0].clone(),
            StateName::Failed => {
                std::fs::create_dir_all(&folder).unwrap();
                // The schedule's wait is over.
                store.advance_clock(Duration::from_secs(5));
            }
            _ => poll_pause().await,
        }
    };
    assert_eq!(only.attempts, 2);
    let mails = std::fs::read_dir(&folder).unwrap().map(|mail| mail.unwrap().path());
    let mails: Vec<String> = mails.map(|mail| std::fs::read_to_string(mail).unwrap()).collect();
    assert_eq!(mails, [format!("Order {order}: apple")]);
    worker.stop();
    worker.ended().await;
}
