//! Lines to the server: connections of a pool over which every answer is waited for with a bound.
//!
//! A wire can go dead without a word, as when a firewall forgets it: neither an answer comes nor an error. Whoever waits
//! without a bound then waits for ever, and so does the pool when it asks whether the connection it gets back still lives. So
//! each answer has its bound, and a connection is given back within a bound or not at all.
//!
//! A caller may go away in the middle. What it asked may have been `BEGIN`, and sqlx does not know then that a transaction is open:
//! the next caller's writes would be part of it, acknowledged and never committed. So a connection whose last answer was not
//! heard is closed, never given back.
//!
//! A connection that was used within the last second is not pinged before its next use: the ping was one of two round trips of every
//! batch. If the connection has died, the batch fails as it would have in the middle, and is written again.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::sync::lock;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions, PgQueryResult, PgRow};
use sqlx::query::Query;
use sqlx::{Connection as _, PgConnection};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::error::StoreError;
use crate::error_detail::redact;

/// How long a caller waits for a free connection.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// When the server gives a statement up. Before we do, because its word is definite: nothing was done.
const STATEMENT_TIMEOUT: &str = "20s";

/// How long a caller waits for an answer.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(25);

/// How long a batch waits for an answer. Shorter, because others wait behind it, and because a batch that is written again is
/// safe: what came of the first time is found out.
pub(super) const BATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// When the server ends a transaction that we left open, and frees what it has locked: after any call is over.
const LEFT_OPEN_TIMEOUT: &str = "30s";

/// How long a connection may take to say that it lives.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// How long after its last use a connection counts as alive.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// What the server is told of its own bounds. The last four are for a client whose machine is gone, with what it has locked: the
/// server asks after this many seconds of silence, this many times, with so many seconds between, and waits this long for
/// anything that it said to arrive.
pub(super) const SETTINGS: [(&str, &str); 6] = [
    ("statement_timeout", STATEMENT_TIMEOUT),
    ("idle_in_transaction_session_timeout", LEFT_OPEN_TIMEOUT),
    ("tcp_keepalives_idle", "30"),
    ("tcp_keepalives_interval", "10"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "60s"),
];

type PgQuery<'q> = Query<'q, sqlx::Postgres, PgArguments>;

/// A pool, and how long to wait for each answer.
#[derive(Clone)]
pub(crate) struct ConnectionPool {
    pool: PgPool,
    answer_timeout: Duration,
    /// How long a statement waits for a row that somebody else holds, where it is not what the connection was opened with.
    lock_timeout: Option<&'static str>,
    lost: LastLoss,
}

impl ConnectionPool {
    /// Opens no connection yet.
    pub(crate) fn new(options: PgConnectOptions, connections_max: u32, answer_timeout: Duration) -> Self {
        let lost = LastLoss::default();
        let asked = lost.clone();
        let pool = PgPoolOptions::new()
            .max_connections(connections_max)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // A busy pool is not worth a warning: a wait that is too long fails, and the error says so.
            .acquire_slow_threshold(ACQUIRE_TIMEOUT)
            // Ours asks less often.
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                let lost = asked.clone();
                Box::pin(async move { lost.is_sound(connection, meta.idle_for).await })
            })
            .connect_lazy_with(options);
        Self { pool, answer_timeout, lock_timeout: None, lost }
    }

    /// The same connections, for those who wait longer or less long.
    pub(super) fn with_answer_timeout(&self, answer_timeout: Duration) -> Self {
        Self { answer_timeout, ..self.clone() }
    }

    /// The same connections, for those who wait so long for a row that somebody else holds.
    pub(super) fn with_lock_timeout(&self, lock_timeout: &'static str) -> Self {
        Self { lock_timeout: Some(lock_timeout), ..self.clone() }
    }

    /// The pool, for tests.
    #[cfg(feature = "testing")]
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Talks with the server over one connection. What is said in it takes no longer than the patience, however many answers it waits
    /// for.
    pub(crate) async fn with_connection<T>(
        &self,
        run: impl AsyncFnOnce(&mut PgConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // When there is none to be had, nothing was done.
        let connection = self.pool.acquire().await.map_err(|error| StoreError::Unavailable(redact(error)))?;
        let mut pooled = PooledConnection { connection, is_sound: false };
        let outcome =
            timeout(self.answer_timeout, self.run_with_lock_timeout(&mut pooled.connection, run)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(StoreError::Unknown(no_answer())));
        match &outcome {
            Err(StoreError::Unknown(_)) => self.lost.just_now(),
            // The server became another one's follower and will stay that: the next connection may find the new leader.
            Err(StoreError::Unavailable(_)) => (),
            _ => pooled.is_sound = true,
        }
        outcome
    }

    async fn run_with_lock_timeout<T>(
        &self,
        connection: &mut PgConnection,
        run: impl AsyncFnOnce(&mut PgConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(lock_timeout) = self.lock_timeout else { return run(connection).await };
        let set = sqlx::query("SELECT set_config('lock_timeout', $1, false)").bind(lock_timeout);
        set.execute(&mut *connection).await?;
        let outcome = run(connection).await;
        if !matches!(outcome, Err(StoreError::Unknown(_))) {
            sqlx::query("RESET lock_timeout").execute(connection).await?;
        }
        outcome
    }

    pub(crate) async fn all(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        self.with_connection(async |connection| Ok(query.fetch_all(connection).await?)).await
    }

    pub(super) async fn optional(&self, query: PgQuery<'_>) -> Result<Option<PgRow>, StoreError> {
        self.with_connection(async |connection| Ok(query.fetch_optional(connection).await?)).await
    }

    pub(crate) async fn one(&self, query: PgQuery<'_>) -> Result<PgRow, StoreError> {
        self.with_connection(async |connection| Ok(query.fetch_one(connection).await?)).await
    }

    pub(crate) async fn execute(&self, query: PgQuery<'_>) -> Result<PgQueryResult, StoreError> {
        self.with_connection(async |connection| Ok(query.execute(connection).await?)).await
    }
}

/// A connection in use.
struct PooledConnection {
    connection: PoolConnection<sqlx::Postgres>,
    /// Whether all that was asked was answered.
    is_sound: bool,
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let returning = self.connection.return_to_pool();
        match Handle::try_current() {
            Ok(runtime) if self.is_sound => {
                runtime.spawn(async move { drop(timeout(PING_TIMEOUT, returning).await) });
            }
            // Dropped, here or when its time is over, it closes the connection and makes room for another.
            _ => drop(returning),
        }
    }
}

/// When a connection was last lost. One that is lost is seldom the only one, so those of before are not used again.
#[derive(Clone, Default)]
struct LastLoss(Arc<Mutex<Option<Instant>>>);

impl LastLoss {
    fn just_now(&self) {
        *lock(&self.0) = Some(Instant::now());
    }

    /// Whether a connection that was idle for so long is still to be used. It is asked whether it lives, unless it was used just
    /// now: asking costs as much as a small write.
    async fn is_sound(&self, connection: &mut PgConnection, idle_for: Duration) -> Result<bool, sqlx::Error> {
        let lost = *lock(&self.0);
        if lost.is_some_and(|lost| lost.elapsed() <= idle_for) {
            return Ok(false);
        }
        if TRUSTED_FOR <= idle_for {
            timeout(PING_TIMEOUT, connection.ping()).await.unwrap_or_else(|_| Err(no_answer()))?;
        }
        Ok(true)
    }
}

/// What is said of an answer that did not come.
fn no_answer() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "no answer came in time"))
}
