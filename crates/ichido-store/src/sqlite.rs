//! The SQLite driver: WAL with `synchronous=FULL`, one writer, every write transaction begun as `IMMEDIATE`, a pool of readers.
//!
//! A batch is one transaction, so the batchers in front make it a group commit. With a single writer nothing changes during a
//! transaction: it may act on what it reads, and no row is locked. Many rows are passed as bound values, in statements of up to
//! 64 (`values`); lists of names are passed as one JSON parameter for `json_each`.

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
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::time::Timestamp;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{Connection as _, Row as _, Sqlite as Database, Transaction};
use tokio::time::Instant;
use uuid::Uuid;

use crate::action::{self, AuditAction};
use crate::claim_tracker::ClaimTracker;
use crate::columns::fence_from;
use crate::error::StoreError;
use crate::error_class::{ErrorClass, classify};
use crate::migrations;
use crate::page_reads;
use crate::skew::Skew;
use crate::statement::{DbConnection, SqlValue};
use files::{DatabaseFiles, FileId};
use own_claims::OwnClaims;

/// How long a writer waits for another process, or for a caller's own transaction, to release the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a caller waits for the writer, or for a free reader.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// More than we have, so each statement is prepared once per connection.
const MAX_STATEMENTS: usize = 256;

/// How many instructions of a statement of a page run between two looks at the clock: fewer than in a millisecond.
const STEPS_PER_CHECK: i32 = 10_000;

/// How often to retry opening while another process turns the same new file into a WAL database. SQLite does not wait for that.
const OPEN_TRIES: u32 = 40;
const OPEN_WAIT: Duration = Duration::from_millis(25);

/// How every write transaction begins. A deferred one that reads and then writes fails as soon as somebody else writes in
/// between.
const BEGIN: &str = "BEGIN IMMEDIATE";

pub(crate) struct Sqlite {
    writer: SqlitePool,
    readers: SqlitePool,
    /// For pages. Opened with the first.
    page_readers: SqlitePool,
    skew: Arc<Skew>,
    claim_tracker: ClaimTracker,
    own_claims: OwnClaims,
    files: Arc<DatabaseFiles>,
    /// The file, without links: what belongs to it is beside this one.
    path: PathBuf,
}

impl Sqlite {
    /// Opens the file, creating it if necessary. Does not migrate.
    pub(crate) async fn connect(
        url: &str,
        max_connections: u32,
        skew: Arc<Skew>,
    ) -> Result<Self, StoreError> {
        let path = path_of(url)?;
        make_private(path)?;
        let before = FileId::new(path).map_err(|error| StoreError::Unavailable(sqlx::Error::Io(error)))?;
        let options = options(url)?;
        let writer = open(
            replaced_after_rollback(SqlitePoolOptions::new().max_connections(1)),
            options.clone().journal_mode(SqliteJournalMode::Wal),
        )
        .await?;
        let options = options.pragma("query_only", "on");
        let page_readers =
            with_timeouts(SqlitePoolOptions::new().max_connections(page_reads::MAX_CONNECTIONS))
                .connect_lazy_with(options.clone());
        let readers = open(SqlitePoolOptions::new().max_connections(max_connections.max(1)), options).await?;
        // A reader opens the log.
        sqlx::query("SELECT count(*) FROM sqlite_schema").fetch_one(&writer).await?;
        let files = Arc::new(DatabaseFiles::note(path, before)?);
        let own_claims = OwnClaims::new(Arc::clone(&skew));
        let path = path.canonicalize().map_err(|error| StoreError::Unavailable(sqlx::Error::Io(error)))?;
        Ok(Self {
            writer,
            readers,
            page_readers,
            skew,
            claim_tracker: ClaimTracker::default(),
            own_claims,
            files,
            path,
        })
    }

