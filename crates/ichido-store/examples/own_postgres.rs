//! Runs a PostgreSQL server that a test in another language stops and starts.
//!
//! It prints the URL of an empty database. For each line of its input, `stop` or `start`, it does that and prints `done`. The server ends
//! when its input closes.

use std::error::Error;
use std::io::{BufRead as _, Write as _};

use ichido_store::testing::postgres::{Cluster, StopMode};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::start(&[])?;
    let database = cluster.database().await?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", database.url)?;
    out.flush()?;
    // The parent process holds the other end: when it is gone, however it ended, so is the server.
    for line in std::io::stdin().lock().lines() {
        match line?.as_str() {
            // As in a crash: nobody is told.
            "stop" => cluster.stop(StopMode::Immediate)?,
            "start" => cluster.start_again()?,
            other => return Err(format!("unknown request {other:?}").into()),
        }
        writeln!(out, "done")?;
        out.flush()?;
    }
    Ok(())
}
