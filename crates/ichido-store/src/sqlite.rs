//! The SQLite driver: WAL with `synchronous=FULL`, one writer, every write transaction begun as `IMMEDIATE`, a pool of readers.
//!
//! A batch is one transaction, so the batchers in front make it a group commit. With a single writer nothing changes under a
//! transaction's eyes: what it reads it may act on, and no row is locked. Rows that are many go in as bound values, statement by
//! statement of up to 64 (`values`); lists of names go in as one JSON parameter for `json_each`.

mod audit;
mod enqueue;
mod files;
mod group_commit;
mod ledger;
mod maintenance;
mod own_claims;
pub(crate) mod step;
mod values;
mod work;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::time::Timestamp;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{Connection as _, Row as _, Sqlite as Database, Transaction};

use crate::claim_tracker::ClaimTracker;
use crate::columns::fence_from;
use crate::error::StoreError;
use crate::error_class::{ErrorClass, classify};
use crate::migrations;
use crate::skew::Skew;
use crate::statement::{DbConnection, SqlValue};
use files::{DatabaseFiles, FileId};
use own_claims::OwnClaims;

/// How long a writer waits for another process, or for a caller's own transaction, to be done with the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a caller waits for its turn with the one writer, or for a free reader.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// More than we have, so that each is prepared once for a connection.
const STATEMENTS_MAX: usize = 256;

/// How often opening is tried while another process turns the same new file into a WAL database: SQLite does not wait for that.
const OPEN_TRIES: u32 = 40;
const OPEN_WAIT: Duration = Duration::from_millis(25);

/// How every write transaction begins. A deferred one that reads and then writes fails as soon as somebody else wrote between.
const BEGIN: &str = "BEGIN IMMEDIATE";

pub(crate) struct Sqlite {
    writer: SqlitePool,
    readers: SqlitePool,
    skew: Arc<Skew>,
    claim_tracker: ClaimTracker,
    own_claims: OwnClaims,
    files: Arc<DatabaseFiles>,
}

