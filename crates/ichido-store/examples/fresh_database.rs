//! Creates PostgreSQL databases for tests in other languages.
//!
//! For each line of its input it creates one and prints its URL. The databases exist until its input closes.

use std::io::{BufRead as _, Write as _};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut databases = Vec::new();
    // The parent process holds the other end: when it is gone, however it ended, so is the server.
    for line in std::io::stdin().lock().lines() {
        line?;
        let database = ichido_store::testing::postgres::fresh_database().await;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", database.url)?;
        out.flush()?;
        databases.push(database);
    }
    Ok(())
}
