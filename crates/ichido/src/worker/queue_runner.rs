//! The lane of a queue: claims, holds what exceeds the free slots, and starts an attempt in each slot that is free.
//!
//! A wake-up that leads to no work delays the next claim: 1 ms, doubled up to 20 ms, until a claim finds work. Other nodes were faster, or
//! the queue is paused while messages arrive. Without the delay, a paused queue would cost as many statements as its enqueues.
//!
//! The pace is read after a claim, not in parallel: a reading could be older than the claimed messages, and a message that was enqueued
//! after a refusal would be sent into the pause. This costs one read per batch, and none while the queue is empty.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ichido_store::message::{Note, Settlement};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::attempt::Attempt;
use super::claim::{self, LeasedMessage};
use super::metrics;
use super::node::{ServedQueue, WorkerNode};
use super::stop::StopStage;

/// The first wait after the store could not be asked.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// The longest wait between two tries to ask it.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);
/// The first wait after a wake-up led to nothing, and the longest after many of them in a row.
const EMPTY_WAKE_DELAY: Duration = Duration::from_millis(1);
const EMPTY_WAKE_DELAY_MAX: Duration = Duration::from_millis(20);
/// The shortest wait for a slot before claiming: a fast pace has many slots in it, so that not each of them is looked for.
const CLOSED_WAIT_MIN: Duration = Duration::from_millis(10);

pub(super) struct QueueRunner {
    node: Arc<WorkerNode>,
    served: Arc<ServedQueue>,
    slots: Arc<Semaphore>,
    /// Claimed and not begun, in order.
    leased: VecDeque<LeasedMessage>,
    attempts: JoinSet<()>,
}

impl QueueRunner {
    pub(super) fn new(node: Arc<WorkerNode>, served: Arc<ServedQueue>) -> Self {
        let count = usize::try_from(served.settings.parallelism.get()).unwrap_or(usize::MAX);
        let slots = Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { node, served, slots, leased: VecDeque::new(), attempts: JoinSet::new() }
    }

    /// Works until the worker stops, and then until all that was begun has ended.
    pub(super) async fn run(mut self) {
        let node = Arc::clone(&self.node);
        // What other nodes know of the destination is known before the first claim.
        self.served.dispatcher.pacer.refresh(Duration::ZERO).await;
        // The next message is fetched before there is a slot for it, so that claiming goes on beside the calls.
        while let Some(leased) = self.next().await {
            let slot = tokio::select! {
                biased;
                () = node.stop.reached(StopStage::Draining) => None,
                // Nobody closes the slots.
                slot = Arc::clone(&self.slots).acquire_owned() => slot.ok(),
            };
            let Some(slot) = slot else {
                self.leased.push_front(leased);
                break;
            };
            let attempt = Attempt { node: Arc::clone(&node), served: Arc::clone(&self.served), leased };
            self.attempts.spawn(async move {
                attempt.run().await;
                drop(slot);
            });
            while let Some(ended) = self.attempts.try_join_next() {
                log_panic(ended);
            }
        }
        self.give_back().await;
        while let Some(ended) = self.attempts.join_next().await {
            log_panic(ended);
        }
    }

    /// The next message; `None` when the worker stops.
    async fn next(&mut self) -> Option<LeasedMessage> {
        let mut retry_delay = RETRY_DELAY;
        let mut empty_wake_delay = None;
        while !self.node.stop.has(StopStage::Draining) {
            if let Some(leased) = self.leased.pop_front() {
                return Some(leased);
            }
            // A message that is claimed before its slot would be in our hands should we die (SPEC E2).
            if let Some(until) = self.served.dispatcher.pacer.closed_until() {
                let wait = until.since(self.node.clock.now()).max(CLOSED_WAIT_MIN);
                self.wait(tokio::time::sleep(wait.min(self.node.idle_sleep))).await;
                self.served.dispatcher.pacer.refresh(self.node.clock.own()).await;
                continue;
            }
            match self.claim().await {
                Ok(0) => {
                    // Others were faster, or the queue is paused while messages come in: then not each of them is worth a question.
                    if let Some(empty_wake_delay) = empty_wake_delay {
                        self.wait(tokio::time::sleep(empty_wake_delay)).await;
                    }
                    let wait = self.node.store.queues().wait(&self.served.name, self.node.idle_sleep);
                    let is_woken = self.wait(wait).await == Some(true);
                    empty_wake_delay = is_woken.then(|| {
                        empty_wake_delay
                            .map_or(EMPTY_WAKE_DELAY, |delay| (delay * 2).min(EMPTY_WAKE_DELAY_MAX))
                    });
                }
                Ok(_) => (retry_delay, empty_wake_delay) = (RETRY_DELAY, None),
                Err(error) => {
                    let queue = self.served.name.as_str();
                    tracing::warn!(
                        error = error.in_full(),
                        queue,
                        "messages could not be claimed; trying again"
                    );
                    self.wait(tokio::time::sleep(retry_delay)).await;
                    retry_delay = (retry_delay * 2).min(RETRY_DELAY_MAX);
                }
            }
        }
        None
    }

    /// Takes a batch; answers how many came.
    ///
    /// The pace is read after it, so that what was put in after a destination asked for a pause is not sent into it.
    async fn claim(&mut self) -> Result<usize, ichido_store::error::StoreError> {
        let (node, served) = (&self.node, &self.served);
        let pacer = &served.dispatcher.pacer;
        let count = pacer.claim_size(served.settings.batch_size);
        let terms = served.claim_terms(node.id);
        let asked = node.clock.ask();
        let suspect_permit = Arc::clone(&node.suspect).try_acquire_owned().ok();
        // Never given up half way, or a claim might stand that nobody knows of.
        let works = match suspect_permit {
            Some(_) => node.store.claims().take(&served.name, count, terms).await?,
            None => node.store.claims().take_unsuspected(&served.name, count, terms).await?,
        };
        metrics::dequeued(served.name.as_str(), works.len());
        if let Some(work) = works.first() {
            node.clock.hear(asked, work.claimed_at);
            pacer.refresh(node.clock.own()).await;
        }
        let mut leased = claim::hold_messages(&node.claims, works, terms.lease, asked.at);
        if let [suspect] = &mut leased[..]
            && suspect.work.history.suspect
        {
            suspect.suspect = suspect_permit;
        }
        self.leased.extend(leased);
        Ok(self.leased.len())
    }

    /// What something came to; `None` when the worker stops before.
    async fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            output = future => Some(output),
            () = self.node.stop.reached(StopStage::Draining) => None,
        }
    }

    /// Gives back what was not begun, with its try (SPEC E1).
    async fn give_back(&mut self) {
        let unstarted = std::mem::take(&mut self.leased);
        let mut giving = JoinSet::new();
        for leased in unstarted {
            let (node, served) = (Arc::clone(&self.node), Arc::clone(&self.served));
            giving.spawn(async move {
                let settlement = Settlement::of(&leased.work, leased.give_back_event(), Note::default());
                node.settle(&served, &leased, settlement).await;
            });
        }
        while let Some(ended) = giving.join_next().await {
            log_panic(ended);
        }
    }
}

/// An attempt does not panic; if one does, its lease lapses and the rescue decides.
fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an attempt ended without a settle");
    }
}