    /// Migrates the schema in one transaction, so many processes may try at once.
    pub(crate) async fn migrate(&self) -> Result<(), StoreError> {
        let migrator = migrations::sqlite();
        let mut transaction = self.writer.begin_with(BEGIN).await?;
        // `run` on a connection gives a future that is not `Send`; this is what it calls.
        let outcome = migrator.run_direct(None, &mut *transaction, false).await;
        outcome.map_err(|error| migrations::failed(&migrator, error))?;
        Ok(transaction.commit().await?)
    }

    /// Begins a write transaction: takes the file's write lock, then the time.
    pub(crate) async fn write(&self) -> Result<WriteTransaction, StoreError> {
        self.files.refuse_if_lost()?;
        let mut transaction = self.writer.begin_with(BEGIN).await.map_err(|error| match error {
            // The writer is overloaded; the database is fine.
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

    /// Reads with one of the readers. It reads the clock only if one of the values is the time.
    pub(crate) async fn read_with<T>(
        &self,
        values: &[SqlValue<'_>],
        ask: impl AsyncFnOnce(DbConnection<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut reader = self.reader(page_reads::STATEMENT_TIMEOUT).await?;
        if values.iter().any(|value| matches!(value, SqlValue::Now)) {
            let now = self.now(&mut reader).await?;
            return ask(DbConnection::Sqlite(&mut reader, now)).await;
        }
        ask(without_clock(&mut reader)).await
    }

    /// Returns a reader. One for a page interrupts its statements after this time.
    async fn reader(&self, limit: Duration) -> Result<PoolConnection<Database>, StoreError> {
        if !page_reads::is_inside() {
            return Ok(self.readers.acquire().await?);
        }
        let mut reader = self.page_readers.acquire().await?;
        let started = Instant::now();
        // It replaces that of the page before, and stays if this page is cancelled, so its statement ends too.
        let is_in_time = move || started.elapsed() < limit;
        reader.lock_handle().await?.set_progress_handler(STEPS_PER_CHECK, is_in_time);
        Ok(reader)
    }

    /// Writes in its own transaction.
    pub(crate) async fn write_with<T>(
        &self,
        ask: impl AsyncFnOnce(DbConnection<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tx = self.write().await?;
        let changed = ask(tx.db_connection()).await?;
        tx.commit().await?;
        Ok(changed)
    }

    /// Checks that the files are still where they were opened.
    pub(crate) fn check_files(&self) -> Result<(), StoreError> {
        self.files.check()
    }

    /// Waits until they are known to be lost.
    pub(crate) async fn files_lost(&self) -> StoreError {
        self.files.lost().await
    }

    /// Returns the file that a node's process locks.
    pub(crate) fn node_lock_path(&self, node: Uuid) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!("-node-{}", node.simple()));
        path.into()
    }

    /// Notes that claims lapsed because their node is dead, whatever this process's clock says.
    pub(crate) fn disown(&self, fences: &[Fence]) {
        for fence in fences {
            self.own_claims.release(*fence);
        }
    }

    /// Closes the pools, the writer last: it may move the log into the file.
    pub(crate) async fn close(&self) {
        self.page_readers.close().await;
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Returns the readers.
    fn pool(&self) -> &SqlitePool {
        &self.readers
    }

    /// Returns the writer's pool, for tests of its settings.
    #[cfg(feature = "testing")]
    pub(crate) fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    fn skew(&self) -> i64 {
        self.skew.wall()
    }
}

/// A write transaction. Dropped without a commit, it does nothing.
pub(crate) struct WriteTransaction {
    transaction: Transaction<'static, Database>,
    /// The time of the whole transaction.
    now: Timestamp,
    /// The last fence that was issued.
    last: i64,
    drawn: bool,
    files: Arc<DatabaseFiles>,
}

impl WriteTransaction {
    /// Returns the time of the whole transaction.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    /// Returns the connection for statements of both databases.
    pub(crate) fn db_connection(&mut self) -> DbConnection<'_> {
        DbConnection::Sqlite(&mut self.transaction, self.now)
    }

    /// Issues this many fences. Returns the last one before them.
    fn draw(&mut self, count: usize) -> i64 {
        let before = self.last;
        self.last = before.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
        self.drawn = true;
        before
    }

    /// Issues one fence.
    pub(crate) fn draw_one(&mut self) -> Result<Fence, StoreError> {
        Ok(fence_from(self.draw(1).saturating_add(1))?)
    }

    /// Adds entries to the audit trail.
    pub(crate) async fn record(&mut self, actions: &[AuditAction]) -> Result<(), StoreError> {
        if actions.is_empty() {
            return Ok(());
        }
        let last = self.draw(actions.len());
        action::record(&mut self.db_connection(), actions, last).await
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

/// Wraps a connection for statements that do not need the time.
pub(crate) fn without_clock(connection: &mut SqliteConnection) -> DbConnection<'_> {
    DbConnection::Sqlite(connection, Timestamp::EPOCH)
}

/// Converts the error of a failed COMMIT.
fn not_committed(error: sqlx::Error) -> StoreError {
    match classify(&error) {
        // The disk failed: the transaction may reappear when the log is read again.
        ErrorClass::NotConnected | ErrorClass::Lost => StoreError::Unknown(error),
        // A full disk did not take all of it, and the commit record comes last.
        ErrorClass::Full | ErrorClass::Contended | ErrorClass::Refused => error.into(),
    }
}

/// Begins a caller's transaction that may read and then write, enqueue messages and settle keys.
///
/// Its commit acknowledges something of ours, so it syncs, however the caller's connection is configured.
pub(crate) async fn begin_immediate(pool: &SqlitePool) -> Result<Transaction<'static, Database>, StoreError> {
    Ok(pool.begin_with("PRAGMA synchronous = FULL; BEGIN IMMEDIATE").await?)
}

/// Begins the same and marks it by a savepoint, which ends with it and is not there in a transaction that was begun in its place.
pub(crate) async fn begin_marked(pool: &SqlitePool) -> Result<Transaction<'static, Database>, StoreError> {
    Ok(pool.begin_with("PRAGMA synchronous = FULL; BEGIN IMMEDIATE; SAVEPOINT ichido_transaction").await?)
}

/// Replaces connections whose transaction ended by itself.
///
/// SQLite itself rolls back when the disk is full or fails, and sqlx then miscounts open transactions forever.
pub(crate) fn replaced_after_rollback(pool: SqlitePoolOptions) -> SqlitePoolOptions {
    pool.before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
}

async fn open(pool: SqlitePoolOptions, options: SqliteConnectOptions) -> Result<SqlitePool, StoreError> {
    let pool = with_timeouts(pool);
    for _ in 1..OPEN_TRIES {
        match pool.clone().connect_with(options.clone()).await {
            Err(error) if classify(&error) == ErrorClass::Contended => tokio::time::sleep(OPEN_WAIT).await,
            outcome => return outcome.map_err(StoreError::Unavailable),
        }
    }
    pool.connect_with(options).await.map_err(StoreError::Unavailable)
}

/// A connection to a file does not go stale, so none is tested or replaced because of its age.
fn with_timeouts(pool: SqlitePoolOptions) -> SqlitePoolOptions {
    pool.acquire_timeout(ACQUIRE_TIMEOUT)
        // A busy pool is not worth a warning: a wait that is too long fails with an error.
        .acquire_slow_threshold(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// Returns the options of every connection to an existing file.
pub(crate) fn options(url: &str) -> Result<SqliteConnectOptions, StoreError> {
    Ok(SqliteConnectOptions::new()
        .filename(path_of(url)?)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(MAX_STATEMENTS)
        // Set on every connection: an acknowledgement must mean durable, and power may fail at any moment.
        .synchronous(SqliteSynchronous::Full))
}

/// Reads the schema version of a file. Returns `None` if it has none of our tables.
pub(crate) async fn schema_found(connection: &mut SqliteConnection) -> Result<Option<i64>, StoreError> {
    let is_there = sqlx::query("SELECT 1 FROM sqlite_schema WHERE name = 'ichido_migrations'");
    if is_there.fetch_optional(&mut *connection).await?.is_none() {
        return Ok(None);
    }
    let row = sqlx::query("SELECT max(version) FROM ichido_migrations WHERE success");
    Ok(row.fetch_one(connection).await?.try_get(0)?)
}

/// Returns the file of a URL.
pub(crate) fn path_of(url: &str) -> Result<&Path, StoreError> {
    let address = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = address.strip_prefix("//").unwrap_or(address);
    if path.contains(":memory:") || path.contains("mode=memory") {
        return Err(StoreError::Address(
            "an in-memory database loses what it acknowledged: name a file, as in sqlite:ichido.db",
        ));
    }
    if path.is_empty() || path.contains('?') || path.starts_with("file:") {
        return Err(StoreError::Address(
            "the URL is not a valid SQLite URL: write sqlite:path, without parameters",
        ));
    }
    Ok(Path::new(path))
}

/// Creates the file, readable by its owner only: it holds requests and responses. An existing file keeps its mode. SQLite gives
/// its log the mode of the database.
///
/// An existing file is not opened: closing it would drop every lock that SQLite has on it in this process, and another process
/// could then consider itself the last one and remove the log.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match std::fs::metadata(path) {
            // A link to a file that does not exist yet.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                options.create_new(false).create(true).open(path).map(drop)
            }
            Ok(found) if found.permissions().readonly() => Err(ErrorKind::PermissionDenied.into()),
            found => found.map(drop),
        },
        made => made.map(drop),
    };
    made.map_err(|error| {
        let detail = format!(
            "cannot open {} for writing: {error}; its folder must exist, and this user needs write access to both",
            path.display()
        );
        StoreError::Unavailable(sqlx::Error::Io(std::io::Error::new(error.kind(), detail)))
    })
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions as _;

    use super::*;
    use crate::statement::Statement;

    /// SQLite reports the same for a full disk and for a file that must not grow.
    async fn full() -> sqlx::Error {
        let file = crate::testing::sqlite::fresh_file();
        make_private(&file.path()).unwrap();
        let mut connection = options(&file.url).unwrap().connect().await.unwrap();
        sqlx::query("CREATE TABLE t (x BLOB)").execute(&mut connection).await.unwrap();
        sqlx::query("PRAGMA max_page_count = 2").execute(&mut connection).await.unwrap();
        let insert = sqlx::query("INSERT INTO t VALUES (zeroblob(1000000))");
        insert.execute(&mut connection).await.unwrap_err()
    }

    /// Counts without end.
    const ENDLESS: Statement = Statement::new(
        "endless",
        "",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    );

    #[tokio::test]
    async fn a_page_cannot_keep_the_database_busy() {
        let file = crate::testing::sqlite::fresh_file();
        let sqlite = Sqlite::connect(&file.url, 1, Arc::default()).await.unwrap();
        let endless = page_reads::for_page(async {
            let mut reader = sqlite.reader(Duration::ZERO).await.unwrap();
            without_clock(&mut reader).all(ENDLESS, &[]).await
        });
        assert!(matches!(endless.await, Err(StoreError::Busy)));
        let next = page_reads::for_page(async {
            sqlite.clock().await.unwrap();
            page_reads::cost().unwrap()
        });
        let cost = next.await;
        assert_eq!(
            (cost.statements, cost.rows, cost.listed[0].name),
            (1, 1, "now"),
            "the next page has its own time"
        );
        assert_eq!(sqlite.readers.num_idle(), 1, "pages use other connections");
    }

    #[tokio::test]
    async fn commit_on_a_full_disk_is_not_done() {
        let error = not_committed(full().await);
        assert!(matches!(error, StoreError::Full), "{error:?}");
    }
}
