//! Admission: whether a queue accepts one more message, by its limits.
//!
//! Guarantee: queues without limits are never counted. However many requests arrive, the store is asked once a second for all
//! queues together. Messages that this server accepts between two polls count as waiting, so on its own it never exceeds
//! `max_waiting`. It learns about messages from other servers at its next poll.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::drain::{LimitReached, QueueAdmission, QueueLimits, QueueLoad, QueueSample, Window};
use ichido_core::lifecycle::StateName;
use ichido_core::sync::lock;
use ichido_store::Store;
use ichido_store::message::StateCount;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::api::ServedQueue;
use super::problem::{Code, Problem};
use crate::limits::COUNTS_INTERVAL;

/// The limiters of the queues that have limits.
pub(super) struct Admission {
    limiters: Arc<BTreeMap<String, QueueLimiter>>,
    /// `None` if no queue has limits.
    poller: Option<JoinHandle<()>>,
}

struct QueueLimiter {
    bounds: QueueLimits,
    occupancy: Mutex<Occupancy>,
}

/// What is known of a queue.
#[derive(Default)]
struct Occupancy {
    window: Window,
    /// How many messages this server admitted, and how many of them have a known outcome.
    admitted: u64,
    settled: u64,
    /// How many were settled when the last poll began: its counts include those.
    settled_at_poll: u64,
}

/// A permit for one message, until its outcome is known.
pub(super) struct AdmissionPermit<'a>(Option<&'a QueueLimiter>);

impl Admission {
    /// Returns an admission without limits, for commands that enqueue nothing.
    pub(super) fn none() -> Self {
        Self { limiters: Arc::default(), poller: None }
    }

    /// Polls once, and then every second.
    ///
    /// If the store does not respond now, it refuses messages anyway.
    pub(super) async fn start(store: Store, queues: &BTreeMap<String, ServedQueue>) -> Self {
        let limiters = queues.iter().filter_map(|(name, served)| {
            let bounds = served.intake.bounds;
            (bounds != QueueLimits::default())
                .then(|| (name.clone(), QueueLimiter { bounds, occupancy: Mutex::default() }))
        });
        let limiters: Arc<BTreeMap<String, QueueLimiter>> = Arc::new(limiters.collect());
        if limiters.is_empty() {
            return Self { limiters, poller: None };
        }
        let began = Instant::now();
        poll_counts(&store, &limiters, began).await;
        let poller = tokio::spawn({
            let limiters = Arc::clone(&limiters);
            async move {
                let mut every = interval(COUNTS_INTERVAL);
                every.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    every.tick().await;
                    poll_counts(&store, &limiters, began).await;
                }
            }
        });
        Self { limiters, poller: Some(poller) }
    }

    /// Admits one message to a queue, or returns when to retry.
    pub(super) fn admit(&self, queue: &str) -> Result<AdmissionPermit<'_>, Problem> {
        let Some(limiter) = self.limiters.get(queue) else { return Ok(AdmissionPermit(None)) };
        let mut occupancy = limiter.occupancy();
        match occupancy.load().judge(limiter.bounds) {
            QueueAdmission::Open => {
                occupancy.admitted += 1;
                Ok(AdmissionPermit(Some(limiter)))
            }
            QueueAdmission::Full { why, again_after } => {
                let detail = match why {
                    LimitReached::WaitingMax => "the queue has its maximum of waiting messages",
                    LimitReached::DrainWithin => {
                        "the queue would not deliver the message within its limit (drain_within)"
                    }
                };
                let wait = again_after.as_secs().max(1);
                let detail =
                    format!("{detail}; nothing was enqueued; send the same request again in {wait} s");
                Err(Problem::new(Code::QueueFull, detail).after(Duration::from_secs(wait)))
            }
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(poller) = &self.poller {
            poller.abort();
        }
    }
}

impl Drop for AdmissionPermit<'_> {
    fn drop(&mut self) {
        if let Some(limiter) = self.0 {
            limiter.occupancy().settled += 1;
        }
    }
}

impl QueueLimiter {
    fn occupancy(&self) -> MutexGuard<'_, Occupancy> {
        // It guards only numbers, which a panic cannot leave half changed.
        lock(&self.occupancy)
    }
}

impl Occupancy {
    fn load(&self) -> QueueLoad {
        let load = self.window.load();
        QueueLoad { waiting: load.waiting.saturating_add(self.admitted - self.settled_at_poll), ..load }
    }
}

/// Polls all queues once. A failed poll changes nothing: the last counts still apply.
async fn poll_counts(store: &Store, limiters: &BTreeMap<String, QueueLimiter>, began: Instant) {
    let settled: Vec<u64> = limiters.values().map(|limiter| limiter.occupancy().settled).collect();
    let counts = match timeout(COUNTS_INTERVAL, store.queues().counts()).await {
        Ok(Ok(counts)) => counts,
        Ok(Err(error)) => {
            tracing::debug!(%error, "failed to count queues");
            return;
        }
        Err(_) => return,
    };
    let at = began.elapsed();
    let counted = sums(&counts);
    for ((name, limiter), settled) in limiters.iter().zip(settled) {
        let (waiting, ended) = counted.get(name.as_str()).copied().unwrap_or_default();
        let mut occupancy = limiter.occupancy();
        occupancy.window.record(QueueSample { at, waiting, ended });
        occupancy.settled_at_poll = settled;
    }
}

/// Returns how many messages of each queue wait, and how many have ended.
fn sums(counts: &[StateCount]) -> HashMap<&str, (u64, u64)> {
    let mut sums: HashMap<&str, (u64, u64)> = HashMap::new();
    for StateCount { queue, state, count } in counts {
        let (waiting, ended) = sums.entry(queue).or_default();
        let sum = match state {
            StateName::Queued | StateName::Sending | StateName::Failed => waiting,
            // A parked message waits for a person, not for the queue.
            StateName::Parked | StateName::Sent | StateName::Dead | StateName::Cancelled => ended,
        };
        *sum = sum.saturating_add(u64::try_from(*count).unwrap_or(0));
    }
    sums
}
