//! Runs what is due in one queue, one message after another and without background tasks: for tests.
//!
//! Guarantee: the messages of a drain are claimed, run and settled as by a started worker, in a fixed order. A worker that
//! crashes leaves its message to the next one, which rescues it.
// Spec: H7.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::lifecycle::StateName;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
use uuid::Uuid;

use super::attempt::Attempt;
use super::builder::Worker;
use super::config_error::WorkerConfigErrors;
use super::node::WorkerNode;
use super::queue_runner::QueueRunner;
use super::running;
use crate::destination::FaultLayer;

/// The most attempts of one drain.
const MAX_ATTEMPTS: usize = 10_000;

/// What a drain did: how its attempts ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Attempts after which the message was sent.
    pub sent: usize,
    /// Attempts after which it waits for a retry: advance the clock, and drain again.
    pub failed: usize,
    /// Attempts after which it is a dead letter.
    pub dead: usize,
    /// Attempts of unknown effect, after which it waits for a person.
    pub parked: usize,
    /// Attempts that were snoozed, met a paused destination or found no handler of their type: advance the clock, and drain again.
    pub postponed: usize,
    /// How often the worker crashed, by an injected fault. The other counts say what became of the message.
    pub crashed: usize,
}

impl Drained {
    fn count(&mut self, state: StateName) {
        let counter = match state {
            StateName::Sent => &mut self.sent,
            StateName::Failed => &mut self.failed,
            StateName::Dead => &mut self.dead,
            StateName::Parked => &mut self.parked,
            StateName::Queued | StateName::Sending => &mut self.postponed,
            // It was cancelled in the meantime, and no attempt of ours ended it.
            StateName::Cancelled => return,
        };
        *counter += 1;
    }

    fn attempts(&self) -> usize {
        self.sent + self.failed + self.dead + self.parked + self.postponed
    }
}

/// Why a queue cannot be drained.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DrainError {
    /// The worker would not start.
    #[error("the worker does not start: {0}")]
    Worker(#[from] WorkerConfigErrors),
    /// The worker does not serve the queue.
    #[error(
        "the worker does not serve queue `{queue}`; register a handler for it, or drain one of {served:?}"
    )]
    NotServed { queue: String, served: Vec<String> },
    /// It does not end.
    #[error(
        "queue `{queue}` is still due after {MAX_ATTEMPTS} attempts; a handler enqueues, fails or snoozes without \
            a wait"
    )]
    Endless { queue: String },
    /// The store could not be reached, or refused a statement.
    #[error("the store failed: {}", .0.with_causes())]
    Store(#[from] StoreError),
}

/// Runs what is due in a queue, until nothing is. An injected crash ends the worker, and another one goes on.
pub(crate) async fn drain(worker: &Worker, queue: &str, faults: &FaultLayer) -> Result<Drained, DrainError> {
    let (mut drained, mut lost) = (Drained::default(), None);
    loop {
        let (node, _stop) = worker.clone().one_by_one(faults).node()?;
        let node = Arc::new(node);
        running::prepare(&node).await;
        node.declare_dead().await;
        node.rescue().await;
        if let Some(lost) = lost {
            count(&node, lost, &mut drained).await?;
        }
        lost = run_due(&node, queue, faults, &mut drained).await?;
        if lost.is_none() {
            for dispatcher in &node.dispatchers {
                dispatcher.pacer.report().await;
            }
            node.end().await;
            return Ok(drained);
        }
    }
}

/// Runs what is due. Returns the message with which the worker crashed, if it did.
async fn run_due(
    node: &Arc<WorkerNode>,
    queue: &str,
    faults: &FaultLayer,
    drained: &mut Drained,
) -> Result<Option<Uuid>, DrainError> {
    let served = QueueName::parse(queue).and_then(|name| node.queues.get(&name));
    let served = served.ok_or_else(|| not_served(node, queue))?;
    served.dispatcher.pacer.refresh(Duration::ZERO).await;
    let mut runner = QueueRunner::new(Arc::clone(node), Arc::clone(served));
    while drained.attempts() < MAX_ATTEMPTS {
        node.promote().await;
        let Some(leased) = runner.claim_next().await? else { return Ok(None) };
        let id = leased.work.id;
        let attempt = Attempt { node: Arc::clone(node), served: Arc::clone(served), leased };
        tokio::select! {
            () = attempt.run() => count(node, id, drained).await?,
            () = faults.crashed() => {
                drained.crashed += 1;
                return Ok(Some(id));
            }
        }
    }
    Err(DrainError::Endless { queue: queue.to_owned() })
}

/// Counts what became of a message.
async fn count(node: &WorkerNode, id: Uuid, drained: &mut Drained) -> Result<(), StoreError> {
    for (_, state, _) in node.store.messages().states(&[id]).await? {
        drained.count(state);
    }
    Ok(())
}

fn not_served(node: &WorkerNode, queue: &str) -> DrainError {
    let mut served: Vec<String> = node.queues.keys().map(|name| name.as_str().to_owned()).collect();
    served.sort();
    DrainError::NotServed { queue: queue.to_owned(), served }
}
