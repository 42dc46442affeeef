//! A running worker, and how it stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

use super::alert::{AlertWatch, TrailWatch};
use super::heartbeat;
use super::maintenance::{Maintenance, NOT_PUBLISHED, ok_or_log, run_periodically};
use super::node::WorkerNode;
use super::queue_runner::QueueRunner;
use super::reconcile::Reconciler;
use super::singleton_tasks::SingletonTasks;
use super::stop::{StopStage, advance};
use crate::lease;

/// How long settling abandoned calls may take.
const SETTLE_WITHIN: Duration = Duration::from_secs(5);
/// The wait between queries to the store at startup.
const START_RETRY_DELAY: Duration = Duration::from_millis(200);

/// A running worker.
///
/// Dropping it ends it at once, like a crash: nothing is lost, and others rescue its messages.
#[derive(Debug)]
#[must_use = "dropping it stops the worker"]
pub struct WorkerHandle {
    id: Uuid,
    stopper: StopHandle,
    in_flight: Arc<AtomicUsize>,
    phase: watch::Receiver<WorkerPhase>,
    task: AbortHandle,
}

/// The phase of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorkerPhase {
    Starting,
    Working,
    Ended,
}

/// Stops a worker. Cheap to clone, for signal handlers.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<watch::Sender<StopStage>>);

impl StopHandle {
    /// Stops gracefully on the first call, at once on the second.
    ///
    /// The first call stops claiming and gives back unstarted messages without counting an attempt. Calls in flight may end
    /// within the worker's limit; the others are abandoned, and their effect is unknown. The second call ends the worker at
    /// once and leaves calls in flight to the rescue.
    pub fn stop(&self) {
        let is_stopping = StopStage::Running < *self.0.borrow();
        advance(&self.0, if is_stopping { StopStage::Over } else { StopStage::Draining });
    }
}

impl WorkerHandle {
    pub(super) fn start(
        node: Arc<WorkerNode>,
        sender: watch::Sender<StopStage>,
        stop_timeout: Duration,
    ) -> Self {
        let (id, in_flight) = (node.id, Arc::clone(&node.in_flight));
        let stopper = StopHandle(Arc::new(sender));
        let (phase_sender, phase) = watch::channel(WorkerPhase::Starting);
        let stages = Arc::clone(&stopper.0);
        let task = tokio::spawn(async move {
            run(node, &stages, &phase_sender, stop_timeout).await;
            phase_sender.send_replace(WorkerPhase::Ended);
        });
        Self { id, stopper, in_flight, phase, task: task.abort_handle() }
    }

    /// Returns its id among the nodes and in the audit trail; new at each start.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Returns how many calls are in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Stops it; see [`StopHandle::stop`].
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Returns a handle that stops it, for signal handlers.
    pub fn stopper(&self) -> StopHandle {
        self.stopper.clone()
    }

    /// Waits until it works and has published its queues' facts, or has ended.
    pub async fn started(&self) {
        self.reached(WorkerPhase::Working).await;
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        self.reached(WorkerPhase::Ended).await;
    }

