//! The guide to exactly-once jobs, followed. Its program is everything from the first `use` to the first test.

use ichido::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Credit {
    account: i64,
    points: i64,
}

impl Message for Credit {
    const QUEUE: &str = "credits";
}

#[derive(Serialize, Deserialize)]
struct MailBalance {
    account: i64,
}

impl Message for MailBalance {
    const QUEUE: &str = "mail";
}

async fn credit(job: Job<Credit>, tx: Tx<Sqlite>) -> Result<(), JobError> {
    let Credit { account, points } = job.payload;
    let mut tx = tx.lock().await?; // The transaction begins here.
    let update = sqlx::query("UPDATE accounts SET points = points + $1 WHERE id = $2");
    update.bind(points).bind(account).execute(&mut *tx).await?;
    tx.enqueue(&MailBalance { account }).await?;
    Ok(()) // The update, the mail and this job's end commit together.
}

async fn run(url: &str) -> Result<(Ichido<Sqlite>, WorkerHandle), Box<dyn std::error::Error>> {
    let ichido = Ichido::<Sqlite>::connect(url).await?;
    let accounts = "CREATE TABLE IF NOT EXISTS accounts (id INTEGER PRIMARY KEY, points INTEGER NOT NULL)";
    sqlx::query(accounts).execute(ichido.pool()).await?;
    let worker = ichido.worker().handle_tx(credit).start()?;
    Ok((ichido, worker))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guide_to_exactly_once_jobs_works_as_written() {
    let source = include_str!("guide.rs");
    let program = source.split_once("use ichido").unwrap().1.split_once("\n#[tokio::test").unwrap().0;
    let guide = include_str!("../../../../../../docs/guides/exactly-once-jobs.md");
    assert!(guide.contains(&format!("```rust\nuse ichido{program}```\n")), "the guide shows another program");

    let file = ichido_store::testing::sqlite::fresh_file();
    let (ichido, worker) = run(&file.url).await.unwrap();
    sqlx::query("INSERT INTO accounts VALUES (7, 100)").execute(ichido.pool()).await.unwrap();
    let _new = ichido.enqueue(&Credit { account: 7, points: 5 }).await.unwrap();
    let mails = async || {
        let counts = ichido.store().queues().counts().await.unwrap();
        counts.into_iter().filter(|count| count.queue == "mail").map(|count| count.count).sum::<i64>()
    };
    while mails().await == 0 {
        crate::worker::fixture::poll_pause().await;
    }
    let points = sqlx::query_scalar::<_, i64>("SELECT points FROM accounts WHERE id = 7");
    assert_eq!((points.fetch_one(ichido.pool()).await.unwrap(), mails().await), (105, 1));
    worker.stop();
    worker.ended().await;
}
