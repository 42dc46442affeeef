//! A business on the store's database: its own table, and handlers that write to it.

use std::num::NonZeroU32;
use std::str::FromStr as _;
use std::time::Duration;

use ichido::destination::{Handler, Job, JobError};
use ichido::message::{Draft, Message};
use ichido::{Pool, Tx, TxGuard};
use ichido_core::retry::{Jitter, Retry, Schedule};
use ichido_store::Store;
use ichido_store::message::NewMessage;
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{Postgres, Row as _, Sqlite, Transaction};

use super::super::fixture::{QUEUE, WorkerFixture, key, queue};

const SOON: Duration = Duration::from_millis(10);
const RETRY: Retry = Retry {
    schedule: Schedule::Exponential { base: SOON, factor: 1, cap: SOON },
    jitter: Jitter::None,
    max_attempts: NonZeroU32::new(1_000).unwrap(),
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) n: i64,
}

impl Message for Order {
    const QUEUE: &str = QUEUE;
    const RETRY: Retry = RETRY;
}

impl Order {
    /// The message that orders it.
    pub(super) fn draft(&self) -> NewMessage {
        let body = format!("{{\"n\":{}}}", self.n).into_bytes();
        NewMessage {
            max_attempts: RETRY.max_attempts,
            ..NewMessage::new(queue(QUEUE), "alice", key(&format!("order-{}", self.n)), body)
        }
    }
}

/// What follows an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Receipt {
    pub(super) order: i64,
}

impl Message for Receipt {
    const QUEUE: &str = "receipts";
    const RETRY: Retry = RETRY;
}

/// A handler's transaction on either database.
#[derive(Clone)]
pub(super) enum AnyTx {
    Postgres(Tx<Postgres>),
    Sqlite(Tx<Sqlite>),
}

/// A lock on it.
pub(super) enum Hold {
    Postgres { _guard: TxGuard<Postgres> },
    Sqlite { _guard: TxGuard<Sqlite> },
}

const INSERT: &str = "INSERT INTO orders VALUES ($1)";

impl AnyTx {
    /// Adds a row. Nothing prevents a second one.
    pub(super) async fn order(&self, n: i64) -> Result<(), JobError> {
        match self {
            Self::Postgres(tx) => {
                sqlx::query(INSERT).bind(n).execute(&mut *tx.lock().await?).await?;
            }
            Self::Sqlite(tx) => {
                sqlx::query(INSERT).bind(n).execute(&mut *tx.lock().await?).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn execute(&self, sql: &'static str) -> Result<(), JobError> {
        match self {
            Self::Postgres(tx) => sqlx::raw_sql(sql).execute(&mut *tx.lock().await?).await.map(|_| ())?,
            Self::Sqlite(tx) => sqlx::raw_sql(sql).execute(&mut *tx.lock().await?).await.map(|_| ())?,
        }
        Ok(())
    }

    pub(super) async fn enqueue<M: Message>(&self, message: &M) -> Result<(), JobError> {
        match self {
            Self::Postgres(tx) => drop(tx.lock().await?.enqueue(message).await?),
            Self::Sqlite(tx) => drop(tx.lock().await?.enqueue(message).await?),
        }
        Ok(())
    }

    pub(super) async fn enqueue_many(&self, messages: [Draft; 2]) -> Result<(), JobError> {
        match self {
            Self::Postgres(tx) => drop(tx.lock().await?.enqueue_many(messages).await?),
            Self::Sqlite(tx) => drop(tx.lock().await?.enqueue_many(messages).await?),
        }
        Ok(())
    }

    pub(super) async fn hold(&self) -> Result<Hold, JobError> {
        Ok(match self {
            Self::Postgres(tx) => Hold::Postgres { _guard: tx.lock().await? },
            Self::Sqlite(tx) => Hold::Sqlite { _guard: tx.lock().await? },
        })
    }
}

/// A transaction in the way of every order.
pub(super) enum OrdersLock {
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

impl OrdersLock {
    pub(super) async fn release(self) {
        match self {
            Self::Postgres(open) => open.rollback().await.unwrap(),
            Self::Sqlite(open) => open.rollback().await.unwrap(),
        }
    }
}

/// The business's own connections.
pub(super) struct Business {
    pub(super) pool: Pool,
}

impl Business {
    pub(super) async fn open(fixture: &WorkerFixture) -> Self {
        let business = Self::at(&fixture.url).await;
        let table = "CREATE TABLE orders (n BIGINT NOT NULL)";
        match &business.pool {
            Pool::Postgres(pool) => drop(sqlx::query(table).execute(pool).await.unwrap()),
            Pool::Sqlite(pool) => drop(sqlx::query(table).execute(pool).await.unwrap()),
        }
        business
    }

    /// Connects to a business that is there.
    pub(super) async fn at(url: &str) -> Self {
        Self::connect(url, Duration::from_secs(30)).await
    }

    /// The same with connections that hardly wait for a lock.
    pub(super) async fn impatient(url: &str) -> Self {
        Self::connect(url, Duration::from_millis(20)).await
    }

    async fn connect(url: &str, lock_timeout: Duration) -> Self {
        let pool = if url.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(url).unwrap().busy_timeout(lock_timeout);
            Pool::Sqlite(SqlitePoolOptions::new().connect_with(options).await.unwrap())
        } else {
            let options = PgConnectOptions::from_str(url).unwrap();
            let options = options.options([("lock_timeout", format!("{}ms", lock_timeout.as_millis()))]);
            Pool::Postgres(PgPoolOptions::new().connect_with(options).await.unwrap())
        };
        Self { pool }
    }

    /// Takes the lock that every order needs.
    pub(super) async fn lock(&self) -> OrdersLock {
        match &self.pool {
            Pool::Postgres(pool) => {
                let mut open = pool.begin().await.unwrap();
                sqlx::query("LOCK TABLE orders").execute(&mut *open).await.unwrap();
                OrdersLock::Postgres(open)
            }
            Pool::Sqlite(pool) => OrdersLock::Sqlite(Store::begin_immediate(pool).await.unwrap()),
        }
    }

    /// A transactional handler of orders, on the business's database.
    pub(super) fn handler<F, A>(&self, handle: F) -> Handler
    where
        F: Fn(Job<Order>, AnyTx) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        match &self.pool {
            Pool::Postgres(_) => Handler::transactional(move |job, tx| handle(job, AnyTx::Postgres(tx))),
            Pool::Sqlite(_) => Handler::transactional(move |job, tx| handle(job, AnyTx::Sqlite(tx))),
        }
    }

    /// The numbers of all orders.
    pub(super) async fn orders(&self) -> Vec<i64> {
        let all = "SELECT n FROM orders ORDER BY n";
        match &self.pool {
            Pool::Postgres(pool) => {
                let rows = sqlx::query(all).fetch_all(pool).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
            Pool::Sqlite(pool) => {
                let rows = sqlx::query(all).fetch_all(pool).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }

    pub(super) async fn assert_orders(&self, expected: &[i64]) {
        assert_eq!(self.orders().await, expected);
    }
}