    async fn reached(&self, phase: WorkerPhase) {
        // The sender is dropped: it has ended.
        drop(self.phase.clone().wait_for(|now| phase <= *now).await);
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs until it is stopped, and then until calls in flight have ended, in time.
///
/// Anything left ends with the sets.
async fn run(
    node: Arc<WorkerNode>,
    stages: &watch::Sender<StopStage>,
    phase: &watch::Sender<WorkerPhase>,
    stop_timeout: Duration,
) {
    tokio::select! {
        () = sync_clock(&node) => (),
        () = node.stop.reached(StopStage::Draining) => return,
    }
    let keys_match = tokio::select! {
        keys_match = check_key_kinds(&node) => keys_match,
        () = node.stop.reached(StopStage::Draining) => return,
    };
    if !keys_match {
        return;
    }
    tokio::select! {
        () = announce(&node) => (),
        () = node.stop.reached(StopStage::Draining) => return,
    }
    phase.send_replace(WorkerPhase::Working);
    let (mut renewing, mut maintenance, mut runners) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
    renewing.spawn(lease::run(Arc::downgrade(&node.claims)));
    // Until the last call has ended: a node that drains lives.
    renewing.spawn(heartbeat::run(Arc::clone(&node)));
    maintenance.spawn(Maintenance::new(Arc::clone(&node)).run());
    maintenance.spawn(run_periodically(Arc::clone(&node), SingletonTasks::new(Arc::clone(&node))));
    maintenance.spawn(run_periodically(Arc::clone(&node), Reconciler::new(Arc::clone(&node))));
    if let Some(alerts) = &node.alerts {
        maintenance.spawn(run_periodically(
            Arc::clone(&node),
            AlertWatch::new(Arc::clone(&node), Arc::clone(alerts)),
        ));
        maintenance.spawn(TrailWatch::new(Arc::clone(&node), Arc::clone(alerts)).run());
    }
    for served in node.queues.values() {
        runners.spawn(QueueRunner::new(Arc::clone(&node), Arc::clone(served)).run());
    }
    node.stop.reached(StopStage::Draining).await;
    maintenance.shutdown().await;
    drop(tokio::time::timeout(SETTLE_WITHIN, node.leave()).await);
    let mut has_drained = false;
    for (within, then) in [(stop_timeout, StopStage::GivingUp), (SETTLE_WITHIN, StopStage::Over)] {
        has_drained = tokio::select! {
            () = node.stop.reached(StopStage::Over) => return,
            drained = tokio::time::timeout(within, drained(&mut runners)) => drained.is_ok(),
        };
        if has_drained {
            break;
        }
        tracing::warn!(?within, "calls still in flight after the stop timeout");
        advance(stages, then);
    }
    for dispatcher in &node.dispatchers {
        drop(tokio::time::timeout(SETTLE_WITHIN, dispatcher.pacer.report()).await);
    }
    drop(tokio::time::timeout(SETTLE_WITHIN, node.flush()).await);
    if has_drained {
        renewing.shutdown().await;
        drop(tokio::time::timeout(SETTLE_WITHIN, node.end()).await);
    }
}

/// Makes a node ready to claim, without its background tasks.
#[cfg(feature = "testing")]
pub(super) async fn prepare(node: &WorkerNode) {
    sync_clock(node).await;
    announce(node).await;
}

/// Waits for the store's clock, from which all moments are counted.
async fn sync_clock(node: &WorkerNode) {
    loop {
        let query = node.clock.start_query();
        if let Some(now) = ok_or_log("failed to reach the store", node.store.now().await)
            && node.clock.record_reading(query, now)
        {
            return;
        }
        tokio::time::sleep(START_RETRY_DELAY).await;
    }
}

/// Checks that every queue keeps the kind of key that it always had.
///
/// If one does not, nothing is served: that is a configuration error, and the operator who starts the worker must notice it.
// Spec: D7.
async fn check_key_kinds(node: &WorkerNode) -> bool {
    let mut all = true;
    for served in node.queues.values() {
        let wanted = served.settings.outbound_key;
        let stands = loop {
            let conflict = wanted.conflicting_kind(&node.store, &served.name).await;
            match ok_or_log("failed to read a queue's kind of key", conflict) {
                Some(stands) => break stands,
                None => tokio::time::sleep(START_RETRY_DELAY).await,
            }
        };
        if let Some(stands) = stands {
            let (queue, wanted) = (served.name.as_str(), wanted.as_str());
            tracing::error!(
                queue,
                wanted,
                stands,
                "worker serves nothing: the queue's messages were sent under another kind of key, and an \
                    attempt under a new kind could take effect twice; keep the kind, or enqueue new messages in \
                    another queue"
            );
            all = false;
        }
    }
    all
}

/// Announces the node and its queues' facts before it claims anything.
async fn announce(node: &WorkerNode) {
    loop {
        if node.join().await && ok_or_log(NOT_PUBLISHED, node.publish().await).is_some() {
            return;
        }
        tokio::time::sleep(START_RETRY_DELAY).await;
    }
}

async fn drained(runners: &mut JoinSet<()>) {
    while let Some(ended) = runners.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "queue runner failed");
        }
    }
}
