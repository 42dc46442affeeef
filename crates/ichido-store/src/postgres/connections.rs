//! A connection pool with a timeout for every answer.
//!
//! A connection can die silently, for example when a firewall drops it: neither an answer nor an error arrives. Waiting without
//! a timeout would then take forever, and so would the pool when it pings a returned connection. So each answer has a timeout,
//! and a connection is returned within a timeout or closed.
//!
//! A caller may be cancelled in the middle. If it had just sent `BEGIN`, sqlx does not know that a transaction is open: the
//! next caller's writes would join it, acknowledged and never committed. So a connection whose last answer was not received is
//! closed, never returned.
//!
//! A connection that was used within the last second is not pinged before its next use: the ping was one of two round trips of
//! every batch. If the connection has died, the batch fails as it would have in the middle, and is retried. For the same reason a
//! connection is not given back after each call, because the pool pings it then: it rests in [`warm`] for the next call.

mod reach;
mod warm;

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

use self::reach::Reach;
use self::warm::WarmConnections;
use crate::error::StoreError;
use crate::error_detail::redact;

/// How long a caller waits for a free connection, unless the database could not be [reached](reach) before.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// When the server cancels a statement. Earlier than our own timeout, because its answer is definite: nothing was done.
const STATEMENT_TIMEOUT: &str = "20s";

/// How long a caller waits for an answer.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(25);

/// How long a batch waits for an answer. Shorter, because others wait behind it, and because repeating a batch is safe: it
/// finds out whether the first write was done.
pub(super) const BATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// When the server aborts a transaction that we left open and releases its locks. Later than any call's timeout.
const LEFT_OPEN_TIMEOUT: &str = "30s";

/// How long a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// How long after its last use a connection counts as alive.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// The server's own limits.
pub(super) const LIMITS: [(&str, &str); 2] =
    [("statement_timeout", STATEMENT_TIMEOUT), ("idle_in_transaction_session_timeout", LEFT_OPEN_TIMEOUT)];

/// For a client whose machine is gone while it holds locks: the idle time before the first probe, the interval between probes,
/// their number, and how long sent data may stay unacknowledged.
pub(super) const KEEPALIVES: [(&str, &str); 4] = [
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
    /// How long a statement waits for a locked row, if different from the connection's setting.
    lock_timeout: Option<&'static str>,
    lost: LastLoss,
    reach: Reach,
    warm: Arc<WarmConnections>,
}

impl ConnectionPool {
    /// Creates the pool. Opens no connection yet.
    pub(crate) fn new(options: PgConnectOptions, max_connections: u32, answer_timeout: Duration) -> Self {
        let lost = LastLoss::default();
        let asked = lost.clone();
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // A busy pool is not worth a warning: a wait that is too long fails with an error.
            .acquire_slow_threshold(ACQUIRE_TIMEOUT)
            // Our own check pings less often.
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                let lost = asked.clone();
                Box::pin(async move { lost.is_sound(connection, meta.idle_for).await })
            })
            .connect_lazy_with(options);
        let warm = WarmConnections::of(&pool);
        let reach = Reach::new(usize::try_from(max_connections).unwrap_or(usize::MAX));
        Self { pool, answer_timeout, lock_timeout: None, lost, reach, warm }
    }

    /// Returns the same pool with another answer timeout.
    pub(super) fn with_answer_timeout(&self, answer_timeout: Duration) -> Self {
        Self { answer_timeout, ..self.clone() }
    }

    /// Returns the same pool with another lock timeout.
    pub(super) fn with_lock_timeout(&self, lock_timeout: &'static str) -> Self {
        Self { lock_timeout: Some(lock_timeout), ..self.clone() }
    }

    /// Returns the pool, for tests. Connections that rest outside of it are given back.
    #[cfg(feature = "testing")]
    pub(crate) fn pool(&self) -> &PgPool {
        self.warm.give_back();
        &self.pool
    }

    /// Runs a closure with one connection. The answer timeout covers the whole closure, however many answers it waits for.
    pub(crate) async fn with_connection<T>(
        &self,
        run: impl AsyncFnOnce(&mut PgConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // Without a connection, nothing was done.
        let mut pooled = self.acquire().await.map_err(|error| StoreError::Unavailable(redact(error)))?;
        let outcome =
            timeout(self.answer_timeout, self.run_with_lock_timeout(&mut pooled.connection, run)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(StoreError::Unknown(no_answer())));
        match &outcome {
            Err(StoreError::Unknown(_)) => self.lost.just_now(),
            // The server became a follower and stays one: the next connection may find the new leader.
            Err(StoreError::Unavailable(_)) => (),
            _ => {
                pooled.is_sound = true;
                self.warm.rest(pooled, &self.pool);
            }
        }
        outcome
    }

    async fn acquire(&self) -> Result<PooledConnection, sqlx::Error> {
        let waiting = loop {
            match self.warm.take() {
                Ok((mut pooled, idle_since)) => {
                    let idle_for = idle_since.elapsed();
                    if matches!(self.lost.is_sound(&mut pooled.connection, idle_for).await, Ok(true)) {
                        return Ok(pooled);
                    }
                }
                Err(waiting) => break waiting,
            }
        };
        let connection = self.reach.acquire(&self.pool).await?;
        drop(waiting);
        let in_use = self.reach.in_use();
        Ok(PooledConnection { connection, is_sound: false, taken: Instant::now(), in_use })
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
    /// Whether every request was answered.
    is_sound: bool,
    /// When it was taken out of the pool.
    taken: Instant,
    in_use: Arc<()>,
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let returning = self.connection.return_to_pool();
        match Handle::try_current() {
            Ok(runtime) if self.is_sound => {
                let in_use = Arc::clone(&self.in_use);
                runtime.spawn(async move {
                    drop(timeout(PING_TIMEOUT, returning).await);
                    drop(in_use);
                });
            }
            // Dropping this, now or at the timeout, closes the connection and frees its slot.
            _ => drop(returning),
        }
    }
}

/// When a connection was last lost. One loss is seldom the only one, so older connections are not used again.
#[derive(Clone, Default)]
struct LastLoss(Arc<Mutex<Option<Instant>>>);

impl LastLoss {
    fn just_now(&self) {
        *lock(&self.0) = Some(Instant::now());
    }

    /// Returns whether a connection that was idle this long can be used. It is pinged unless it was used just now: a ping costs
    /// as much as a small write.
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

/// The error for an answer that did not arrive.
fn no_answer() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "no response in time"))
}
