//! Runs a queue: claims messages and starts an attempt in each free slot.
//!
//! Messages beyond the free slots are held. Those of a prompt handler are started together, in a lane.
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
use tokio::sync::OwnedSemaphorePermit;

use super::attempt::Attempt;
use super::attempt_tasks::AttemptTasks;
use super::claim::{self, LeasedMessage};
use super::in_place::SettledMessage;
use super::lane::Lane;
use super::metrics;
use super::node::{ServedQueue, WorkerNode};
use super::stop::StopStage;

/// The first wait after the store could not be reached.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// The longest wait between two attempts to reach it.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The first wait after a wake-up without work, and the longest of many.
const EMPTY_WAKE_DELAY: Duration = Duration::from_millis(1);
const MAX_EMPTY_WAKE_DELAY: Duration = Duration::from_millis(20);
/// The most messages of one lane: as many as one claim has at most.
const MAX_LANE: usize = ichido_store::message::limits::MAX_CLAIM as usize;
/// The shortest wait for a slot before claiming.
///
/// A fast pace has many slots, and polling for each is wasteful.
const MIN_CLOSED_WAIT: Duration = Duration::from_millis(10);

pub(super) struct QueueRunner {
    node: Arc<WorkerNode>,
    served: Arc<ServedQueue>,
    /// Claimed but not started, in order.
    leased: VecDeque<LeasedMessage>,
    attempts: AttemptTasks,
}

impl QueueRunner {
    pub(super) fn new(node: Arc<WorkerNode>, served: Arc<ServedQueue>) -> Self {
        Self { node, served, leased: VecDeque::new(), attempts: AttemptTasks::new() }
    }

    /// Runs until the worker stops, and then until every started attempt has ended.
    pub(super) async fn run(mut self) {
        let node = Arc::clone(&self.node);
        // Learn what other nodes know of the destination before the first claim.
        self.served.dispatcher.pacer.refresh(Duration::ZERO).await;
        // Fetch the next message before there is a slot for it, so claiming continues during calls.
        while let Some(leased) = self.next().await {
            let slot = tokio::select! {
                biased;
                () = node.stop.reached(StopStage::Draining) => None,
                slot = self.served.slots.acquire() => slot,
            };
            let Some(slot) = slot else {
                self.leased.push_front(leased);
                break;
            };
            self.start(leased, slot);
            self.attempts.reap();
        }
        self.give_back().await;
        self.attempts.ended().await;
    }

    /// Starts a message in its slot, together with those behind it if their handler is prompt.
    fn start(&mut self, leased: LeasedMessage, slot: OwnedSemaphorePermit) {
        if !self.leased.is_empty()
            && self.served.may_share_task(self.node.clock.elapsed())
            && let Some((more, mut slots)) = self.served.slots.take_free(self.leased.len().min(MAX_LANE - 1))
        {
            slots.merge(slot);
            let messages = std::iter::once(leased).chain(self.leased.drain(..more)).collect();
            return Lane::start(&self.node, &self.served, &self.attempts, messages, slots);
        }
        let attempt = Attempt { node: Arc::clone(&self.node), served: Arc::clone(&self.served), leased };
        self.attempts.spawn(async move {
            attempt.run().await;
            drop(slot);
        });
    }

