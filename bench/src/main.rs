//! How fast Ichido is, measured as ratios in one run against the least SQL that could do the same work.

mod floor;
mod load;
mod once;
mod report;
mod store;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["store"] => store::run().await,
        ["once"] => once::run().await,
        _ => {
            eprintln!("usage: cargo xtask bench store|once");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
