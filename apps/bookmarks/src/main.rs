//! The binary `bookmarks`.

mod command;

use std::process::ExitCode;

use bookmarks::StartError;

/// The database file was removed or replaced. A service manager must not restart the program: it would create a new,
/// empty file. The code is that of `ichido`.
const STORE_LOST: u8 = 5;

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    match command::Command::read().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bookmarks: {why}");
            match why.downcast_ref() {
                Some(StartError::Lost(_)) => ExitCode::from(STORE_LOST),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
