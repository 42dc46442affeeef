//! Facts that workers publish about their queues.

use uuid::Uuid;

use super::Facts;
use crate::facts::{KEPT_FOR, LIST, PublishedQueue, QueueFacts, by_queue};
use crate::future::StoreFuture;
use crate::message::QueueName;
use crate::statement::{SqlValue, column, paired, shared};
use crate::{guarantee_columns, micros};

impl<'s> Facts<'s> {
    /// Publishes a node's facts about the queues that it serves.
    ///
    /// They replace what it published before about these queues. Facts of nodes that are long gone are deleted. Publish after
    /// [`Queues::key_kind`](crate::Queues::key_kind) and [`Nodes::heartbeat`](crate::Nodes::heartbeat): without these the facts are
    /// not listed.
    pub fn publish(self, node: Uuid, queues: &'s [(QueueName, QueueFacts)]) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let columns = [
                column(queues, |(queue, _)| queue.as_str()),
                column(queues, |(_, facts)| guarantee_columns::columns(facts.guarantee).0),
                column(queues, |(_, facts)| guarantee_columns::columns(facts.guarantee).1),
                column(queues, |(_, facts)| facts.requeue),
                column(queues, |(_, facts)| i32::try_from(facts.max_attempts.get()).unwrap_or(i32::MAX)),
                column(queues, |(_, facts)| micros(facts.retry_horizon)),
            ];
            let values = [node.into(), SqlValue::Rows(&columns)];
            self.0.note_write(self.0.driver.execute(paired!("facts_publish"), &values).await)?;
            let values = [node.into(), SqlValue::Now, micros(KEPT_FOR).into()];
            self.0.driver.execute(paired!("facts_forget"), &values).await.map(drop)
        })
    }

    /// Notes that a node stops. Its facts then count only while no live node serves the queue.
    pub fn end(self, node: Uuid) -> StoreFuture<'s, ()> {
        Box::pin(async move { self.0.driver.execute(shared!("facts_end"), &[node.into()]).await.map(drop) })
    }

    /// Lists all published queues with the facts that apply. [`crate::facts`] explains which nodes count.
    pub fn list(self) -> StoreFuture<'s, Vec<PublishedQueue>> {
        Box::pin(async move {
            let rows = self.0.driver.all(LIST, &[]).await?;
            by_queue(&rows, self.0.now().await?)
        })
    }
}