    /// Returns the next message; `None` if the worker stops.
    async fn next(&mut self) -> Option<LeasedMessage> {
        let mut retry_delay = RETRY_DELAY;
        let mut empty_wake_delay = None;
        while !self.node.stop.has(StopStage::Draining) {
            if let Some(leased) = self.leased.pop_front() {
                return Some(leased);
            }
            // If we died, a message claimed before its slot would be charged with it. Spec: E2.
            if let Some(until) = self.served.dispatcher.pacer.closed_until() {
                let wait = until.since(self.node.clock.now()).max(MIN_CLOSED_WAIT);
                self.wait(tokio::time::sleep(wait.min(self.node.idle_sleep))).await;
                self.served.dispatcher.pacer.refresh(self.node.clock.elapsed()).await;
                continue;
            }
            match self.claim().await {
                Ok(0) => {
                    // Other nodes were faster, or the queue is paused while messages arrive: do not query for each of them.
                    if let Some(empty_wake_delay) = empty_wake_delay {
                        self.wait(tokio::time::sleep(empty_wake_delay)).await;
                    }
                    let wait = self.node.store.queues().wait(&self.served.name, self.node.idle_sleep);
                    let is_woken = self.wait(wait).await == Some(true);
                    empty_wake_delay = is_woken.then(|| {
                        empty_wake_delay
                            .map_or(EMPTY_WAKE_DELAY, |delay| (delay * 2).min(MAX_EMPTY_WAKE_DELAY))
                    });
                }
                Ok(_) => (retry_delay, empty_wake_delay) = (RETRY_DELAY, None),
                Err(error) => {
                    let queue = self.served.name.as_str();
                    tracing::warn!(error = error.with_causes(), queue, "failed to claim messages; retrying");
                    self.wait(tokio::time::sleep(retry_delay)).await;
                    retry_delay = (retry_delay * 2).min(MAX_RETRY_DELAY);
                }
            }
        }
        None
    }

    /// Claims the next message without waiting; `None` if nothing is due or the destination is paused.
    #[cfg(feature = "testing")]
    pub(super) async fn claim_next(
        &mut self,
    ) -> Result<Option<LeasedMessage>, ichido_store::error::StoreError> {
        if self.served.dispatcher.pacer.closed_until().is_none() {
            self.claim().await?;
        }
        Ok(self.leased.pop_front())
    }

    /// Claims a batch. Returns how many messages are held.
    ///
    /// Reads the pace afterwards, so a message enqueued after a destination requested a pause is not sent into it.
    async fn claim(&mut self) -> Result<usize, ichido_store::error::StoreError> {
        let (node, served) = (&self.node, &self.served);
        if !node.is_alive().await {
            return Ok(0);
        }
        let pacer = &served.dispatcher.pacer;
        let count = pacer.claim_size(served.batch_size());
        let terms = served.claim_terms(node.id);
        let query = node.clock.start_query();
        let suspect_permit = Arc::clone(&node.suspect).try_acquire_owned().ok();
        // Never cancelled half way, or a claim might exist that nobody knows of.
        let works = match suspect_permit {
            Some(_) => node.store.claims().claim(&served.name, count, terms).await?,
            None => node.store.claims().claim_unsuspected(&served.name, count, terms).await?,
        };
        metrics::dequeued(served.name.as_str(), works.len());
        // Of a retry, the time when it was due is not stored.
        let waited = works.iter().filter(|work| work.history.attempts <= 1);
        let waited = waited.map(|work| work.claimed_at.since(work.waits_since()));
        node.store.counters().claimed(served.name.as_str(), waited);
        if let Some(work) = works.first() {
            node.clock.record_reading(query, work.claimed_at);
            pacer.refresh(node.clock.elapsed()).await;
        }
        let mut leased = claim::hold_messages(&node.claims, works, terms.lease, query.at);
        if let [suspect] = &mut leased[..]
            && suspect.work.history.suspect
        {
            suspect.suspect = suspect_permit;
        }
        self.leased.extend(leased);
        Ok(self.leased.len())
    }

    /// Awaits a future; `None` if the worker stops first.
    async fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            output = future => Some(output),
            () = self.node.stop.reached(StopStage::Draining) => None,
        }
    }

    /// Gives back unstarted messages, without counting an attempt.
    // Spec: E1.
    async fn give_back(&mut self) {
        let unstarted = std::mem::take(&mut self.leased);
        let given_back = unstarted.into_iter().map(|leased| {
            let settlement = Settlement::new(&leased.work, leased.give_back_event(), Note::default());
            SettledMessage { leased, settlement }
        });
        self.node.settle_all(&self.served, given_back.collect()).await;
    }
}

impl Drop for QueueRunner {
    fn drop(&mut self) {
        self.attempts.abort();
    }
}
