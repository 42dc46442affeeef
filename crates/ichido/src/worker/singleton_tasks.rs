//! Tasks that one node at a time does for all, a limited amount per round.
//!
//! They run beside `maintenance`, so due messages never wait for them.
// Spec: A5, F5.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::time::Timestamp;
use ichido_store::audit::{AuditSealed, MAX_SEAL_ENTRIES};
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
use ichido_store::node::SingletonTask;
use ichido_store::rescue::UnservedQueue;

use super::maintenance::{PeriodicTask, ok_or_log};
use super::metrics;
use super::node::WorkerNode;
use crate::counters;
use crate::key_seals::KeySealer;

/// The time between rounds.
const RUN_EVERY: Duration = Duration::from_secs(5);
/// How long a node keeps a task; several rounds, so tasks do not move around.
const TASK_LEASE: Duration = Duration::from_secs(30);
/// How long after a claim lapsed its queue counts as unserved.
///
/// A worker that serves it checks every second.
const UNSERVED_AFTER: Duration = Duration::from_secs(30);
/// The most rows per statement.
const BATCH_SIZE: u32 = 1_000;
/// The most statements of one kind per round.
const MAX_BATCHES: usize = 10;
/// The most seals per round.
///
/// A busy outbox writes many entries, and unsealed ones are not protected.
const MAX_SEALS: usize = 100;
/// The most seals checked for pruning per round.
const PRUNE_BATCH_SIZE: u32 = 100;

pub(super) struct SingletonTasks {
    node: Arc<WorkerNode>,
    /// The last seal that was checked for pruning.
    pruned: u64,
    keys: KeySealer,
    /// The trail is sealed with a key that we do not have.
    lacks_key: bool,
    /// The last report about unserved queues: how many messages.
    unserved: BTreeMap<QueueName, u64>,
}

impl PeriodicTask for SingletonTasks {
    const EVERY: Duration = RUN_EVERY;

    async fn run_once(&mut self) {
        let node = Arc::clone(&self.node);
        let store = &node.store;
        if node.has(SingletonTask::Ledger).await {
            in_batches("failed to delete expired keys", || store.keys().sweep(BATCH_SIZE)).await;
            in_batches("failed to delete old message contents", || {
                store.messages().sweep_contents(BATCH_SIZE)
            })
            .await;
            ok_or_log("failed to roll up or delete old counters", counters::maintain(store).await);
        }
        if node.has(SingletonTask::Outbox).await {
            in_batches("failed to fold counts", || store.queues().fold_counts(BATCH_SIZE)).await;
            in_batches("failed to fold failure groups", || store.failure_groups().fold(BATCH_SIZE)).await;
            self.prune_observations().await;
            self.report_unserved().await;
        } else {
            // The responsible node reports them.
            for queue in std::mem::take(&mut self.unserved).into_keys() {
                metrics::unserved(queue.as_str(), 0);
            }
        }
        // A node without the key must not take the task from one that has it.
        if !self.lacks_key && node.has(SingletonTask::Trail).await {
            self.maintain_trail().await;
        }
    }
}

impl SingletonTasks {
    pub(super) fn new(node: Arc<WorkerNode>) -> Self {
        Self {
            node,
            pruned: 0,
            keys: KeySealer::with_rounds_every(RUN_EVERY),
            lacks_key: false,
            unserved: BTreeMap::new(),
        }
    }

    /// Deletes incidents resolved long ago, and failure groups without letters.
    async fn prune_observations(&self) {
        let store = &self.node.store;
        if let Some(before) = self.node.finished_before().await {
            in_batches("failed to delete old incidents", || {
                store.alerts().delete_resolved(before, BATCH_SIZE)
            })
            .await;
            in_batches("failed to delete old failure groups", || {
                store.failure_groups().delete_empty(before, BATCH_SIZE)
            })
            .await;
        }
    }