impl Sqlite {
    /// Opens the file, which is made if it is not there; runs no migration yet.
    pub(crate) async fn connect(
        url: &str,
        connections_max: u32,
        skew: Arc<Skew>,
    ) -> Result<Self, StoreError> {
        let path = path_of(url)?;
        make_private(path)?;
        let before = FileId::of(path).map_err(|error| StoreError::Unavailable(sqlx::Error::Io(error)))?;
        let options = options(url)?;
        let writer = open(
            SqlitePoolOptions::new()
                .max_connections(1)
                // SQLite itself rolls back when the disk is full or fails, and sqlx then counts a transaction too many for
                // ever: such a connection is replaced.
                .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) })),
            options.clone().journal_mode(SqliteJournalMode::Wal),
        )
        .await?;
        let readers = open(
            SqlitePoolOptions::new().max_connections(connections_max.max(1)),
            options.pragma("query_only", "on"),
        )
        .await?;
        // A reader opens the log.
        sqlx::query("SELECT count(*) FROM sqlite_schema").fetch_one(&writer).await?;
        let files = Arc::new(DatabaseFiles::note(path, before)?);
        let own_claims = OwnClaims::new(Arc::clone(&skew));
        Ok(Self { writer, readers, skew, claim_tracker: ClaimTracker::default(), own_claims, files })
    }

    /// Brings the schema up to date, in one transaction, so that many processes may try at once.
    pub(crate) async fn migrate(&self) -> Result<(), StoreError> {
        let migrator = migrations::sqlite();
        let mut transaction = self.writer.begin_with(BEGIN).await?;
        // `run` on a connection gives a future that cannot be sent to another thread; this is what it calls.
        let outcome = migrator.run_direct(None, &mut *transaction, false).await;
        outcome.map_err(|error| migrations::failed(&migrator, error))?;
        Ok(transaction.commit().await?)
    }

    /// Begins a write transaction: takes the file's write lock, then the time.
    pub(crate) async fn write(&self) -> Result<WriteTransaction, StoreError> {
        self.files.refuse_if_lost()?;
        let mut transaction = self.writer.begin_with(BEGIN).await.map_err(|error| match error {
            // The one writer has too much to do; the database is well.
            sqlx::Error::PoolTimedOut => StoreError::Busy,
            error => error.into(),
        })?;
        let row = sqlx::query(include_str!("sqlite/sql/begin.sql"))
            .bind(self.skew())
            .fetch_one(&mut *transaction)
            .await?;
        let now = Timestamp::from_micros(row.try_get("now")?);
        let files = Arc::clone(&self.files);
        Ok(WriteTransaction { now, last: row.try_get("last")?, drawn: false, transaction, files })
    }

    /// Reads over one of the readers. The clock is looked at only if one of the values is the time.
    pub(crate) async fn read_with<T>(
        &self,
        values: &[SqlValue<'_>],
        ask: impl AsyncFnOnce(DbConnection<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut reader = self.readers.acquire().await?;
        if values.iter().any(|value| matches!(value, SqlValue::Now)) {
            let now = self.now(&mut reader).await?;
            return ask(DbConnection::Sqlite(&mut reader, now)).await;
        }
        ask(without_clock(&mut reader)).await
    }

    /// Writes in a transaction of its own.
    pub(crate) async fn write_with<T>(
        &self,
        ask: impl AsyncFnOnce(DbConnection<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tx = self.write().await?;
        let changed = ask(tx.db_connection()).await?;
        tx.commit().await?;
        Ok(changed)
    }

    /// Whether the files are still where they were opened.
    pub(crate) fn check_files(&self) -> Result<(), StoreError> {
        self.files.check()
    }

    /// Waits until they are known not to be.
    pub(crate) async fn files_lost(&self) -> StoreError {
        self.files.lost().await
    }

    /// The writer last: it is the one that may move the log into the file.
    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// The readers.
    fn pool(&self) -> &SqlitePool {
        &self.readers
    }

    /// The pool of the one writer, for tests that ask how it is set up.
    #[cfg(feature = "testing")]
    pub(crate) fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    fn skew(&self) -> i64 {
        self.skew.wall()
    }
}

/// A write transaction. Dropped without a commit, it did nothing.
pub(crate) struct WriteTransaction {
    transaction: Transaction<'static, Database>,
    /// When all of it happens.
    now: Timestamp,
    /// The last fence that was drawn.
    last: i64,
    drawn: bool,
    files: Arc<DatabaseFiles>,
}

impl WriteTransaction {
    /// When all of it happens.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    /// The connection for statements of both databases.
    pub(crate) fn db_connection(&mut self) -> DbConnection<'_> {
        DbConnection::Sqlite(&mut self.transaction, self.now)
    }

    /// Draws this many fences; answers the last one before them.
    fn draw(&mut self, count: usize) -> i64 {
        let before = self.last;
        self.last = before.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
        self.drawn = true;
        before
    }

    /// Draws one fence.
    pub(crate) fn draw_one(&mut self) -> Result<Fence, StoreError> {
        Ok(fence_from(self.draw(1).saturating_add(1))?)
    }

    pub(crate) async fn rollback(self) -> Result<(), StoreError> {
        Ok(self.transaction.rollback().await?)
    }

    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        if self.drawn {
            let last = self.last;
            sqlx::query(include_str!("sqlite/sql/fence_drawn.sql"))
                .bind(last)
                .execute(self.connection())
                .await?;
        }
        let Self { transaction, files, .. } = self;
        transaction.commit().await.map_err(not_committed)?;
        files.check()
    }
}

/// A connection for statements of both databases that do not ask for the time.
pub(crate) fn without_clock(connection: &mut SqliteConnection) -> DbConnection<'_> {
    DbConnection::Sqlite(connection, Timestamp::EPOCH)
}

/// What a COMMIT that failed came to.
fn not_committed(error: sqlx::Error) -> StoreError {
    match classify(&error) {
        // The disk failed under it: what was written may come back when the log is read again.
        ErrorClass::NotConnected | ErrorClass::Lost => StoreError::Unknown(error),
        // A full disk did not take all of it, and what makes it whole comes last.
        ErrorClass::Full | ErrorClass::Contended | ErrorClass::Refused => error.into(),
    }
}

