//! The binary `bookmarks`.

mod command;

use std::process::ExitCode;

use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    match command::Command::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bookmarks: {why}");
            ExitCode::FAILURE
        }
    }
}
