//! Opens the file: only an Ichido queue or a new one, private and durable.
//!
//! Only SQLite opens the file. SQLite's locks belong to the process and are released when any handle of the process
//! on the file is closed, so opening the file in another way would release locks that are in use.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_http::clock;
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, Transaction};

use super::age::FileClock;
use super::error::QueueError;
use super::write_transaction;

/// The application id of SQLite files that are queues: "ichq".
const APPLICATION_ID: i64 = 0x6963_6871;
/// The schema version that this program writes.
const VERSION: i64 = 1;
/// How long a writer waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a caller waits for a connection in this process.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often opening is retried while another process creates the file.
///
/// SQLite does not wait for that.
const OPEN_TRIES: u32 = 100;
const OPEN_WAIT: Duration = Duration::from_millis(20);

/// Creating a file closes it, which releases all locks of this process on it. Therefore only one task creates it at a
/// time, and nobody has it open yet.
static CREATING: Mutex<()> = Mutex::new(());

/// The contents of a file.
#[derive(Debug, PartialEq, Eq)]
enum FileContents {
    Empty,
    OfflineQueue,
}

/// Opens a file and returns its canonical path.
pub(super) async fn open(path: &Path, may_create: bool) -> Result<(SqlitePool, PathBuf), QueueError> {
    let unusable = |error: std::io::Error| QueueError::Unusable(error.to_string());
    if may_create {
        make(path).map_err(unusable)?;
    }
    let file = std::fs::canonicalize(path).map_err(unusable)?;
    if !file.is_file() {
        return Err(QueueError::Unusable("it is not a file".to_owned()));
    }
    let mut attempts_left = OPEN_TRIES;
    loop {
        match open_once(&file).await {
            Err(QueueError::Busy) if 0 < attempts_left => {
                attempts_left -= 1;
                tokio::time::sleep(OPEN_WAIT).await;
            }
            opened => return Ok((opened?, file)),
        }
    }
}

async fn open_once(file: &Path) -> Result<SqlitePool, QueueError> {
    // Read only at first: a file that is not ours stays unchanged.
    let mut look = options(file).read_only(true).connect().await.map_err(not_a_database)?;
    // Read everything in one transaction: another process may be creating the tables.
    let mut moment = look.begin().await?;
    let found = contents(&mut moment).await;
    moment.rollback().await?;
    look.close().await?;
    let is_new = found? == FileContents::Empty;
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .acquire_slow_threshold(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // SQLite rolls back on its own when the disk is full, and sqlx then counts one transaction too many forever.
        // Such a connection is replaced.
        .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }));
    let pool = pool.connect_with(options(file).journal_mode(SqliteJournalMode::Wal)).await?;
    if is_new {
        begin(&pool).await?;
    }
    Ok(pool)
}

fn options(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(false)
        .busy_timeout(BUSY_TIMEOUT)
        // Accepted means durable, and power may fail at any moment.
        .synchronous(SqliteSynchronous::Full)
}

async fn contents(transaction: &mut Transaction<'_, Sqlite>) -> Result<FileContents, QueueError> {
    let mut number = async |sql: &'static str| -> Result<i64, sqlx::Error> {
        sqlx::query(sql).fetch_one(&mut **transaction).await?.try_get(0)
    };
    let id = number("PRAGMA application_id").await.map_err(not_a_database)?;
    let version = number("PRAGMA user_version").await?;
    let tables = number("SELECT count(*) FROM sqlite_schema").await?;
    match (id, version, tables) {
        (APPLICATION_ID, VERSION, _) => Ok(FileContents::OfflineQueue),
        (APPLICATION_ID, found, _) if VERSION < found => Err(QueueError::TooNew { found, known: VERSION }),
        (0, 0, 0) => Ok(FileContents::Empty),
        _ => Err(QueueError::NotAQueue),
    }
}

/// Maps the error of a file that is not a database, such as an image.
fn not_a_database(error: sqlx::Error) -> QueueError {
    match QueueError::from(error) {
        QueueError::Damaged(_) => QueueError::NotAQueue,
        error => error,
    }
}

/// Creates all tables in one transaction, unless another process was faster.
async fn begin(pool: &SqlitePool) -> Result<(), QueueError> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    if contents(&mut transaction).await? == FileContents::OfflineQueue {
        return Ok(transaction.rollback().await?);
    }
    sqlx::raw_sql(include_str!("sql/schema.sql")).execute(&mut *transaction).await?;
    write_transaction::write_watch(&mut transaction, FileClock::begin(clock::now())).await?;
    // These values are in the file header and are committed with the tables.
    sqlx::query("PRAGMA user_version = 1").execute(&mut *transaction).await?;
    sqlx::query("PRAGMA application_id = 1768122481").execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

/// Creates an empty file that only its owner can read, unless it exists.
fn make(path: &Path) -> std::io::Result<()> {
    let _alone = lock(&CREATING);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(made) => {
            drop(made);
            sync_folder(path)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Syncs the folder, because a new file's name must be on disk too.
#[cfg(unix)]
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_pragmas_match_the_constants() {
        let source = include_str!("file.rs");
        assert!(source.contains(&format!("PRAGMA application_id = {APPLICATION_ID}\"")));
        assert!(source.contains(&format!("PRAGMA user_version = {VERSION}\"")));
    }
}
