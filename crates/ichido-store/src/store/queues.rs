//! Queues: woken, waited for, counted, paused.

use std::time::Duration;

use ichido_core::time::Timestamp;

use super::Queues;
use crate::action::Action;
use crate::check;
use crate::columns::Columns as _;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::message::{Count, QueueName, limits};
use crate::node::QueuePause;
use crate::postgres::wake::Topic;
use crate::rows;
use crate::statement::{SqlValue, paired, postgres_only, shared};
use crate::transaction::Transaction;

/// The longest name of a kind of key.
const KIND_BYTES_MAX: usize = 32;

impl Queues<'_> {
    /// Wakes those who wait for work of a queue: to be called after the commit of a transaction that put messages in. On PostgreSQL
    /// other nodes hear it too.
    pub fn wake(self, queue: &QueueName) {
        self.0.driver.woken(queue);
        self.0.wakes.wake(Topic::queue(queue));
    }

    /// Waits until a queue gets work, at most so long; answers whether it was woken. A hint that makes the next claim sooner: on
    /// SQLite it comes from this process only, and what another one puts in is found by claiming now and then.
    ///
    /// One wake-up is remembered while nobody waits, so that what comes between a claim and this call is not missed.
    pub async fn wait(self, queue: &QueueName, at_most: Duration) -> bool {
        let woken = self.0.wakes.wait(&Topic::queue(queue), at_most, async || false).await;
        if woken {
            // By another node, perhaps, of which the driver has not heard.
            self.0.driver.woken(queue);
        }
        woken
    }

    /// How many messages of each queue are in each state.
    pub async fn counts(self) -> Result<Vec<Count>, StoreError> {
        self.0.driver.all(paired!("count_read"), &[]).await?.iter().map(rows::count).collect()
    }

    /// By which kind of key the calls for a queue's messages go out: what was said first stands, and is answered to everybody
    /// later. Under another kind a second try would be another action to its receiver.
    // SPEC D7.
    pub async fn kind_of_key(self, queue: &QueueName, kind: &str) -> Result<String, StoreError> {
        check::name("the kind of key", kind, KIND_BYTES_MAX)?;
        let row = self.0.driver.changed(shared!("queue_keys"), &[queue.as_str().into(), kind.into()]).await?;
        Ok(row.ok_or(sqlx::Error::RowNotFound)?.text("kind")?.to_owned())
    }

    /// When the oldest message of a queue that could be claimed now was put in; `None` when none waits. What is delayed, or waits for
    /// its next try, does not count.
    pub async fn oldest(self, queue: &QueueName) -> Result<Option<Timestamp>, StoreError> {
        let row = self.0.driver.one(shared!("queue_oldest"), &[queue.as_str().into()]).await?;
        Ok(row.timestamp_or_none("oldest")?)
    }

    /// Stops (`paused`) or resumes the claiming of a queue, on all nodes, and records who did. What is claimed goes on; messages are
    /// still taken in.
    pub async fn pause(self, queue: &QueueName, paused: bool, by: Option<&str>) -> Result<(), StoreError> {
        check::text("the name of who pauses", by.unwrap_or_default(), limits::EXCERPT_BYTES_MAX)?;
        let work = async |transaction: &mut Transaction<'_>| {
            let mut connection = transaction.connection();
            let before = connection.optional(paired!("queue_paused"), &[queue.as_str().into()]).await?;
            let was = before.map(|row| row.truth("paused")).transpose()?.unwrap_or(false);
            let values = [queue.as_str().into(), paused.into(), by.into(), SqlValue::Now];
            connection.execute(paired!("queue_pause"), &values).await?;
            transaction.record(&Action::pause(queue, was, paused, by)).await.map(Some)
        };
        self.0.driver.transact(work).await?;
        if !paused {
            self.wake(queue);
        }
        Ok(())
    }

    /// The queues that were ever paused, and how they stand; those that are left out run.
    pub async fn pauses(self) -> Result<Vec<QueuePause>, StoreError> {
        self.0.driver.all(shared!("queue_list"), &[]).await?.iter().map(rows::pause).collect()
    }

    /// Folds at most `limit` changes of counts into the counts; answers how many. The counts stay what they are, and are read
    /// quicker. On SQLite there is nothing to fold.
    pub async fn fold_counts(self, limit: u32) -> Result<u64, StoreError> {
        // SQLite's counts change with their messages, so there is nothing to fold.
        let Driver::Postgres(_) = &*self.0.driver else { return Ok(0) };
        let row = self.0.driver.changed(postgres_only!("count_fold"), &[i64::from(limit).into()]).await?;
        Ok(row.ok_or(sqlx::Error::RowNotFound)?.number("folded")?.unsigned_abs())
    }
}
