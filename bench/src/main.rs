//! How fast Ichido is, measured as ratios in one run against the least SQL that could do the same work.

mod floor;
mod floor_sqlite;
mod load;
mod once;
mod report;
mod sqlite;
mod store;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["store"] => {
            let mut lines = store::run().await;
            lines.extend(sqlite::run().await);
            report::print(&lines);
        }
        ["store", "postgres"] => report::print(&store::run().await),
        ["store", "sqlite"] => report::print(&sqlite::run().await),
        ["once"] => {
            once::on_postgres().await;
            once::on_sqlite().await;
        }
        ["once", "postgres"] => once::on_postgres().await,
        ["once", "sqlite"] => once::on_sqlite().await,
        _ => {
            eprintln!("usage: cargo xtask bench store [postgres|sqlite], or bench once [postgres|sqlite]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
