//! A worker at work, and how it stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

use super::alert::{TrailWatch, Watch};
use super::care::Care;
use super::lane::Lane;
use super::node::Node;
use super::reconcile::Reconciler;
use super::stop::{Stage, go_on};
use super::upkeep::{NOT_PUBLISHED, Upkeep, make_rounds, said};
use crate::lease;

/// How long what was given up on may take to be settled.
const SETTLE_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait before the store is asked again when a worker starts.
const START_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// A worker at work. Dropping it ends it at once, as a crash would: nothing is lost, and leases lapse.
#[derive(Debug)]
#[must_use = "dropping it ends the worker"]
pub struct Running {
    id: Uuid,
    stopper: Stopper,
    under_way: Arc<AtomicUsize>,
    phase: watch::Receiver<Phase>,
    task: AbortHandle,
}

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Starts,
    Works,
    Over,
}

/// Stops a worker. Cheap to clone, for whoever hears signals.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<watch::Sender<Stage>>);

impl Stopper {
    /// The first time: nothing more is claimed, what was not begun is given back with its try, and calls under way may end
    /// within the worker's bound; those that do not are given up on, and their effect is unknown. The second time it ends at once,
    /// and what was under way is left to the rescue.
    pub fn stop(&self) {
        let is_stopping = Stage::Running < *self.0.borrow();
        go_on(&self.0, if is_stopping { Stage::Over } else { Stage::Draining });
    }
}

impl Running {
    pub(super) fn start(node: Arc<Node>, sender: watch::Sender<Stage>, stop_within: Duration) -> Self {
        let (id, under_way) = (node.id, Arc::clone(&node.under_way));
        let stopper = Stopper(Arc::new(sender));
        let (tell, phase) = watch::channel(Phase::Starts);
        let stages = Arc::clone(&stopper.0);
        let task = tokio::spawn(async move {
            run(node, &stages, &tell, stop_within).await;
            tell.send_replace(Phase::Over);
        });
        Self { id, stopper, under_way, phase, task: task.abort_handle() }
    }

    /// The id under which the worker stands among the nodes and in the audit; new for each start.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// How many calls are under way.
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Stops it; see [`Stopper::stop`].
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// What stops it, for whoever hears signals.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until it works, with the facts of its queues published, or has ended.
    pub async fn started(&self) {
        self.reached(Phase::Works).await;
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        self.reached(Phase::Over).await;
    }

    async fn reached(&self, phase: Phase) {
        // Whoever would say so is gone: it has ended.
        drop(self.phase.clone().wait_for(|now| phase <= *now).await);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Works until it is stopped, and then until what is under way has ended, in time. Whatever is left then ends with the sets.
async fn run(
    node: Arc<Node>,
    stages: &watch::Sender<Stage>,
    phase: &watch::Sender<Phase>,
    stop_within: Duration,
) {
    tokio::select! {
        () = first_word(&node) => (),
        () = node.stop.reached(Stage::Draining) => return,
    }
    let keys_stand = tokio::select! {
        stand = keys_stand(&node) => stand,
        () = node.stop.reached(Stage::Draining) => return,
    };
    if !keys_stand {
        return;
    }
    tokio::select! {
        () = announce(&node) => (),
        () = node.stop.reached(Stage::Draining) => return,
    }
    phase.send_replace(Phase::Works);
    let (mut renewing, mut upkeep, mut lanes) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
    renewing.spawn(lease::run(Arc::downgrade(&node.claims)));
    upkeep.spawn(Upkeep::new(Arc::clone(&node)).run());
    upkeep.spawn(make_rounds(Arc::clone(&node), Care::new(Arc::clone(&node))));
    upkeep.spawn(make_rounds(Arc::clone(&node), Reconciler::new(Arc::clone(&node))));
    if let Some(alerts) = &node.alerts {
        upkeep.spawn(make_rounds(Arc::clone(&node), Watch::new(Arc::clone(&node), Arc::clone(alerts))));
        upkeep.spawn(TrailWatch::new(Arc::clone(&node), Arc::clone(alerts)).run());
    }
    for served in node.queues.values() {
        lanes.spawn(Lane::new(Arc::clone(&node), Arc::clone(served)).run());
    }
    node.stop.reached(Stage::Draining).await;
    upkeep.shutdown().await;
    drop(tokio::time::timeout(SETTLE_WITHIN, node.leave()).await);
    for (within, then) in [(stop_within, Stage::GivingUp), (SETTLE_WITHIN, Stage::Over)] {
        let drained = tokio::select! {
            () = node.stop.reached(Stage::Over) => return,
            drained = tokio::time::timeout(within, drained(&mut lanes)) => drained.is_ok(),
        };
        if drained {
            break;
        }
        tracing::warn!(?within, "not all calls ended in time after a stop");
        go_on(stages, then);
    }
    for aim in &node.targets {
        drop(tokio::time::timeout(SETTLE_WITHIN, aim.pacer.report()).await);
    }
    drop(tokio::time::timeout(SETTLE_WITHIN, node.flush()).await);
}

/// Moments are counted from the store's word, so nothing begins without it.
async fn first_word(node: &Node) {
    loop {
        let asked = node.clock.ask();
        if let Some(now) = said("the store could not be reached", node.store.now().await)
            && node.clock.hear(asked, now)
        {
            return;
        }
        tokio::time::sleep(START_AGAIN_AFTER).await;
    }
}

/// Whether every queue is to be served by the kind of key that it always was (SPEC D7). Where one is not, nothing is: that is a
/// fault of the configuration, and who starts the worker must hear of it.
async fn keys_stand(node: &Node) -> bool {
    let mut all = true;
    for served in node.queues.values() {
        let wanted = served.settings.key;
        let stands = loop {
            let asked = wanted.contradicted_by(&node.store, &served.name).await;
            match said("a queue's kind of key could not be asked for", asked) {
                Some(stands) => break stands,
                None => tokio::time::sleep(START_AGAIN_AFTER).await,
            }
        };
        if let Some(stands) = stands {
            let (queue, wanted) = (served.name.as_str(), wanted.as_str());
            tracing::error!(
                queue,
                wanted,
                stands,
                "the worker serves nothing: a queue's messages have gone out under another kind of key, and a try under a new one could take effect twice; keep the kind, or put new messages into a queue of another name"
            );
            all = false;
        }
    }
    all
}

/// Says that the node lives, and what it knows of its queues, before it takes anything from them.
async fn announce(node: &Node) {
    loop {
        node.beat().await;
        if said(NOT_PUBLISHED, node.publish().await).is_some() {
            return;
        }
        tokio::time::sleep(START_AGAIN_AFTER).await;
    }
}

async fn drained(lanes: &mut JoinSet<()>) {
    while let Some(ended) = lanes.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a queue's lane broke");
        }
    }
}
