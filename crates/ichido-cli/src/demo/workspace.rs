//! The store and the listener of the demo.
//!
//! Guarantee: it never writes to an existing store, and it removes its store at the end unless the user asked to keep
//! it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ichido_server::config::LISTEN_DEFAULT;
use ichido_server::config::sqlite_file;
use ichido_server::config::store_url::check;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::exit::Exit;

/// The store's file name in the temporary folder.
const FILE: &str = "ichido.db";

/// The store of a demo.
pub(super) struct Workspace {
    pub(super) url: String,
    /// The temporary folder, if the store is in one.
    folder: Option<PathBuf>,
}

impl Workspace {
    /// Uses the requested file, which must not exist, or a file in a new folder.
    pub(super) fn create(store: Option<String>) -> Result<Self, Exit> {
        if let Some(url) = store {
            new_file(&url).map_err(|what| Exit::invalid("--store", what))?;
            return Ok(Self { url, folder: None });
        }
        let folder = std::env::temp_dir().join(format!("ichido-demo-{}", Uuid::now_v7()));
        create_private(&folder).map_err(|error| {
            let shown = folder.display();
            Exit::Failed(format!("cannot create the folder {shown} for the demo's store: {error}; pass another file with --store sqlite:FILE"))
        })?;
        let url = format!("sqlite:{}", folder.join(FILE).display());
        Ok(Self { url, folder: Some(folder) })
    }

    /// Describes the store, for people.
    pub(super) fn describe(&self) -> String {
        let file = sqlite_file(&self.url).unwrap_or(Path::new(""));
        let whole = std::path::absolute(file);
        let shown = whole.as_deref().unwrap_or(file).display();
        let then = if self.folder.is_some() { "removed at the end" } else { "kept" };
        format!("{shown} ({then})")
    }

    /// Removes the temporary store, and describes what is left.
    ///
    /// `clock_ahead` is how far the store's clock was advanced.
    pub(super) fn clean_up(mut self, clock_ahead: Duration) -> Result<String, Exit> {
        let Some(folder) = self.folder.take() else {
            return Ok(match clock_ahead.as_secs() / 60 {
                0 => "the store is kept".to_owned(),
                minutes => format!("the store is kept; the times in it are up to {minutes} minutes ahead"),
            });
        };
        std::fs::remove_dir_all(&folder).map_err(|error| {
            Exit::Failed(format!("cannot remove {}: {error}; remove it yourself", folder.display()))
        })?;
        Ok("nothing is left behind".to_owned())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // An earlier error is what gets reported.
        drop(self.folder.take().map(std::fs::remove_dir_all));
    }
}

fn new_file(url: &str) -> Result<(), &'static str> {
    check(url)?;
    match sqlite_file(url).map(Path::try_exists) {
        None => {
            Err("is not an SQLite store, and the demo does not use a shared database; write \"sqlite:FILE\"")
        }
        Some(Ok(false)) => Ok(()),
        Some(Ok(true)) => {
            Err("already exists, and the demo does not write to existing stores; pass a new file")
        }
        Some(Err(_)) => Err("cannot be checked; pass a file in a folder that you can read"),
    }
}

/// Creates a folder that only its owner can read, though the orders are made up.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The listener of the demo.
pub(super) struct BoundListener {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    /// Whether the default port was taken.
    pub(super) is_fallback_port: bool,
}

/// Binds the requested address; by default the usual port or a free one.
pub(super) async fn listen(requested: Option<SocketAddr>) -> Result<BoundListener, Exit> {
    if let Some(beyond) = requested.filter(|address| !address.ip().is_loopback()) {
        return Err(Exit::invalid(
            "--listen",
            format!(
                "{beyond} is reachable from other machines, and the demo has no authentication; use a loopback address such as {LISTEN_DEFAULT}"
            ),
        ));
    }
    let usual = TcpListener::bind(requested.unwrap_or(LISTEN_DEFAULT)).await;
    let (bound, is_fallback_port) = match usual {
        Err(error) if requested.is_none() && error.kind() == ErrorKind::AddrInUse => {
            (TcpListener::bind((LISTEN_DEFAULT.ip(), 0)).await, true)
        }
        bound => (bound, false),
    };
    let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        let address = requested.unwrap_or(LISTEN_DEFAULT);
        Exit::Failed(format!("cannot listen on {address}: {error}; choose another port with --listen"))
    })?;
    Ok(BoundListener { listener, address, is_fallback_port })
}
