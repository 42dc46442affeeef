//! The bulk operations that run in this server.
//!
//! Guarantee: at most [`MAX_OPERATIONS`] run at once. When the server stops, each ends before its next batch, its record says
//! that it was stopped, and the server waits for that. The results of the last [`OPERATIONS_REMEMBERED`] stay in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ichido::dead_letters::{BulkEnd, BulkError, BulkOperation, BulkProgress, BulkReport, Preflight};
use ichido_core::sync::lock;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

use super::problem::Problem;
use crate::limits::{MAX_OPERATIONS, OPERATIONS_REMEMBERED, OPERATIONS_STOP_TIMEOUT};

/// Why an operation was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkStartError {
    TooMany,
    Stopping,
}

/// Another operation, here or elsewhere, works on messages of the same queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueBusy {
    pub(super) by: Uuid,
}

/// What this server knows of an operation.
#[derive(Clone)]
pub(super) enum BulkStatus {
    /// Its progress.
    Running(BulkProgress),
    /// Its report, and why it could not continue, if it failed.
    Finished(BulkReport, Option<String>),
}

/// The running operations, and the latest finished ones.
#[derive(Default)]
pub(super) struct BulkRunner {
    /// By id, which is also the order of their start.
    statuses: Mutex<BTreeMap<Uuid, BulkStatus>>,
    /// Operations that have not finished, including those without an id yet.
    count: AtomicUsize,
    stopping: AtomicBool,
    one_finished: Notify,
}

impl BulkRunner {
    /// Starts an operation.
    ///
    /// The receiver gets its id once it is in the audit trail, or why it was refused.
    pub(super) fn start(
        self: &Arc<Self>,
        bulk: BulkOperation,
        found: Preflight,
    ) -> Result<oneshot::Receiver<Result<Uuid, QueueBusy>>, BulkStartError> {
        if self.stopping.load(Ordering::SeqCst) {
            return Err(BulkStartError::Stopping);
        }
        let permit = BulkPermit::take(self).ok_or(BulkStartError::TooMany)?;
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(run(permit, bulk, found, sender));
        Ok(receiver)
    }

    /// Returns what is known of an operation that runs here, or recently did.
    pub(super) fn status(&self, id: Uuid) -> Option<BulkStatus> {
        self.lock().get(&id).cloned()
    }

    /// Asks all operations to end.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Waits until all have ended, up to a timeout.
    pub(super) async fn wait_until_done(&self) {
        let all = async {
            loop {
                let next = self.one_finished.notified();
                if self.count.load(Ordering::SeqCst) == 0 {
                    return;
                }
                next.await;
            }
        };
        if timeout(OPERATIONS_STOP_TIMEOUT, all).await.is_err() {
            tracing::warn!("bulk operation did not stop in time");
        }
    }

    fn remember(&self, report: BulkReport, error: Option<String>) {
        let mut all = self.lock();
        all.insert(report.operation, BulkStatus::Finished(report, error));
        let ended =
            all.iter().filter(|(_, status)| matches!(status, BulkStatus::Finished(..))).map(|(id, _)| *id);
        let ended: Vec<Uuid> = ended.collect();
        for oldest in &ended[..ended.len().saturating_sub(OPERATIONS_REMEMBERED)] {
            all.remove(oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, BulkStatus>> {
        // Each change under the lock is complete, so a panic leaves no half-made one.
        lock(&self.statuses)
    }
}

/// A permit for one running operation.
struct BulkPermit(Arc<BulkRunner>);

impl BulkPermit {
    fn take(running: &Arc<BulkRunner>) -> Option<Self> {
        let more = |count: usize| (count < MAX_OPERATIONS).then_some(count + 1);
        running.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Self(Arc::clone(running)))
    }
}

impl Drop for BulkPermit {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        self.0.one_finished.notify_waiters();
    }
}

async fn run(
    permit: BulkPermit,
    bulk: BulkOperation,
    found: Preflight,
    sender: oneshot::Sender<Result<Uuid, QueueBusy>>,
) {
    let running = &permit.0;
    let mut sender = Some(sender);
    let mut begun = |begun| {
        // The caller may have hung up; the operation continues.
        _ = sender.take().map(|sender| sender.send(begun));
    };
    let progress = |progress: BulkProgress| {
        running.lock().insert(progress.operation, BulkStatus::Running(progress));
        begun(Ok(progress.operation));
    };
    let stop = || running.stopping.load(Ordering::SeqCst);
    let ended = bulk.run(&found, stop, progress).await;
    let (report, error) = match ended {
        Ok(report) => (report, None),
        Err(BulkError::Conflict { by }) => return begun(Err(QueueBusy { by })),
        Err(BulkError::Interrupted { error, report }) => {
            tracing::error!(%error, operation = %report.operation, moved = report.moved, "bulk operation failed");
            (report, Some(Problem::from_store(&error).detail.into_owned()))
        }
    };
    let (operation, moved) = (report.operation, report.moved);
    match &report.ended {
        BulkEnd::Stopped { by: None } => {
            tracing::warn!(%operation, moved, "bulk operation halted for server shutdown");
        }
        ended => tracing::info!(%operation, moved, ?ended, "bulk operation ended"),
    }
    running.remember(report, error);
    begun(Ok(operation));
}
