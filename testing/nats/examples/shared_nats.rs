//! The NATS server of a whole test run. It prints the server's URL and stops when its input closes.

use std::io::{Read as _, Write as _};

use nats_for_tests::NatsServer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let server = NatsServer::start().await;
    println!("{}", server.url());
    std::io::stdout().flush()?;
    // The test run holds the other end. However it ends, the server ends with it.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
