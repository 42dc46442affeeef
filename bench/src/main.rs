//! Measures how fast Ichido is, as ratios in one run to the least SQL for the same work.

mod floor;
mod floor_sqlite;
mod load;
mod once;
mod outbox;
mod report;
mod serve;
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
        ["outbox"] => {
            outbox::on_postgres().await;
            outbox::on_sqlite().await;
        }
        ["outbox", "postgres"] => outbox::on_postgres().await,
        ["outbox", "sqlite"] => outbox::on_sqlite().await,
        ["outbox-part", part, url, count] => {
            outbox::part::run(part, url, count.parse().expect("a number")).await;
        }
        ["serve"] => {
            serve::on_postgres().await;
            serve::on_sqlite().await;
        }
        ["serve", "postgres"] => serve::on_postgres().await,
        ["serve", "sqlite"] => serve::on_sqlite().await,
        ["serve-by-hand", url] => serve::by_hand::serve(url).await,
        _ => {
            eprintln!("usage: cargo xtask bench store|once|outbox|serve [postgres|sqlite]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
