//! Queues: waking, waiting, counting, pausing, parallelism.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::time::Timestamp;

use super::Queues;
use crate::action::AuditAction;
use crate::check;
use crate::columns::Columns as _;
use crate::driver::Driver;
use crate::future::{BoxFuture, StoreFuture};
use crate::message::{QueueName, StateCount, limits};
use crate::node::{QueueParallelism, QueuePause};
use crate::postgres::wake::Topic;
use crate::rows;
use crate::statement::{SqlValue, paired, postgres_only, shared};
use crate::transaction::Transaction;

/// The maximum length of a key kind's name.
const MAX_KIND_BYTES: usize = 32;
/// The maximum number of queues whose oldest message is read at once.
const MAX_OLDEST: i64 = 10_000;

impl<'s> Queues<'s> {
    /// Wakes those who wait for work of a queue.
    ///
    /// Call it after the commit of a transaction that enqueued messages. On PostgreSQL it reaches other nodes too.
    pub fn wake(self, queue: &QueueName) {
        self.0.driver.note_wake(queue);
        self.0.wake_ups.wake(Topic::queue(queue));
    }

    /// Waits up to `at_most` for work on a queue. Returns whether it was woken.
    ///
    /// It is a hint that shortens the wait: on SQLite it comes from this process only, so claim periodically to find messages
    /// of other processes.
    ///
    /// One wake-up is remembered while nobody waits, so nothing between a claim and this call is missed.
    pub fn wait(self, queue: &'s QueueName, at_most: Duration) -> BoxFuture<'s, bool> {
        Box::pin(async move {
            let woken = self.0.wake_ups.wait(&Topic::queue(queue), at_most, async || false).await;
            if woken {
                // Perhaps by another node, which the driver does not know about.
                self.0.driver.note_wake(queue);
            }
            woken
        })
    }

    /// Counts the messages of each queue in each state.
    pub fn counts(self) -> StoreFuture<'s, Vec<StateCount>> {
        Box::pin(async move {
            self.0.driver.all(paired!("count_read"), &[]).await?.iter().map(rows::count).collect()
        })
    }

    /// Returns the kind of key that calls for a queue's messages carry. The first caller's `kind` wins.
    ///
    /// With another kind, a retry would be a new action to its receiver.
    // SPEC D7.
    pub fn key_kind(self, queue: &'s QueueName, kind: &'s str) -> StoreFuture<'s, String> {
        Box::pin(async move {
            check::name("the kind of key", kind, MAX_KIND_BYTES)?;
            let row = self
                .0
                .driver
                .write_returning(shared!("queue_keys"), &[queue.as_str().into(), kind.into()])
                .await?;
            Ok(row.ok_or(sqlx::Error::RowNotFound)?.text("kind")?.to_owned())
        })
    }

    /// Returns since when the oldest claimable message of a queue waits, or `None`. Delayed messages and retries do not count until
    /// they are due, and a delayed message waits since then.
    pub fn oldest(self, queue: &'s QueueName) -> StoreFuture<'s, Option<Timestamp>> {
        Box::pin(async move {
            let row = self.0.driver.one(shared!("queue_oldest"), &[queue.as_str().into()]).await?;
            Ok(row.timestamp_or_none("oldest")?)
        })
    }

    /// Returns since when the oldest claimable message of each queue waits, like [`Queues::oldest`]. A queue without one is left out.
    pub fn oldest_of_each(self) -> StoreFuture<'s, Vec<(String, Timestamp)>> {
        Box::pin(async move {
            let rows = self.0.driver.all(shared!("queue_oldest_list"), &[MAX_OLDEST.into()]).await?;
            rows.iter().map(|row| Ok((row.text("queue")?.to_owned(), row.timestamp("oldest")?))).collect()
        })
    }

    /// Pauses or resumes claiming of a queue on all nodes, and records who did.
    ///
    /// Messages in flight continue, and new ones are still accepted.
    pub fn pause(self, queue: &'s QueueName, paused: bool, by: Option<&'s str>) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            check::text("the actor", by.unwrap_or_default(), limits::MAX_EXCERPT_BYTES)?;
            let work = async |transaction: &mut Transaction<'_>| {
                let mut connection = transaction.connection();
                let before = connection.optional(paired!("queue_paused"), &[queue.as_str().into()]).await?;
                let was = before.map(|row| row.truth("paused")).transpose()?.unwrap_or(false);
                let values = [queue.as_str().into(), paused.into(), by.into(), SqlValue::Now];
                connection.execute(paired!("queue_pause"), &values).await?;
                transaction.record(&AuditAction::pause(queue, was, paused, by)).await.map(Some)
            };
            self.0.driver.transact(work).await?;
            if !paused {
                self.wake(queue);
            }
            Ok(())
        })
    }

    /// Lists the queues that were ever paused, with their state; others are running.
    pub fn pauses(self) -> StoreFuture<'s, Vec<QueuePause>> {
        Box::pin(async move {
            self.0.driver.all(shared!("queue_list"), &[]).await?.iter().map(rows::pause).collect()
        })
    }

    /// Sets how many messages of a queue each worker runs at the same time, or restores what is configured, and records who did.
    ///
    /// Workers apply it within about a second.
    pub fn set_parallelism(
        self,
        queue: &'s QueueName,
        parallelism: Option<NonZeroU32>,
        by: Option<&'s str>,
    ) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            check::text("the actor", by.unwrap_or_default(), limits::MAX_EXCERPT_BYTES)?;
            let work = async |transaction: &mut Transaction<'_>| {
                let mut connection = transaction.connection();
                let name = queue.as_str().into();
                let before = connection.optional(shared!("parallelism_clear"), &[name]).await?;
                let was = before.map(|row| row.number("parallelism")).transpose()?;
                let wanted = parallelism.map(|count| i64::from(count.get()));
                if let Some(count) = wanted {
                    let values = [queue.as_str().into(), count.into(), by.into(), SqlValue::Now];
                    connection.execute(paired!("parallelism_set"), &values).await?;
                }
                transaction.record(&AuditAction::parallelism(queue, was, wanted, by)).await.map(Some)
            };
            self.0.driver.transact(work).await.map(drop)
        })
    }

    /// Lists the queues whose parallelism an operator set.
    pub fn parallelisms(self) -> StoreFuture<'s, Vec<QueueParallelism>> {
        Box::pin(async move {
            self.0.driver.all(shared!("parallelism_list"), &[]).await?.iter().map(rows::parallelism).collect()
        })
    }

    /// Folds at most `limit` changes of counts into the counts. Returns how many.
    ///
    /// The counts stay the same, and are faster to read. On SQLite there is nothing to fold.
    pub fn fold_counts(self, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            // SQLite's counts change with their messages, so there is nothing to fold.
            let Driver::Postgres(_) = &*self.0.driver else { return Ok(0) };
            let row = self
                .0
                .driver
                .write_returning(postgres_only!("count_fold"), &[i64::from(limit).into()])
                .await?;
            Ok(row.ok_or(sqlx::Error::RowNotFound)?.number("folded")?.unsigned_abs())
        })
    }
}
