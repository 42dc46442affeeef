//! Connections that were used a moment ago and rest outside of the pool.
//!
//! The pool pings every connection that is given back, in a task of its own, and hands out the one that was idle longest. So a
//! lone caller paid for two round trips, and used a server process with cold caches each time. Here the last connection is used
//! next, as it is.
//!
//! Guarantee: no caller waits for a connection that rests here. A connection goes back to the pool if somebody waits for one, if it
//! has rested too long, if it must be checked for its age, or if the pool is closed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::sync::lock;
use sqlx::PgPool;
use tokio::time::Instant;

use super::{PooledConnection, TRUSTED_FOR};

/// After this long outside of the pool a connection is given back: the pool closes connections that are too old.
const GIVEN_BACK_AFTER: Duration = Duration::from_mins(1);

#[derive(Default)]
pub(super) struct WarmConnections(Mutex<Resting>);

#[derive(Default)]
struct Resting {
    /// Since when each has rested. The last one has rested shortest.
    connections: Vec<(PooledConnection, Instant)>,
    /// The number of callers that wait for the pool.
    waiting: usize,
}

impl WarmConnections {
    /// Returns an empty list for a pool. When the pool is closed, the connections are given back.
    pub(super) fn of(pool: &PgPool) -> Arc<Self> {
        let warm = Arc::<Self>::default();
        let (closed, of_closed) = (pool.close_event(), Arc::downgrade(&warm));
        tokio::spawn(async move {
            closed.await;
            if let Some(warm) = of_closed.upgrade() {
                warm.give_back();
            }
        });
        warm
    }

    /// Takes the last connection and since when it has rested. Otherwise the caller waits for the pool, and is counted until it
    /// drops the guard.
    pub(super) fn take(self: &Arc<Self>) -> Result<(PooledConnection, Instant), WaitingForPool> {
        let mut resting = lock(&self.0);
        if let Some((mut pooled, since)) = resting.connections.pop() {
            pooled.is_sound = false;
            return Ok((pooled, since));
        }
        resting.waiting += 1;
        drop(resting);
        Err(WaitingForPool(Arc::clone(self)))
    }

    /// Lets a connection rest until the next call, or gives it back to the pool.
    pub(super) fn rest(&self, pooled: PooledConnection, pool: &PgPool) {
        let mut resting = lock(&self.0);
        let rested_long = |(_, since): &(PooledConnection, Instant)| TRUSTED_FOR <= since.elapsed();
        let mut given_back: Vec<_> = resting.connections.extract_if(.., |entry| rested_long(entry)).collect();
        let now = Instant::now();
        // Asked under the lock: the pool is closed first, and then what rests is given back.
        if 0 < resting.waiting || pool.is_closed() || GIVEN_BACK_AFTER <= pooled.taken.elapsed() {
            given_back.push((pooled, now));
        } else {
            resting.connections.push((pooled, now));
        }
        drop(resting);
        drop(given_back);
    }

    /// Gives all connections back to the pool.
    pub(super) fn give_back(&self) {
        let resting = std::mem::take(&mut lock(&self.0).connections);
        drop(resting);
    }
}

/// Counts a caller that waits for the pool.
pub(super) struct WaitingForPool(Arc<WarmConnections>);

impl Drop for WaitingForPool {
    fn drop(&mut self) {
        lock(&self.0.0).waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CALL_TIMEOUT, ConnectionPool};
    use crate::postgres::options;
    use crate::testing::postgres::{PgTestDatabase, fresh_database};

    async fn pool(max_connections: u32) -> (PgTestDatabase, ConnectionPool) {
        let database = fresh_database().await;
        let pool = ConnectionPool::new(options(&database.url).unwrap(), max_connections, CALL_TIMEOUT);
        (database, pool)
    }

    /// Returns the server process of a call.
    async fn process(pool: &ConnectionPool) -> i32 {
        let row = pool.one(sqlx::query("SELECT pg_backend_pid()")).await.unwrap();
        sqlx::Row::get(&row, 0)
    }

    #[tokio::test]
    async fn the_next_call_uses_the_same_connection() {
        let (_database, pool) = pool(4).await;
        let first = process(&pool).await;
        for _ in 0..10 {
            assert_eq!(process(&pool).await, first);
        }
        assert_eq!((pool.pool.size(), pool.pool.num_idle()), (1, 0), "it never went back");
    }

    #[tokio::test]
    async fn a_waiting_caller_gets_a_connection_that_would_rest() {
        let (_database, pool) = pool(2).await;
        let calls: Vec<_> = (0..20)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move { process(&pool).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        assert!(pool.pool.size() <= 2);
    }

    #[tokio::test]
    async fn a_pool_that_is_closed_gets_its_connections_back() {
        let (_database, pool) = pool(2).await;
        process(&pool).await;
        // Waits for connections that are outside of the pool.
        pool.pool.close().await;
        assert_eq!(pool.pool.size(), 0);
    }
}
