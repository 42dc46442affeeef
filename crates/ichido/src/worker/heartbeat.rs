//! The heartbeat of a worker. It also brings the requests to cancel messages in flight.
//!
//! Guarantee: once its heartbeat is too old by the local clock, counted from before it was sent, the worker makes no call and
//! claims nothing until the store has taken another one. If others declared the worker dead in the meantime, all its claims are
//! lost: their messages may be with somebody else. So while the store is unreachable, calls stop before others may take over.
// Spec: D12.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::clock::{HEARTBEAT_DEADLINE, HEARTBEAT_EVERY};
use ichido_core::sync::lock;
use ichido_store::error::StoreError;
use ichido_store::node::{Heartbeat, NodeLife, NodeLock};

use super::maintenance::ok_or_log;
use super::node::WorkerNode;

/// A call starts only if the heartbeat holds for this much longer: connecting takes time as well.
const MIN_TIME_LEFT: Duration = HEARTBEAT_EVERY;
/// How long one heartbeat may take: a connection that died silently must not cost more than one of three.
const MAX_WAIT: Duration = Duration::from_secs(HEARTBEAT_DEADLINE.as_secs() / 3);
/// The wait after a heartbeat could not be written, and the longest sleep between checks of the local clock.
const RETRY_DELAY: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(super) struct Pulse {
    state: Mutex<PulseState>,
    /// One heartbeat at a time, however many attempts are in doubt.
    sending: tokio::sync::Mutex<()>,
    /// The lock that shows others at once when this process is gone, where there are such locks.
    lock: Mutex<Option<NodeLock>>,
}

/// Moments of the local clock.
#[derive(Default)]
struct PulseState {
    /// The life that the last heartbeat prolonged.
    life: Option<NodeLife>,
    /// When the last heartbeat is too old.
    until: Duration,
    /// When to send the next one.
    due: Duration,
}

impl Pulse {
    /// Returns whether the last heartbeat holds at this local time.
    fn holds_at(&self, moment: Duration) -> bool {
        moment < lock(&self.state).until
    }
}

impl WorkerNode {
    /// Returns whether nobody may consider this node dead, by the local clock alone.
    pub(super) fn is_alive_now(&self) -> bool {
        self.pulse.holds_at(self.clock.elapsed())
    }

    /// Returns whether a call may start at this local time, without another heartbeat.
    pub(super) fn is_alive_at(&self, moment: Duration) -> bool {
        self.pulse.holds_at(moment + MIN_TIME_LEFT)
    }

    /// Returns whether nobody may consider this node dead for a while; in doubt, it sends a heartbeat first.
    ///
    /// Call this right before an effect, because the process may have been suspended.
    pub(super) async fn is_alive(&self) -> bool {
        if self.is_alive_at(self.clock.elapsed()) {
            return true;
        }
        // Boxed because it is rare, and every caller's future would carry its size.
        Box::pin(self.beat(|node| !node.is_alive_at(node.clock.elapsed()))).await
    }

    /// Sends a heartbeat if it is still needed when it is our turn. Returns whether the last one holds.
    async fn beat(&self, is_needed: impl Fn(&Self) -> bool) -> bool {
        let _turn = self.pulse.sending.lock().await;
        if is_needed(self) {
            let sent_at = self.clock.elapsed();
            let sent =
                tokio::time::timeout(MAX_WAIT, self.store.nodes().heartbeat(self.id, &self.name)).await;
            match ok_or_log("failed to write the heartbeat", sent.unwrap_or(Err(StoreError::Busy))) {
                Some(Heartbeat { life, cancellations, .. }) => {
                    self.record_beat(life, sent_at);
                    self.record_cancellations(cancellations).await;
                }
                None => lock(&self.pulse.state).due = self.clock.elapsed() + RETRY_DELAY,
            }
        }
        self.is_alive_now()
    }

    fn record_beat(&self, life: NodeLife, sent_at: Duration) {
        let known = lock(&self.pulse.state).life.replace(life);
        if known.is_some_and(|known| known != life) {
            // Before the heartbeat holds, so no call starts under them.
            let claims = self.claims.lose_all();
            tracing::warn!(claims, "this node was declared dead; its claims are lost");
        }
        let mut state = lock(&self.pulse.state);
        (state.until, state.due) = (sent_at + HEARTBEAT_DEADLINE, sent_at + HEARTBEAT_EVERY);
    }

    /// Sends the first heartbeat, and locks a file where the store has such locks. Returns whether it could.
    pub(super) async fn join(&self) -> bool {
        if !self.beat(|_| true).await {
            return false;
        }
        if lock(&self.pulse.lock).is_some() {
            return true;
        }
        let taken = ok_or_log("failed to lock the node's file", self.store.nodes().lock(self.id).await);
        let Some(taken) = taken else { return false };
        *lock(&self.pulse.lock) = taken;
        true
    }

    /// Notes that this node has stopped and holds nothing any more.
    pub(super) async fn end(&self) {
        let held = lock(&self.pulse.lock).take();
        ok_or_log("failed to note that this node has stopped", self.store.nodes().leave(self.id, held).await);
    }
}

/// Sends heartbeats until it is aborted. A task of its own: they wait behind no other maintenance.
pub(super) async fn run(node: Arc<WorkerNode>) {
    let is_due = |node: &WorkerNode| lock(&node.pulse.state).due <= node.clock.elapsed();
    loop {
        if is_due(&node) {
            node.beat(is_due).await;
        }
        tokio::time::sleep(node.idle_sleep.min(RETRY_DELAY)).await;
    }
}
