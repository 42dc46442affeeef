//! Fresh PostgreSQL databases for tests in other languages: one for each line of its input, whose URL it prints. They are there until its
//! input closes.

use std::io::{BufRead as _, Write as _};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut databases = Vec::new();
    // Whoever started it holds the other end: when that is gone, however it went, so is the server.
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
