//! Measures how fast Ichido is: beside its peers in a contest, and as ratios to the least SQL for the same work.

mod contest;
mod dashboard;
mod floor;
mod floor_sqlite;
mod load;
mod once;
mod report;
mod serve;
mod sqlite;
mod store;

use std::process::ExitCode;

use contest::Size;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["contest"] => contest::run(Size::FULL, &[]).await,
        // The names are for those who add a contestant.
        ["contest", "--quick", names @ ..] => contest::run(Size::QUICK, names).await,
        ["report"] => contest::report(),
        ["contest-ours", task] => contest::ours::run(parsed(task)).await,
        ["contest-floor", task] => contest::floor::run(parsed(task)).await,
        ["contest-endpoint", task] => contest::endpoint::run(parsed(task)).await,
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
        ["serve"] => {
            serve::on_postgres().await;
            serve::on_sqlite().await;
        }
        ["serve", "postgres"] => serve::on_postgres().await,
        ["serve", "sqlite"] => serve::on_sqlite().await,
        ["dashboard"] => {
            dashboard::on_postgres(dashboard::MESSAGES).await;
            dashboard::on_sqlite(dashboard::MESSAGES).await;
        }
        ["dashboard", "postgres"] => dashboard::on_postgres(dashboard::MESSAGES).await,
        ["dashboard", "sqlite"] => dashboard::on_sqlite(dashboard::MESSAGES).await,
        // A smaller store, for those who change a page.
        ["dashboard", "postgres", messages] => dashboard::on_postgres(parsed(messages)).await,
        ["dashboard", "sqlite", messages] => dashboard::on_sqlite(parsed(messages)).await,
        ["serve-by-hand", url] => serve::by_hand::serve(url).await,
        _ => {
            eprintln!(
                "usage: cargo xtask bench [--quick | report | store | once | serve | dashboard] [postgres|sqlite]"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn parsed<T: serde::de::DeserializeOwned>(argument: &str) -> T {
    serde_json::from_str(argument).expect("a task from the harness, or a number")
}
