//! The guide to the transactional outbox, followed: between this line and the last stand the blocks of its Rust, in order, and no more.

use std::io::ErrorKind;

use ichido::prelude::*;

#[derive(serde::Serialize, serde::Deserialize)]
struct SendReceipt {
    order: i64,
    item: String,
}

impl Message for SendReceipt {
    const QUEUE: &str = "mail";
    fn key(&self) -> Option<String> {
        Some(format!("order-{}", self.order)) // One mail per order, however often it is enqueued.
    }
}

async fn place(ichido: &Ichido<Sqlite>, item: String) -> Result<i64, Box<dyn std::error::Error>> {
    let mut tx = ichido.begin().await?;
    let insert = sqlx::query_scalar("INSERT INTO orders (item) VALUES ($1) RETURNING id").bind(&item);
    let order = insert.fetch_one(&mut *tx).await?;
    tx.enqueue(&SendReceipt { order, item: item.clone() }).await?;
    (item != "nothing").then_some(()).ok_or("nothing cannot be ordered")?; // Both rows are rolled back.
    tx.commit().await?;
    Ok(order)
}

async fn mail(job: Job<SendReceipt>) -> Result<(), JobError> {
    let text = format!("Order {}: {}", job.payload.order, job.payload.item);
    let sent = tokio::fs::write(format!("mails/{}", job.key.as_str()), &text).await;
    println!("mail {text:?}: {sent:?}");
    sent.map_err(|why| match why.kind() {
        ErrorKind::NotFound => JobError::unreachable(why),
        ErrorKind::NotADirectory => JobError::dead(why),
        _ => JobError::unknown(why),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ichido = Ichido::<Sqlite>::connect("sqlite:shop.db").await?;
    let orders = "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT)";
    sqlx::query(orders).execute(ichido.pool()).await?;
    let worker = ichido.worker().handle_keyed(std::time::Duration::from_hours(24), mail).start()?;
    for item in std::io::stdin().lines() {
        println!("order: {:?}", place(&ichido, item?).await);
    }
    worker.stop();
    worker.ended().await;
    Ok(())
}

mod followed;
