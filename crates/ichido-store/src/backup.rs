//! Online backup of an SQLite store.
//!
//! Guarantee: a file with the requested name is a complete store on disk, and contains everything acknowledged before [`take`]
//! was called. An existing file is never overwritten, and an unfinished copy has another name. The store itself is neither
//! changed nor migrated.
//!
//! PostgreSQL is refused: its own tools know more about it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use crate::driver::UNKNOWN_ADDRESS;
use crate::error::StoreError;
use crate::sqlite::{self, schema_found};

/// The suffix of a backup's name while it is being written.
const PARTIAL_SUFFIX: &str = ".partial";

/// A finished copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The absolute path.
    pub file: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
    /// The schema version.
    pub schema: i64,
}

/// Why no copy was made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// PostgreSQL has its own tools.
    #[error(
        "the store is on PostgreSQL; back it up with its own tools: pg_dump for one database, pg_basebackup with WAL archiving for the whole server and point-in-time recovery"
    )]
    Postgres,
    /// A file with that name exists.
    #[error("{} already exists and was not changed; name another file", .0.display())]
    Exists(PathBuf),
    /// Another backup is running, or was killed.
    #[error(
        "{} exists: another backup to the same name is running or was interrupted; remove the file if none is running", .0.display()
    )]
    UnderWay(PathBuf),
    /// A name that SQLite cannot be given.
    #[error("the name {} is not UTF-8; name another file", .0.display())]
    Name(PathBuf),
    /// A database without a store.
    #[error("the database has no Ichido store; there is nothing to back up")]
    NoStore,
    /// The copy could not be written or made durable.
    #[error("cannot write {}: {error}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The store could not be read or the copy not written. The disk may be full.
    #[error("cannot copy the store: {}", .0.with_causes())]
    Store(StoreError),
}

impl<E: Into<StoreError>> From<E> for BackupError {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

/// Copies an SQLite store to a new file.
///
/// The copy is readable by its owner only. The store stays in use meanwhile.
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
    // Absolute, because SQLite reads some relative names as something other than a file.
    let file = std::path::absolute(into).map_err(|error| failed(into, error))?;
    let mut connection = sqlite::options(url)?.connect().await.map_err(StoreError::Unavailable)?;
    refuse_own_names(url, &file)?;
    let schema = schema_found(&mut connection).await?.ok_or(BackupError::NoStore)?;
    let partial = PartialFile::reserve(&file)?;
    copy(&mut connection, &partial.0).await?;
    // It only read, so an error on close does not affect the copy.
    drop(connection.close().await);
    let finished = tokio::task::spawn_blocking(move || partial.finish(file));
    let (file, bytes) = finished.await.map_err(|error| failed(into, io::Error::other(error)))??;
    Ok(Backup { file, bytes, schema })
}

/// Refuses the names of SQLite's own files beside the store, which SQLite writes and removes.
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
            "the store uses this name for its own files and removes them; name another file",
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

/// A file being written; removed unless it gets its final name.
struct PartialFile(PathBuf);

impl PartialFile {
    /// Reserves the temporary name. Only its holder checks for the final file.
    fn reserve(file: &Path) -> Result<Self, BackupError> {
        let mut name = file.as_os_str().to_owned();
        name.push(PARTIAL_SUFFIX);
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
        let partial = Self(name);
        // A dangling symlink counts as existing.
        match file.symlink_metadata() {
            Ok(_) => Err(BackupError::Exists(file.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(partial),
            Err(error) => Err(failed(file, error)),
        }
    }

    /// Gives the file its final name once all bytes are on disk, then syncs the name.
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

impl Drop for PartialFile {
    fn drop(&mut self) {
        // After `finish` it no longer exists.
        drop(std::fs::remove_file(&self.0));
    }
}