/// Begins a transaction of the caller's that may read and then write, and in which messages can be put and keys settled. Its commit
/// acknowledges something of ours, so it waits for the disk, however the caller's connection is set up.
pub(crate) async fn begin_immediate(pool: &SqlitePool) -> Result<Transaction<'static, Database>, StoreError> {
    Ok(pool.begin_with("PRAGMA synchronous = FULL; BEGIN IMMEDIATE").await?)
}

async fn open(pool: SqlitePoolOptions, options: SqliteConnectOptions) -> Result<SqlitePool, StoreError> {
    // A connection to a file does not go stale, so none is tested or replaced for its age.
    let pool = pool
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A busy pool is not worth a warning: a wait that is too long fails, and the error says so.
        .acquire_slow_threshold(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false);
    for _ in 1..OPEN_TRIES {
        match pool.clone().connect_with(options.clone()).await {
            Err(error) if classify(&error) == ErrorClass::Contended => tokio::time::sleep(OPEN_WAIT).await,
            outcome => return outcome.map_err(StoreError::Unavailable),
        }
    }
    pool.connect_with(options).await.map_err(StoreError::Unavailable)
}

/// How every connection is set up, to a file that is there.
pub(crate) fn options(url: &str) -> Result<SqliteConnectOptions, StoreError> {
    Ok(SqliteConnectOptions::new()
        .filename(path_of(url)?)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(STATEMENTS_MAX)
        // Stated on every connection: an answer must mean durable, and the power may go at any moment.
        .synchronous(SqliteSynchronous::Full))
}

/// The version of the schema in a file; `None` where there is none of ours.
pub(crate) async fn schema_found(connection: &mut SqliteConnection) -> Result<Option<i64>, StoreError> {
    let is_there = sqlx::query("SELECT 1 FROM sqlite_schema WHERE name = 'ichido_migrations'");
    if is_there.fetch_optional(&mut *connection).await?.is_none() {
        return Ok(None);
    }
    let row = sqlx::query("SELECT max(version) FROM ichido_migrations WHERE success");
    Ok(row.fetch_one(connection).await?.try_get(0)?)
}

/// The file that an address names.
pub(crate) fn path_of(url: &str) -> Result<&Path, StoreError> {
    let address = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = address.strip_prefix("//").unwrap_or(address);
    if path.contains(":memory:") || path.contains("mode=memory") {
        return Err(StoreError::Address(
            "a database in memory forgets what it acknowledged: name a file, as in sqlite:ichido.db",
        ));
    }
    if path.is_empty() || path.contains('?') || path.starts_with("file:") {
        return Err(StoreError::Address(
            "the address is no SQLite address: write sqlite:path, without parameters",
        ));
    }
    Ok(Path::new(path))
}

/// Makes the file, readable by its owner alone: it holds requests and responses. One that is there keeps its mode. SQLite gives
/// its log the mode of the database.
///
/// A file that is there is not opened: closing it again would drop every lock on it that SQLite has in this process, and another
/// process could then take itself for the last one and remove the log.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match std::fs::metadata(path) {
            // A link to a file that is not there yet.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                options.create_new(false).create(true).open(path).map(drop)
            }
            Ok(found) if found.permissions().readonly() => Err(ErrorKind::PermissionDenied.into()),
            found => found.map(drop),
        },
        made => made.map(drop),
    };
    made.map_err(|error| {
        let told = format!(
            "{} cannot be opened for writing: {error}; its folder must be there, and both be this user's to write",
            path.display()
        );
        StoreError::Unavailable(sqlx::Error::Io(std::io::Error::new(error.kind(), told)))
    })
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions as _;

    use super::*;

    /// SQLite says the same of a full disk and of a file that may not grow.
    async fn full() -> sqlx::Error {
        let file = crate::testing::sqlite::fresh_file();
        make_private(&file.path()).unwrap();
        let mut connection = options(&file.url).unwrap().connect().await.unwrap();
        sqlx::query("CREATE TABLE t (x BLOB)").execute(&mut connection).await.unwrap();
        sqlx::query("PRAGMA max_page_count = 2").execute(&mut connection).await.unwrap();
        let insert = sqlx::query("INSERT INTO t VALUES (zeroblob(1000000))");
        insert.execute(&mut connection).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_commit_that_met_a_full_disk_is_known_not_to_be_done() {
        let error = not_committed(full().await);
        assert!(matches!(error, StoreError::Full), "{error:?}");
    }
}
