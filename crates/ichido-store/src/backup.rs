//! A copy of an SQLite store, taken while others work on it.
//!
//! Guarantee: a file under the name that was asked for is a whole store and on the disk, and holds everything that was acknowledged
//! before [`take`] was called. A file that is there already is never written to; one that is not finished has another name. The
//! store itself is not changed, nor brought to a newer schema.
//!
//! PostgreSQL has tools of its own for this, which know more of it: it is refused.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use crate::driver::UNKNOWN_ADDRESS;
use crate::error::StoreError;
use crate::sqlite::{self, schema_found};

/// What the end of a backup's name is while it is being written.
const UNFINISHED: &str = ".partial";

/// A copy that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Where it is, from the root.
    pub file: PathBuf,
    /// How large it is.
    pub bytes: u64,
    /// The version of its schema.
    pub schema: i64,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It is not ours to do.
    #[error(
        "the store is on PostgreSQL, whose own tools back it up: pg_dump for one database, pg_basebackup with WAL archiving for the whole server and every moment"
    )]
    Postgres,
    /// Somebody's file has that name.
    #[error("{} is there already, and stays as it is; name another file", .0.display())]
    Exists(PathBuf),
    /// Another backup is under way, or was killed.
    #[error(
        "{} is there: another backup to the same name is under way, or one was cut off; once none is, remove it", .0.display()
    )]
    UnderWay(PathBuf),
    /// A name that SQLite cannot be told.
    #[error("{} has a name that is no UTF-8; name another file", .0.display())]
    Name(PathBuf),
    /// A database, but no store.
    #[error("the database holds no store of Ichido's, so that there is nothing to back up")]
    NoStore,
    /// The copy could not be written, or not be made durable.
    #[error("{} cannot be written: {error}", .file.display())]
    File {
        /// Which one.
        file: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// The store could not be read, or the copy not be written: the disk may be full.
    #[error("the store could not be copied: {}", .0.in_full())]
    Store(StoreError),
}

impl<E: Into<StoreError>> From<E> for BackupError {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

/// Copies the SQLite store at an address into a new file, readable by its owner alone. Whoever works on the store goes on.
///
/// ```
/// use ichido_store::{Store, backup};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let place = ichido_store::testing::sqlite::fresh_file();
/// # let url = &place.url;
/// # let into = place.folder().join("monday.db");
/// let store = Store::open(url, 4).await?;
/// let taken = backup::take(url, &into).await?;
/// let copy = Store::open(&format!("sqlite:{}", taken.file.display()), 4).await?;
/// # drop((store, copy));
/// # Ok(())
/// # }
/// ```
pub async fn take(url: &str, into: &Path) -> Result<Backup, BackupError> {
    match url.split_once(':') {
        Some(("sqlite", _)) => {}
        Some(("postgres" | "postgresql", _)) => return Err(BackupError::Postgres),
        _ => return Err(StoreError::Address(UNKNOWN_ADDRESS).into()),
    }
    // From the root, because SQLite reads some names that are not as something else than a file's.
    let file = std::path::absolute(into).map_err(|error| failed(into, error))?;
    let mut connection = sqlite::options(url)?.connect().await.map_err(StoreError::Unavailable)?;
    refuse_own_names(url, &file)?;
    let schema = schema_found(&mut connection).await?.ok_or(BackupError::NoStore)?;
    let unfinished = Unfinished::reserve(&file)?;
    copy(&mut connection, &unfinished.0).await?;
    // It has only read; how it takes its leave changes nothing about the copy.
    drop(connection.close().await);
    let finished = tokio::task::spawn_blocking(move || unfinished.finish(file));
    let (file, bytes) = finished.await.map_err(|error| failed(into, io::Error::other(error)))??;
    Ok(Backup { file, bytes, schema })
}

/// The names that SQLite uses beside the store's own are its to write and to remove.
fn refuse_own_names(url: &str, file: &Path) -> Result<(), BackupError> {
    let address = url.split_once(':').map_or(url, |(_, address)| address);
    let store = std::path::absolute(address.strip_prefix("//").unwrap_or(address));
    let store = store.map_err(|error| failed(file, error))?;
    let is_own = ["-journal", "-wal", "-shm"].iter().any(|end| {
        let mut name = store.as_os_str().to_owned();
        name.push(end);
        name == file.as_os_str()
    });
    let taken = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "that name is the store's own, which removes it; take another",
        )
    };
    if is_own { Err(failed(file, taken())) } else { Ok(()) }
}

async fn copy(connection: &mut SqliteConnection, into: &Path) -> Result<(), BackupError> {
    let name = into.to_str().ok_or_else(|| BackupError::Name(into.to_owned()))?;
    sqlx::query("VACUUM INTO ?1").bind(name).execute(connection).await?;
    Ok(())
}

fn failed(file: &Path, error: io::Error) -> BackupError {
    BackupError::File { file: file.to_owned(), error }
}

/// A file that is being written, removed unless it gets its own name.
struct Unfinished(PathBuf);

impl Unfinished {
    /// Takes the name for as long as it takes. Who holds it is alone in looking for the file itself.
    fn reserve(file: &Path) -> Result<Self, BackupError> {
        let mut name = file.as_os_str().to_owned();
        name.push(UNFINISHED);
        let name = PathBuf::from(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // It holds requests and responses.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&name).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => BackupError::UnderWay(name.clone()),
            _ => failed(file, error),
        })?;
        let unfinished = Self(name);
        // A link that leads nowhere is there as well.
        match file.symlink_metadata() {
            Ok(_) => Err(BackupError::Exists(file.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(unfinished),
            Err(error) => Err(failed(file, error)),
        }
    }

    /// Gives it its name, once every byte of it is on the disk; and then the name is.
    fn finish(self, file: PathBuf) -> Result<(PathBuf, u64), BackupError> {
        let name = |error| failed(&file, error);
        let written = File::open(&self.0).map_err(name)?;
        written.sync_all().map_err(name)?;
        let bytes = written.metadata().map_err(name)?.len();
        std::fs::rename(&self.0, &file).map_err(name)?;
        #[cfg(unix)]
        if let Some(folder) = file.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(name)?;
        }
        Ok((file, bytes))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After `finish` it is not there any more.
        drop(std::fs::remove_file(&self.0));
    }
}
