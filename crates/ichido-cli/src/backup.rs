//! `ichido backup`: copies an SQLite store while a server works on it.
//!
//! Guarantee: when it exits with 0, the copy is complete, on disk, readable by its owner alone, and holds everything
//! that was acknowledged before the copy started. An existing file is never touched.

use std::path::PathBuf;

use ichido_core::settings::size;
use ichido_server::admin::{self, Backup};
use serde_json::json;

use crate::exit::Exit;
use crate::out;
use crate::target::StoreArgs;

const AFTER_HELP: &str = "\
To restore: stop every program that uses the store, move its file and the -wal and -shm files beside it away, and move the copy to the \
store's path. Changes after the backup are lost: messages that were sent since then are sent again, with the same keys.

Exit code: 0 on success, 1 if the copy failed, 2 for a usage or configuration error (such as a PostgreSQL store), and 3 if the store \
cannot be reached.

Examples:
  ichido backup monday.db
  ichido backup /mnt/copies/monday.db --store sqlite:ichido.db";

/// Arguments of `ichido backup`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Path of the copy; must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    store: StoreArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Makes the copy.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let found = args.store.find()?;
    found.check_exists().map_err(Exit::Unreachable)?;
    let Backup { file, bytes, schema } = admin::back_up(&found.url, &args.file).await?;
    let file = file.display();
    let made = json!({ "file": file.to_string(), "bytes": bytes, "schema": schema });
    out::print_either(args.json, made, format_args!("copied the store to {file}, {}", size::format(bytes)))
}
