//! Nodes, and the tasks that one of them holds at a time.

use std::time::Duration;

use uuid::Uuid;

use super::Nodes;
use crate::check;
use crate::error::StoreError;
use crate::micros;
use crate::node::{BulkLease, MAX_TASK_LEASE, NodeRow, SingletonTask};
use crate::rows;
use crate::statement::{SqlValue, paired, shared};

impl Nodes<'_> {
    /// Sends a node's heartbeat.
    pub async fn heartbeat(self, node: Uuid, name: &str) -> Result<(), StoreError> {
        check::no_nul("the node's name", name)?;
        let values = [node.into(), name.into(), SqlValue::Now];
        self.0.note_write(self.0.driver.execute(paired!("node_beat"), &values).await.map(drop))
    }

    /// Lists all nodes ever seen, the one seen last first. None is ever deleted; [`NodeRow::seen_at`] tells which are alive.
    pub async fn list(self) -> Result<Vec<NodeRow>, StoreError> {
        self.0.driver.all(shared!("node_list"), &[]).await?.iter().map(rows::node).collect()
    }

    /// Claims or renews a task. Returns `true` for one node at a time, until its lease lapses, after an hour at the latest.
    pub async fn claim_task(
        self,
        duty: SingletonTask<'_>,
        node: Uuid,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        let (duty, lease) = (duty.name(), micros(lease.min(MAX_TASK_LEASE)));
        let values =
            [(&*duty).into(), node.into(), lease.into(), SqlValue::Now, micros(MAX_TASK_LEASE).into()];
        Ok(self.0.driver.write_returning(paired!("task_claim"), &values).await?.is_some())
    }

    /// Releases all tasks of a node that stops. The next node then need not wait for their leases.
    pub async fn release_tasks(self, node: Uuid) -> Result<(), StoreError> {
        self.0.driver.execute(shared!("task_release"), &[node.into()]).await.map(drop)
    }

    /// Lists the holders of [`SingletonTask::DeadLetters`], of any queue, with a valid lease.
    pub async fn bulk_leases(self) -> Result<Vec<BulkLease>, StoreError> {
        let values = [SqlValue::Now, micros(MAX_TASK_LEASE).into()];
        self.0.driver.all(paired!("bulk_leases"), &values).await?.iter().map(rows::bulk_leases).collect()
    }
}
