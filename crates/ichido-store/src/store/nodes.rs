//! Nodes, and the tasks that one of them holds at a time.

use std::path::PathBuf;
use std::time::Duration;

use ichido_core::clock::{LockState, is_dead};
use uuid::Uuid;

use super::Nodes;
use crate::check;
use crate::columns::Columns;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::micros;
use crate::node::{
    BulkLease, Heartbeat, MAX_CANCELLATIONS, MAX_TASK_LEASE, NodeLife, NodeLock, NodeRow, SingletonTask,
};
use crate::rows;
use crate::statement::{SqlValue, paired, shared};
use crate::transaction::Transaction;

/// The most nodes that one search for dead ones reads, those seen longest ago.
const MAX_LIVING: i64 = 1_000;

impl<'s> Nodes<'s> {
    /// Sends a node's heartbeat, [`HEARTBEAT_EVERY`](ichido_core::clock::HEARTBEAT_EVERY).
    ///
    /// A node that sends one must go on: without, [`Nodes::declare_dead`] takes its claims. The claims of a node that never sent
    /// one end with their lease.
    pub fn heartbeat(self, node: Uuid, name: &'s str) -> StoreFuture<'s, Heartbeat> {
        Box::pin(async move {
            check::no_nul("the node's name", name)?;
            let values = [node.into(), name.into(), SqlValue::Now, i64::from(MAX_CANCELLATIONS).into()];
            let row =
                self.0.note_write(self.0.driver.write_returning(paired!("node_beat"), &values).await)?;
            let row = row.ok_or(sqlx::Error::RowNotFound)?;
            let life = NodeLife { started_at: row.timestamp("started_at")?, deaths: row.positive("deaths")? };
            let requested = row.text_or_none("cancellations")?.unwrap_or_default();
            let cancellations = requested.split_whitespace().map(Uuid::parse_str).collect::<Result<_, _>>();
            let cancellations = cancellations.map_err(|error| sqlx::Error::Decode(error.into()))?;
            Ok(Heartbeat { at: row.timestamp("seen_at")?, life, cancellations })
        })
    }

    /// Locks a file for a node, so others know at once when its process is gone. It must have sent a heartbeat before.
    ///
    /// Returns `None` on PostgreSQL, and on a file system without locks: heartbeats alone count there.
    // SPEC D12.
    pub fn lock(self, node: Uuid) -> StoreFuture<'s, Option<NodeLock>> {
        Box::pin(async move {
            let Some(lock) = self.lock_path(node).and_then(NodeLock::create) else { return Ok(None) };
            match self.0.driver.execute(shared!("node_lock"), &[node.into()]).await {
                Ok(_) => Ok(Some(lock)),
                Err(error) => {
                    lock.remove();
                    Err(error)
                }
            }
        })
    }

    /// Notes that a node stopped and holds nothing any more, and removes its lock.
    pub fn leave(self, node: Uuid, lock: Option<NodeLock>) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            self.0.driver.execute(shared!("node_end"), &[node.into()]).await?;
            if let Some(lock) = lock {
                lock.remove();
            }
            Ok(())
        })
    }

    /// Declares nodes dead that show no sign of life, and lets their claims lapse. Returns these nodes.
    ///
    /// A node never declares itself (`by`) dead: it lives, although its machine may have been suspended.
    /// [`Claims::rescue`](crate::Claims::rescue) then rescues the messages.
    // SPEC D12.
    pub fn declare_dead(self, by: Uuid) -> StoreFuture<'s, Vec<NodeRow>> {
        Box::pin(async move {
            let mut dead = Vec::new();
            let values = [SqlValue::Now, MAX_LIVING.into()];
            for row in self.0.driver.all(paired!("node_living"), &values).await? {
                let (node, locked, now) = (rows::node(&row)?, row.truth("locked")?, row.timestamp("now")?);
                let (state, lock) = if locked { self.probe(node.id) } else { (LockState::Unknown, None) };
                if node.id != by && is_dead(state, node.seen_at, now) && self.declare(&node).await? {
                    // Its process is gone, perhaps before it could note its lock, so nobody else removes the file.
                    if let Some(lock) = lock.or_else(|| self.probe(node.id).1) {
                        lock.remove();
                    }
                    dead.push(node);
                }
            }
            Ok(dead)
        })
    }

    /// Declares a node dead, unless it sent a heartbeat since it was read. Returns whether it did.
    async fn declare(self, node: &NodeRow) -> Result<bool, StoreError> {
        let work = async |transaction: &mut Transaction<'_>| {
            let mut connection = transaction.connection();
            if connection.execute(shared!("node_die"), &[node.id.into(), node.seen_at.into()]).await? == 0 {
                return Ok(None);
            }
            let mut lapsed = Vec::new();
            for lease in connection.all(paired!("lease_lapse"), &[node.id.into(), SqlValue::Now]).await? {
                if !lease.truth("lapsed")? {
                    // Suspended inside a transaction, which the server ends soon. The next search tries again.
                    return Ok(None);
                }
                lapsed.push(lease.fence()?);
            }
            Ok(Some(lapsed))
        };
        let Some(lapsed) = self.0.driver.transact(work).await? else { return Ok(false) };
        if let Driver::Sqlite(sqlite) = &*self.0.driver {
            sqlite.disown(&lapsed);
        }
        Ok(true)
    }

    /// Takes the lock of a node, if nobody holds it.
    fn probe(self, node: Uuid) -> (LockState, Option<NodeLock>) {
        self.lock_path(node).map_or((LockState::Unknown, None), |path| NodeLock::probe(&path))
    }

    fn lock_path(self, node: Uuid) -> Option<PathBuf> {
        match &*self.0.driver {
            Driver::Sqlite(sqlite) => Some(sqlite.node_lock_path(node)),
            Driver::Postgres(_) => None,
        }
    }

    /// Lists all nodes ever seen, the one seen last first. None is ever deleted; [`NodeRow::is_alive`] tells which are alive.
    pub fn list(self) -> StoreFuture<'s, Vec<NodeRow>> {
        Box::pin(async move {
            self.0.driver.all(shared!("node_list"), &[]).await?.iter().map(rows::node).collect()
        })
    }

    /// Claims or renews a task. Returns `true` for one node at a time, until its lease lapses, after an hour at the latest.
    pub fn claim_task(self, duty: SingletonTask<'s>, node: Uuid, lease: Duration) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            let (duty, lease) = (duty.name(), micros(lease.min(MAX_TASK_LEASE)));
            let values =
                [(&*duty).into(), node.into(), lease.into(), SqlValue::Now, micros(MAX_TASK_LEASE).into()];
            Ok(self.0.driver.write_returning(paired!("task_claim"), &values).await?.is_some())
        })
    }

    /// Releases all tasks of a node that stops. The next node then need not wait for their leases.
    pub fn release_tasks(self, node: Uuid) -> StoreFuture<'s, ()> {
        Box::pin(
            async move { self.0.driver.execute(shared!("task_release"), &[node.into()]).await.map(drop) },
        )
    }

    /// Lists the holders of [`SingletonTask::DeadLetters`], of any queue, with a valid lease.
    pub fn bulk_leases(self) -> StoreFuture<'s, Vec<BulkLease>> {
        Box::pin(async move {
            let values = [SqlValue::Now, micros(MAX_TASK_LEASE).into()];
            self.0.driver.all(paired!("bulk_leases"), &values).await?.iter().map(rows::bulk_leases).collect()
        })
    }
}
