//! The operations on many messages that run in this server.
//!
//! Guarantee: no more than [`OPERATIONS_MAX`] run at once. When the server stops, each ends before its next batch, and its record says
//! that it was stopped; the server waits for that. What the last [`OPERATIONS_REMEMBERED`] came to is remembered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ichido::letters::{Bulk, BulkError, Ended, Preflight, Progress, Report};
use ichido_core::sync::lock;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

use super::problem::Problem;
use crate::limits::{OPERATIONS_MAX, OPERATIONS_REMEMBERED, OPERATIONS_STOP_TIMEOUT};

/// Why none was begun.
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

/// What is known here of an operation.
#[derive(Clone)]
pub(super) enum BulkStatus {
    /// How far it is.
    Running(Progress),
    /// What it came to, and why it could not go on, where that is so.
    Ended(Report, Option<String>),
}

/// All that run here, and the last ones that did.
#[derive(Default)]
pub(super) struct BulkRunner {
    /// By their ids, and so by when they began.
    statuses: Mutex<BTreeMap<Uuid, BulkStatus>>,
    /// Those that were begun and have not ended, those among them that have no id yet.
    count: AtomicUsize,
    stopping: AtomicBool,
    one_finished: Notify,
}

impl BulkRunner {
    /// Begins one, and tells its id once it is in the audit trail, or why it is not.
    pub(super) fn start(
        self: &Arc<Self>,
        bulk: Bulk,
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

    /// What is known of one that runs here, or did lately.
    pub(super) fn status(&self, id: Uuid) -> Option<BulkStatus> {
        self.lock().get(&id).cloned()
    }

    /// Asks all of them to end.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Waits until all have ended, for as long as that may take.
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
            tracing::warn!("an operation did not stop in time; its record says that it was begun");
        }
    }

    fn remember(&self, report: Report, error: Option<String>) {
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
        // Each change under it is whole.
        lock(&self.statuses)
    }
}

/// The place of one that runs, for as long as it does.
struct BulkPermit(Arc<BulkRunner>);

impl BulkPermit {
    fn take(running: &Arc<BulkRunner>) -> Option<Self> {
        let more = |count: usize| (count < OPERATIONS_MAX).then_some(count + 1);
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
    bulk: Bulk,
    found: Preflight,
    sender: oneshot::Sender<Result<Uuid, QueueBusy>>,
) {
    let running = &permit.0;
    let mut sender = Some(sender);
    let mut begun = |begun| {
        // Who began it may have hung up; it goes on.
        _ = sender.take().map(|sender| sender.send(begun));
    };
    let progress = |progress: Progress| {
        running.lock().insert(progress.operation, BulkStatus::Running(progress));
        begun(Ok(progress.operation));
    };
    let stop = || running.stopping.load(Ordering::SeqCst);
    let ended = bulk.run(&found, stop, progress).await;
    let (report, error) = match ended {
        Ok(report) => (report, None),
        Err(BulkError::Taken { by }) => return begun(Err(QueueBusy { by })),
        Err(BulkError::Broke { error, report }) => {
            tracing::error!(%error, operation = %report.operation, moved = report.moved, "an operation could not go on");
            (report, Some(Problem::from_store(&error).detail.into_owned()))
        }
    };
    let (operation, moved) = (report.operation, report.moved);
    match &report.ended {
        Ended::Stopped { by: None } => {
            tracing::warn!(%operation, moved, "an operation was halted, because the server stops; begin it again to go on");
        }
        ended => tracing::info!(%operation, moved, ?ended, "an operation has ended"),
    }
    running.remember(report, error);
    begun(Ok(operation));
}
