//! Follows the guide to tests of handlers: every line of its Rust is in this file.

use std::time::Duration;

use ichido::prelude::*;
use serde::{Deserialize, Serialize};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Serialize, Deserialize)]
struct SendReceipt {
    order: i64,
}

impl Message for SendReceipt {
    const QUEUE: &str = "mail";

    fn key(&self) -> Option<String> {
        Some(format!("order-{}", self.order))
    }
}

async fn place(ichido: &Ichido<Sqlite>, item: &str) -> Result<i64, Error> {
    let mut tx = ichido.begin().await?;
    let insert = sqlx::query_scalar("INSERT INTO orders (item) VALUES ($1) RETURNING id").bind(item);
    let order = insert.fetch_one(&mut *tx).await?;
    tx.enqueue(&SendReceipt { order }).await?;
    tx.commit().await?;
    Ok(order)
}

/// A mailer for this page: a table of mails, in which a key is unique. It remembers keys for a day.
fn worker(ichido: &Ichido<Sqlite>) -> Worker {
    let pool = ichido.pool().clone();
    ichido.worker().handle_keyed(Duration::from_hours(24), move |job: Job<SendReceipt>| {
        let pool = pool.clone();
        async move {
            let insert = "INSERT INTO mails (key, text) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            let text = format!("Thank you for order {}.", job.payload.order);
            sqlx::query(insert).bind(job.key.as_str()).bind(text).execute(&pool).await?;
            Ok(())
        }
    })
}

mod tests {
    use std::time::Duration;

    use ichido::assert_enqueued;
    use ichido::testing::{Drained, Fault, TestIchido};

    use super::{SendReceipt, place, worker};

    async fn shop() -> TestIchido {
        let test = TestIchido::new().await;
        for table in [
            "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT NOT NULL)",
            "CREATE TABLE mails (key TEXT PRIMARY KEY, text TEXT NOT NULL)",
        ] {
            sqlx::query(table).execute(test.pool()).await.unwrap();
        }
        test
    }

    async fn mails(test: &TestIchido) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM mails").fetch_one(test.pool()).await.unwrap()
    }

    #[tokio::test]
    async fn an_order_enqueues_its_receipt() {
        let test = shop().await;
        let order = place(&test, "apple").await.unwrap();
        assert_enqueued!(test, SendReceipt, |receipt| receipt.order == order);
    }

    #[tokio::test]
    async fn a_receipt_is_mailed() {
        let test = shop().await;
        place(&test, "apple").await.unwrap();
        let drained = test.drain(&worker(&test), "mail").await;
        assert_eq!(drained, Drained { sent: 1, ..Drained::default() });
        assert_eq!(mails(&test).await, 1);
    }

    #[tokio::test]
    async fn a_receipt_is_mailed_once() {
        for fault in [Fault::LostAnswer, Fault::CrashBeforeEffect, Fault::CrashAfterEffect] {
            let test = shop().await;
            let worker = worker(&test);
            place(&test, "apple").await.unwrap();
            test.inject("mail", fault);
            assert_eq!(test.drain(&worker, "mail").await.failed, 1);
            test.advance(Duration::from_mins(1)); // The retry is due.
            assert_eq!(test.drain(&worker, "mail").await.sent, 1);
            assert_eq!(mails(&test).await, 1, "after {fault:?}");
        }
    }
}

mod followed {
    const GUIDE: &str = include_str!("../../../../../docs/guides/test-your-handlers.md");

    /// The lines of a text, without indentation.
    fn lines(text: &str) -> String {
        text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_code_line_of_the_testing_guide_is_compiled() {
        let here = lines(include_str!("guide.rs"));
        let blocks: Vec<&str> =
            GUIDE.split("```rust\n").skip(1).map(|part| part.split("```").next().unwrap()).collect();
        assert_eq!(blocks.len(), 5);
        for block in blocks {
            assert!(here.contains(&lines(block)), "not compiled:\n{block}");
        }
    }
}
