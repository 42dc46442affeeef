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
use crate::store::{check_exists, resolve_url};

const AFTER_HELP: &str = "\
The way back: stop every program that works on the store, move its file and the files of the same name with -wal and -shm away, \
and put the copy there under the store's name. What happened after the copy was made is not in it: messages that were sent since are \
sent again, under the same keys.

Exit code: 0 when the copy is made, 1 when it cannot be, 2 when what was asked makes no sense, as on PostgreSQL, and 3 when the \
store was not reached.

Examples:
  ichido backup monday.db
  ichido backup /mnt/copies/monday.db --store sqlite:ichido.db";

/// What `ichido backup` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The new file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where messages are kept: sqlite:FILE [default: as the configuration says; without one, sqlite:ichido.db]
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,

    /// The configuration that names the store [default: ichido.toml, if it is there]
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    /// JSON for programs
    #[arg(long)]
    json: bool,
}

/// Makes the copy.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let url = resolve_url(args.store, args.config)?;
    check_exists(&url).map_err(Exit::Failed)?;
    let Backup { file, bytes, schema } = admin::back_up(&url, &args.file).await?;
    let file = file.display();
    if args.json {
        return out::print_line(json!({ "file": file.to_string(), "bytes": bytes, "schema": schema }));
    }
    out::print_line(format_args!("{file} is a copy of the store, {}", size::shown(bytes)))
}
