//! Runs the PostgreSQL server of a whole test run.
//!
//! It prints the server's URL, the template's name and the folder with a new cluster's files, each on a line, and stops when its
//! input closes.

use std::error::Error;
use std::io::{Read as _, Write as _};

use ichido_store::testing::postgres::Cluster;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::start_shared()?;
    let template = cluster.template().await?;
    println!("{}\n{template}\n{}", cluster.url("postgres"), cluster.new_files().display());
    std::io::stdout().flush()?;
    // The test run holds the other end. However it ends, the server ends with it.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
