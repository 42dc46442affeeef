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
use super::claim::{self, Held};
use super::meter;
use super::node::{Node, Served};
use super::stop::Stage;

/// The first wait after the store could not be asked.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The longest wait between two tries to ask it.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(5);
/// The first wait after a wake-up led to nothing, and the longest after many of them in a row.
const VAIN_AFTER: Duration = Duration::from_millis(1);
const VAIN_AFTER_MAX: Duration = Duration::from_millis(20);
/// The shortest wait for a slot before claiming: a fast pace has many slots in it, so that not each of them is looked for.
const CLOSED_WAIT_MIN: Duration = Duration::from_millis(10);

pub(super) struct Lane {
    node: Arc<Node>,
    served: Arc<Served>,
    slots: Arc<Semaphore>,
    /// Claimed and not begun, in order.
    held: VecDeque<Held>,
    under_way: JoinSet<()>,
}

impl Lane {
    pub(super) fn new(node: Arc<Node>, served: Arc<Served>) -> Self {
        let count = usize::try_from(served.settings.parallelism.get()).unwrap_or(usize::MAX);
        let slots = Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { node, served, slots, held: VecDeque::new(), under_way: JoinSet::new() }
    }

    /// Works until the worker stops, and then until all that was begun has ended.
    pub(super) async fn run(mut self) {
        let node = Arc::clone(&self.node);
        // What other nodes know of the destination is known before the first claim.
        self.served.aim.pacer.refresh(Duration::ZERO).await;
        // The next message is fetched before there is a slot for it, so that claiming goes on beside the calls.
        while let Some(held) = self.next().await {
            let slot = tokio::select! {
                biased;
                () = node.stop.reached(Stage::Draining) => None,
                // Nobody closes the slots.
                slot = Arc::clone(&self.slots).acquire_owned() => slot.ok(),
            };
            let Some(slot) = slot else {
                self.held.push_front(held);
                break;
            };
            let attempt = Attempt { node: Arc::clone(&node), served: Arc::clone(&self.served), held };
            self.under_way.spawn(async move {
                attempt.run().await;
                drop(slot);
            });
            while let Some(ended) = self.under_way.try_join_next() {
                note_fault(ended);
            }
        }
        self.give_back().await;
        while let Some(ended) = self.under_way.join_next().await {
            note_fault(ended);
        }
    }

    /// The next message; `None` when the worker stops.
    async fn next(&mut self) -> Option<Held> {
        let mut again_after = AGAIN_AFTER;
        let mut vain = None;
        while !self.node.stop.has(Stage::Draining) {
            if let Some(held) = self.held.pop_front() {
                return Some(held);
            }
            // A message that is claimed before its slot would be in our hands should we die (SPEC E2).
            if let Some(until) = self.served.aim.pacer.closed_until() {
                let wait = until.since(self.node.clock.now()).max(CLOSED_WAIT_MIN);
                self.wait(tokio::time::sleep(wait.min(self.node.idle_sleep))).await;
                self.served.aim.pacer.refresh(self.node.clock.own()).await;
                continue;
            }
            match self.claim().await {
                Ok(0) => {
                    // Others were faster, or the queue is paused while messages come in: then not each of them is worth a question.
                    if let Some(vain) = vain {
                        self.wait(tokio::time::sleep(vain)).await;
                    }
                    let wait = self.node.store.queues().wait(&self.served.name, self.node.idle_sleep);
                    let is_woken = self.wait(wait).await == Some(true);
                    vain = is_woken.then(|| vain.map_or(VAIN_AFTER, |vain| (vain * 2).min(VAIN_AFTER_MAX)));
                }
                Ok(_) => (again_after, vain) = (AGAIN_AFTER, None),
                Err(error) => {
                    let queue = self.served.name.as_str();
                    tracing::warn!(
                        error = error.in_full(),
                        queue,
                        "messages could not be claimed; trying again"
                    );
                    self.wait(tokio::time::sleep(again_after)).await;
                    again_after = (again_after * 2).min(AGAIN_AFTER_MAX);
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
        let pacer = &served.aim.pacer;
        let count = pacer.room(served.settings.batch_size);
        let terms = served.claim_terms(node.id);
        let asked = node.clock.ask();
        let alone = Arc::clone(&node.suspect).try_acquire_owned().ok();
        // Never given up half way, or a claim might stand that nobody knows of.
        let works = match alone {
            Some(_) => node.store.claims().take(&served.name, count, terms).await?,
            None => node.store.claims().take_unsuspected(&served.name, count, terms).await?,
        };
        meter::dequeued(served.name.as_str(), works.len());
        if let Some(work) = works.first() {
            node.clock.hear(asked, work.claimed_at);
            pacer.refresh(node.clock.own()).await;
        }
        let mut held = claim::keep(&node.claims, works, terms.lease, asked.at);
        if let [suspect] = &mut held[..]
            && suspect.work.history.suspect
        {
            suspect.suspect = alone;
        }
        self.held.extend(held);
        Ok(self.held.len())
    }

    /// What something came to; `None` when the worker stops before.
    async fn wait<T>(&self, something: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            came = something => Some(came),
            () = self.node.stop.reached(Stage::Draining) => None,
        }
    }

    /// Gives back what was not begun, with its try (SPEC E1).
    async fn give_back(&mut self) {
        let held = std::mem::take(&mut self.held);
        let mut giving = JoinSet::new();
        for held in held {
            let (node, served) = (Arc::clone(&self.node), Arc::clone(&self.served));
            giving.spawn(async move {
                let settlement = Settlement::of(&held.work, held.back(), Note::default());
                node.settle(&served, &held, settlement).await;
            });
        }
        while let Some(ended) = giving.join_next().await {
            note_fault(ended);
        }
    }
}

/// An attempt does not panic; if one does, its lease lapses and the rescue decides.
fn note_fault(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an attempt ended without a settle");
    }
}
