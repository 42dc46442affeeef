//! Registers handlers whose effects commit with their messages.
// Spec: H1.

use std::time::Duration;

use ichido_store::StoreDatabase;
use sqlx::{Database as _, Postgres, Sqlite};

use super::Worker;
use crate::destination::{Handler, Handlers, Job, JobError, JobSuccess};
use crate::handler_tx::{Pool, Tx};
use crate::message::Message;
use crate::worker::config_error::WorkerConfigError;
use crate::worker::settings::{DestinationConfig, limits};
use crate::worker::transactional::Transactions;

impl Worker {
    /// Serves a message type with a function whose effects are in your own database, exactly once.
    ///
    /// The function gets a transaction on the store's database. Its writes, the messages that it enqueues and the settlement of
    /// its message commit together when it returns `Ok`, or not at all. After an error, a panic, a timeout or a crash nothing
    /// was done, and it runs again. Effects outside of the transaction, such as a call to another service, are not covered:
    /// enqueue a message for each.
    ///
    /// The transaction begins with the first [`Tx::lock`]. On SQLite it blocks every other writer, so it is rolled back after
    /// [`Worker::tx_timeout`].
    ///
    /// A transaction that conflicts with another one (a deadlock, a serialization failure, a busy SQLite file) is rolled back like
    /// after an error, and counts as an attempt. If that happens often, allow more attempts by [`Message::RETRY`].
    // Spec: H1.
    pub fn handle_tx<DB, M, F, A, D>(self, handle: F) -> Self
    where
        DB: StoreDatabase,
        M: Message,
        F: Fn(Job<M>, Tx<DB>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        self.handler(M::QUEUE, Handler::transactional(handle))
    }

    /// Sets your own connections to the store's database, for [`Worker::handle_tx`].
    ///
    /// It needs as many connections as handlers run at once.
    pub fn pool(self, pool: impl Into<Pool>) -> Self {
        Self { pool: Some(pool.into()), ..self }
    }

    /// Sets how long a handler's transaction may be open on SQLite, from its first use to its commit.
    pub fn tx_timeout(self, tx_timeout: Duration) -> Self {
        Self { tx_timeout, ..self }
    }

    /// Returns what a destination needs for the transactions of its handlers, if they have any.
    pub(super) fn transactions(&self, target: &DestinationConfig) -> Option<Transactions> {
        target.destination.handlers()?.iter().find_map(Handler::tx_database)?;
        Some(Transactions { pool: self.pool.clone()?, timeout: self.tx_timeout })
    }

    /// Returns what is wrong with the transactions of handlers.
    pub(super) fn transaction_errors(&self) -> Vec<WorkerConfigError> {
        let mut errors = Vec::new();
        if self.tx_timeout.is_zero() || limits::MAX_TX_TIMEOUT < self.tx_timeout {
            errors.push(WorkerConfigError::TxTimeout { tx_timeout: self.tx_timeout });
        }
        let store = if self.store.is_sqlite() { Sqlite::NAME } else { Postgres::NAME };
        let pool = self.pool.as_ref().map(|pool| match pool {
            Pool::Postgres(_) => Postgres::NAME,
            Pool::Sqlite(_) => Sqlite::NAME,
        });
        for target in &self.targets {
            let handlers = target.destination.handlers().into_iter().flat_map(Handlers::iter);
            for handler in handlers.filter_map(Handler::tx_database) {
                let queue = target.name.clone();
                match pool {
                    None => errors.push(WorkerConfigError::NoPool { queue }),
                    Some(pool) if pool == store && handler == store => (),
                    Some(pool) => {
                        errors.push(WorkerConfigError::OtherDatabase { queue, store, pool, handler });
                    }
                }
            }
        }
        errors
    }
}
