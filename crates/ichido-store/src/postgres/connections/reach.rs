//! Whether the database can be reached, as far as the callers of a pool have seen.
//!
//! The pool keeps trying to connect until a caller's time is up, since a server may just be starting. A request that needs several
//! connections, one after the other, would wait that long several times. So after one caller has waited for nothing the next ones wait
//! briefly, while a task in the background keeps trying.
//!
//! Guarantee: a busy pool is not taken for an unreachable database: then all connections are in use.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::sync::lock;
use sqlx::PgPool;
use sqlx::pool::PoolConnection;
use tokio::time::timeout;

/// How long a caller waits for a connection while the database cannot be reached.
pub(super) const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Reach {
    max_connections: usize,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// Held once more by every connection in use.
    in_use: Arc<()>,
    is_unreachable: bool,
    /// Whether the task in the background is trying.
    is_trying: bool,
}

impl Reach {
    pub(super) fn new(max_connections: usize) -> Self {
        Self { max_connections, seen: Arc::default() }
    }

    /// Waits for a connection of the pool.
    pub(super) async fn acquire(&self, pool: &PgPool) -> Result<PoolConnection<sqlx::Postgres>, sqlx::Error> {
        if !lock(&self.seen).is_unreachable {
            return self.note(pool.acquire().await);
        }
        self.try_in_background(pool);
        let acquired = timeout(UNREACHABLE_TIMEOUT, pool.acquire()).await;
        self.note(acquired.unwrap_or(Err(sqlx::Error::PoolTimedOut)))
    }

    fn note<T>(&self, acquired: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        let mut seen = lock(&self.seen);
        match &acquired {
            Ok(_) => seen.is_unreachable = false,
            Err(sqlx::Error::PoolTimedOut) => {
                seen.is_unreachable |= Arc::strong_count(&seen.in_use) <= self.max_connections;
            }
            // An answer, although not a good one: it came without a wait.
            Err(_) => (),
        }
        acquired
    }

    /// Tries for as long as a caller usually does: a slow server may need more time than callers have now.
    fn try_in_background(&self, pool: &PgPool) {
        if std::mem::replace(&mut lock(&self.seen).is_trying, true) {
            return;
        }
        let (reach, pool) = (self.clone(), pool.clone());
        tokio::spawn(async move {
            // A caller that waits gets the connection. Callers report their own errors.
            drop(reach.note(pool.acquire().await));
            lock(&reach.seen).is_trying = false;
        });
    }

    /// Returns what a connection in use holds until it has left or is back in the pool.
    pub(super) fn in_use(&self) -> Arc<()> {
        Arc::clone(&lock(&self.seen).in_use)
    }
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgConnectOptions;
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    use super::super::{ACQUIRE_TIMEOUT, CALL_TIMEOUT, ConnectionPool};
    use super::*;
    use crate::error::StoreError;
    use crate::postgres::options;
    use crate::testing::postgres::fresh_database;

    fn pool(options: PgConnectOptions) -> ConnectionPool {
        ConnectionPool::new(options, 2, CALL_TIMEOUT)
    }

    /// Returns how long a call waits for a connection that it does not get.
    async fn wait(pool: &ConnectionPool) -> Duration {
        let begun = Instant::now();
        let outcome = pool.execute(sqlx::query("SELECT 1")).await;
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
        begun.elapsed()
    }

    /// Returns the address of a port where nobody listens.
    async fn closed_port(database: &PgConnectOptions) -> PgConnectOptions {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        database.clone().host("127.0.0.1").port(listener.local_addr().unwrap().port())
    }

    #[tokio::test]
    async fn only_the_first_caller_waits_long_for_an_unreachable_database() {
        let database = fresh_database().await;
        let reachable = options(&database.url).unwrap();
        let pool = pool(closed_port(&reachable).await);
        tokio::time::pause();
        assert!(ACQUIRE_TIMEOUT <= wait(&pool).await);
        for _ in 0..10 {
            assert!(wait(&pool).await < 2 * UNREACHABLE_TIMEOUT);
        }
        tokio::time::resume();
        pool.pool.set_connect_options(reachable);
        // The task in the background may still sleep before its next try.
        while pool.execute(sqlx::query("SELECT 1")).await.is_err() {}
        assert!(!lock(&pool.reach.seen).is_unreachable, "the next caller may wait long again");
    }

    #[tokio::test]
    async fn a_busy_pool_is_not_unreachable() {
        let database = fresh_database().await;
        let pool = pool(options(&database.url).unwrap());
        let (_first, _second) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
        tokio::time::pause();
        for _ in 0..3 {
            assert!(ACQUIRE_TIMEOUT <= wait(&pool).await);
        }
    }
}
