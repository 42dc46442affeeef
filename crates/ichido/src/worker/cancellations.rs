//! Requests to cancel messages in flight, as the last heartbeat listed them.
//!
//! Guarantee: a request is looked up before it reaches a handler or ends an attempt, so one that has ended meanwhile changes
//! nothing.
// Spec: D2, H5.

use std::collections::HashSet;

use ichido_core::clock::HEARTBEAT_EVERY;
use ichido_store::message::Cancellation;
use tokio::sync::watch;
use uuid::Uuid;

use super::maintenance::ok_or_log;
use super::node::WorkerNode;

/// The messages that somebody asked to cancel, on any node. Usually none.
#[derive(Debug, Default)]
pub(super) struct Cancellations(watch::Sender<HashSet<Uuid>>);

impl Cancellations {
    /// Replaces the list, and wakes those who wait for a message on it.
    pub(super) fn record(&self, requested: Vec<Uuid>) {
        let requested = HashSet::from_iter(requested);
        self.0.send_if_modified(|known| std::mem::replace(known, requested) != *known);
    }

    pub(super) fn contains(&self, message: Uuid) -> bool {
        self.0.borrow().contains(&message)
    }
}

impl WorkerNode {
    /// Waits for a request to cancel this message.
    pub(super) async fn cancel_requested(&self, message: Uuid) {
        let mut requests = self.cancellations.0.subscribe();
        loop {
            // The sender is ours, so it cannot be dropped.
            drop(requests.wait_for(|requested| requested.contains(&message)).await);
            if self.cancellation(message).await.is_some() {
                return;
            }
            // The next heartbeat brings a list without it.
            tokio::time::sleep(HEARTBEAT_EVERY).await;
        }
    }

    /// Returns the request to cancel a message, if there is one. Without any, this asks nobody.
    pub(super) async fn cancellation(&self, message: Uuid) -> Option<Cancellation> {
        if !self.cancellations.contains(message) {
            return None;
        }
        // Boxed because it is rare, and every caller's future would carry its size.
        let found = Box::pin(self.store.messages().cancellation(message)).await;
        ok_or_log("failed to read a request to cancel a message", found).flatten()
    }

    /// Ends requests whose messages are not in flight: an attempt may have ended before its worker saw the request.
    pub(super) async fn apply_cancellations(&self) {
        let requested: Vec<Uuid> = self.cancellations.0.borrow().iter().copied().collect();
        if requested.is_empty() {
            return;
        }
        let cancelled = self.store.messages().apply_cancellations(&requested).await;
        for message in ok_or_log("failed to cancel messages on request", cancelled).into_iter().flatten() {
            tracing::info!(message_id = %message, "message cancelled on request after its attempt");
        }
    }
}
