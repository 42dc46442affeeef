//! How fast Ichido is, measured as ratios in one run against the least SQL that could do the same work.

mod floor;
mod report;
mod store;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["store"] {
        eprintln!("usage: cargo xtask bench store");
        return ExitCode::from(2);
    }
    store::run().await;
    ExitCode::SUCCESS
}
