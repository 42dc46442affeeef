//! Opening the file: ours or nobody's, private, durable.
//!
//! The file itself is opened by SQLite alone. Its locks are the process's own and go when any handle of the process on the file is closed, so
//! that a look at it by other means would take them away from whoever works on it.

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

/// How SQLite files say whose they are: "ichq".
const APPLICATION_ID: i64 = 0x6963_6871;
/// The version of the tables that this program writes.
const VERSION: i64 = 1;
/// How long a writer waits for another process to be done with the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a caller waits for its turn in this process.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often opening is tried while another process makes the same file: SQLite does not wait for that by itself.
const OPEN_TRIES: u32 = 100;
const OPEN_WAIT: Duration = Duration::from_millis(20);

/// Making a file closes it, which takes away the locks that others of this process have on it. So one makes it at a time, and nobody has it
/// open by then.
static CREATING: Mutex<()> = Mutex::new(());

/// What is in a file.
#[derive(Debug, PartialEq, Eq)]
enum FileContents {
    Empty,
    OfflineQueue,
}

/// Opens a file, and says which one it is.
pub(super) async fn open(path: &Path, may_create: bool) -> Result<(SqlitePool, PathBuf), QueueError> {
    let unusable = |error: std::io::Error| QueueError::Unusable(error.to_string());
    if may_create {
        make(path).map_err(unusable)?;
    }
    let file = std::fs::canonicalize(path).map_err(unusable)?;
    if !file.is_file() {
        return Err(QueueError::Unusable("it is no file".to_owned()));
    }
    let mut tries_left = OPEN_TRIES;
    loop {
        match open_once(&file).await {
            Err(QueueError::Busy) if 0 < tries_left => {
                tries_left -= 1;
                tokio::time::sleep(OPEN_WAIT).await;
            }
            opened => return Ok((opened?, file)),
        }
    }
}

async fn open_once(file: &Path) -> Result<SqlitePool, QueueError> {
    // Only read at first: what is not ours is left as it is.
    let mut look = options(file).read_only(true).connect().await.map_err(not_a_database)?;
    // All of it as of one moment: another process may be making the tables.
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
        // SQLite itself rolls back when the disk is full, and sqlx then counts a transaction too many for ever: such a connection is replaced.
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
        // Accepted means durable, and the power may go at any moment.
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
        _ => Err(QueueError::Foreign),
    }
}

/// A text, a picture: what cannot be read at its very beginning is no database.
fn not_a_database(error: sqlx::Error) -> QueueError {
    match QueueError::from(error) {
        QueueError::Damaged(_) => QueueError::Foreign,
        error => error,
    }
}

/// Makes the tables, unless another process was quicker: all of them or none.
async fn begin(pool: &SqlitePool) -> Result<(), QueueError> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    if contents(&mut transaction).await? == FileContents::OfflineQueue {
        return Ok(transaction.rollback().await?);
    }
    sqlx::raw_sql(include_str!("sql/schema.sql")).execute(&mut *transaction).await?;
    write_transaction::write_watch(&mut transaction, FileClock::begin(clock::now())).await?;
    // They stand in the file's head, and come about with the rest.
    sqlx::query("PRAGMA user_version = 1").execute(&mut *transaction).await?;
    sqlx::query("PRAGMA application_id = 1768122481").execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

/// Makes an empty file that its owner alone can read, unless there is one.
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

/// The name of a new file must be on the disk as well as what is in it.
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
    fn the_numbers_in_the_sql_are_these() {
        let source = include_str!("file.rs");
        assert!(source.contains(&format!("PRAGMA application_id = {APPLICATION_ID}\"")));
        assert!(source.contains(&format!("PRAGMA user_version = {VERSION}\"")));
    }
}
