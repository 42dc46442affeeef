//! The program of `docs/guides/retrying-client.md`: an order that is done once, whatever happens on the way.

mod order;

use std::error::Error;
use std::path::Path;

/// Where an order waits for its outcome.
const KEPT: &str = "order.kept";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:4180".to_owned());
    println!("{}", order::run(&url, Path::new(KEPT)).await?.join("\n"));
    Ok(())
}