    /// Reports messages that dead workers left in unserved queues.
    ///
    /// Nobody rescues them: only a node that knows a queue's destination can judge what a repeated call could do. Logs one
    /// line per change.
    async fn report_unserved(&mut self) {
        let served: Vec<QueueName> = self.node.queues.keys().cloned().collect();
        let found = self.node.store.claims().list_unserved(&served, UNSERVED_AFTER).await;
        let Some(found) = ok_or_log("failed to find unserved queues", found) else {
            return;
        };
        let before = std::mem::take(&mut self.unserved);
        for UnservedQueue { queue, claims, max_messages, since } in found {
            metrics::unserved(queue.as_str(), max_messages);
            if before.get(&queue) != Some(&max_messages) {
                tracing::warn!(
                    queue = queue.as_str(),
                    claims,
                    max_messages,
                    %since,
                    "dead worker left messages in an unserved queue; start a worker for it to rescue them"
                );
            }
            self.unserved.insert(queue, max_messages);
        }
        for queue in before.keys().filter(|queue| !self.unserved.contains_key(*queue)) {
            metrics::unserved(queue.as_str(), 0);
            tracing::info!(queue = queue.as_str(), "messages of an unserved queue were rescued");
        }
    }

    /// Seals settled key records and new entries, then deletes old messages, with a recorded reason under the same key.
    ///
    /// Otherwise they would count as missing.
    async fn maintain_trail(&mut self) {
        // First, because each list of records has an entry.
        ok_or_log("failed to seal key records", self.keys.run_once(&self.node.store).await);
        self.seal().await;
        if self.lacks_key {
            return;
        }
        let (node, store) = (&self.node, &self.node.store);
        if let Some(before) = node.finished_before().await {
            in_batches("failed to delete old messages", || async {
                match &node.audit_key {
                    Some(key) => store.messages().delete_sealed(key, before, BATCH_SIZE).await,
                    None => store.messages().delete_finished(before, BATCH_SIZE).await,
                }
            })
            .await;
        }
        let pruned = store.audit().prune(node.audit_key.as_ref(), self.pruned, PRUNE_BATCH_SIZE).await;
        if let Some(pruned) = ok_or_log("failed to prune seals", pruned) {
            self.pruned = pruned.after.unwrap_or(0);
        }
    }

    async fn seal(&mut self) {
        for _ in 0..MAX_SEALS {
            let sealed = self.node.store.audit().seal(self.node.audit_key.as_ref(), MAX_SEAL_ENTRIES).await;
            match ok_or_log("failed to seal the audit trail", sealed) {
                Some(AuditSealed::Sealed { misfits: 0, .. }) => (),
                Some(AuditSealed::Sealed { misfits, .. }) => {
                    tracing::error!(
                        entries = misfits,
                        "sealed audit entries that violate the rules; `ichido audit verify` lists them"
                    );
                }
                Some(AuditSealed::KeyNeeded) => {
                    tracing::error!(
                        "the audit trail is sealed with a key that this worker does not have; it seals and \
                            deletes nothing until it gets the key (if it has the key, the last seal may have \
                            been changed: run `ichido audit verify`)"
                    );
                    self.lacks_key = true;
                    return;
                }
                Some(AuditSealed::Nothing) | None => return,
            }
        }
    }
}

impl WorkerNode {
    /// Returns whether this node is responsible for a task now.
    pub(super) async fn has(&self, duty: SingletonTask<'_>) -> bool {
        let has = self.store.nodes().claim_task(duty, self.id, TASK_LEASE).await;
        ok_or_log("failed to claim a singleton task", has) == Some(true)
    }
}

impl WorkerNode {
    /// Returns the time before which finished messages are deleted.
    ///
    /// Uses the store's clock of this moment: the local estimate may predate a change of that clock.
    async fn finished_before(&self) -> Option<Timestamp> {
        let now = ok_or_log("failed to read the store's clock", self.store.now().await)?;
        let kept = i64::try_from(self.keep_finished.as_micros()).unwrap_or(i64::MAX);
        Some(Timestamp::from_micros(now.as_micros().saturating_sub(kept)))
    }

    /// Leaves its tasks and published facts to other nodes when it stops.
    pub(super) async fn leave(&self) {
        ok_or_log("failed to announce that this node stops", self.store.facts().end(self.id).await);
        ok_or_log(
            "failed to release a stopping worker's singleton tasks",
            self.store.nodes().release_tasks(self.id).await,
        );
    }
}

/// Runs statements until one finds fewer rows than its limit.
async fn in_batches<A>(what: &'static str, part: impl Fn() -> A)
where
    A: Future<Output = Result<u64, StoreError>>,
{
    for _ in 0..MAX_BATCHES {
        if ok_or_log(what, part().await) != Some(u64::from(BATCH_SIZE)) {
            return;
        }
    }
}
