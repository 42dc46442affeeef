//! The page's PostgreSQL version: the same function with one word changed.

use std::time::Duration;

use ichido::prelude::*;
use ichido_store::message::MessageFilter;
use ichido_store::testing::postgres;
use tokio::sync::mpsc;

use super::super::SendReceipt;
use super::blocks;

async fn place(ichido: &Ichido<Postgres>, item: String) -> Result<i64, Box<dyn std::error::Error>> {
    let mut tx = ichido.begin().await?;
    let insert = sqlx::query_scalar("INSERT INTO orders (item) VALUES ($1) RETURNING id").bind(&item);
    let order = insert.fetch_one(&mut *tx).await?;
    tx.enqueue(&SendReceipt { order, item: item.clone() }).await?;
    (item != "nothing").then_some(()).ok_or("nothing cannot be ordered")?; // Both rows are rolled back.
    tx.commit().await?;
    Ok(order)
}

#[test]
fn only_documented_words_differ() {
    let page = blocks("rust")[1].replace("Sqlite", "Postgres");
    assert!(include_str!("on_postgres.rs").contains(&page), "not compiled:\n{page}");
}

/// The order and its mail, or neither; and the worker is woken.
// Spec: D4.
#[tokio::test]
async fn order_and_mail_commit_together_or_not_at_all() {
    let database = postgres::fresh_database().await;
    let ichido = Ichido::<Postgres>::connect(&database.url).await.unwrap();
    let orders = "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text)";
    sqlx::query(orders).execute(ichido.pool()).await.unwrap();
    let (mailed, mut mails) = mpsc::unbounded_channel();
    let mail = move |job: Job<SendReceipt>| {
        mailed.send((job.payload.order, job.payload.item)).unwrap();
        async { Ok::<(), JobError>(()) }
    };
    let worker = ichido.worker().handle_keyed(Duration::from_hours(24), mail).start().unwrap();
    assert!(place(&ichido, "nothing".to_owned()).await.is_err());
    let order = place(&ichido, "apple".to_owned()).await.unwrap();
    assert_eq!(mails.recv().await, Some((order, "apple".to_owned())));
    let messages = ichido.store().messages().list(&MessageFilter::default(), 10).await.unwrap();
    assert_eq!(messages.len(), 1, "a rollback leaves no message");
    worker.stop();
    worker.ended().await;
    assert!(mails.is_empty(), "one mail");
}
