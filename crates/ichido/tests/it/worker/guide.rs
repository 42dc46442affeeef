//! The guide to the transactional outbox, followed: between this line and the last stand the blocks of its Rust, in order, and no more.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use ichido::destination::{Handler, Job, JobError};
use ichido::worker::{DestinationConfig, QueueConfig, Worker, WorkerHandle};
use ichido_core::key::IdempotencyKey;
use ichido_store::Store;
use ichido_store::message::{NewMessage, QueueName};
use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Serialize, Deserialize)]
struct Ordered {
    order: i64,
    item: String,
}

async fn place(store: &Store, pool: &SqlitePool, person: &str, item: &str) -> Result<i64, Error> {
    let queue = QueueName::parse("mail").ok_or("a queue's name")?;
    let mut transaction = Store::begin_immediate(pool).await?;
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

/// How long the mailer remembers a key: longer than a message is retried.
const KEEPS_KEYS_FOR: Duration = Duration::from_hours(24);

/// A mailer for this page: each mail is a file in a folder. Without the folder, the mailer is down.
#[derive(Clone)]
struct Mailer {
    folder: PathBuf,
}

impl Mailer {
    /// The key is the file's name, so a mail that is sent twice is one file.
    async fn send(&self, key: &str, mail: &str) -> Result<(), std::io::Error> {
        tokio::fs::write(self.folder.join(key), mail).await?;
        println!("mailed: {mail}");
        Ok(())
    }
}

fn work(store: Store, mailer: Mailer) -> Result<WorkerHandle, Error> {
    let handler = Handler::json(move |job: Job<Ordered>| {
        let mailer = mailer.clone();
        async move {
            let Ordered { order, item } = job.payload;
            // The key is the same on every attempt: a mailer that deduplicates by key sends one mail.
            let sent = mailer.send(job.key.as_str(), &format!("Order {order}: {item}")).await;
            sent.map_err(|why| {
                println!("not mailed on attempt {}: {why}", job.attempt);
                match why.kind() {
                    ErrorKind::NotFound => JobError::unreachable(why),
                    ErrorKind::NotADirectory => JobError::dead(why),
                    _ => JobError::unknown(why),
                }
            })
        }
    });
    let mail = DestinationConfig::new("mail", handler.keyed(KEEPS_KEYS_FOR));
    // Operators may requeue dead letters.
    let queue = QueueConfig { requeue: Some(true), ..QueueConfig::new("mail", "mail") };
    Ok(Worker::new(store).destination(mail).queue(queue).start()?)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = "sqlite:shop.db";
    let store = Store::open(url, 4).await?; // Ichido's tables, in your database.
    let pool = SqlitePool::connect(url).await?; // Your own connections to it.
    // AUTOINCREMENT never reuses a number: each one is part of a key.
    let orders =
        "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT NOT NULL)";
    sqlx::query(orders).execute(&pool).await?;
    let worker = work(store.clone(), Mailer { folder: "mails".into() })?;
    println!("What do you order? One thing a line; Ctrl-D ends.");
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(item) = lines.next_line().await? {
        match place(&store, &pool, "ann", &item).await {
            Ok(order) => println!("order {order} is committed"),
            Err(why) => println!("rolled back: {why}"),
        }
    }
    worker.stop();
    worker.ended().await;
    Ok(())
}

mod followed;
