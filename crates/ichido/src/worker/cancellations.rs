//! Requests to cancel messages in flight, as the last heartbeat listed them.
//!
//! Guarantee: a request is looked up before it reaches a handler or ends an attempt, so one that has ended meanwhile changes
//! nothing.
// Spec: D2, H5.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Mutex;

use ichido_core::clock::HEARTBEAT_EVERY;
use ichido_core::sync::lock;
use ichido_store::message::Cancellation;
use ichido_store::node::MAX_CANCELLATIONS;
use tokio::sync::watch;
use uuid::Uuid;

use super::maintenance::ok_or_log;
use super::node::WorkerNode;

/// The most pages of requests that are read after one heartbeat.
const MAX_PAGES: usize = 100;

/// The messages that somebody asked to cancel, on any node. Usually none.
#[derive(Debug, Default)]
pub(super) struct Cancellations {
    requested: watch::Sender<BTreeSet<Uuid>>,
    /// The last message for which [`WorkerNode::apply_cancellations`] looked: the next round goes on after it.
    applied: Mutex<Uuid>,
}

impl Cancellations {
    pub(super) fn contains(&self, message: Uuid) -> bool {
        self.requested.borrow().contains(&message)
    }

    /// Returns the next requests to look at, a page at a time and from the start again after the last.
    fn next_page(&self) -> Vec<Uuid> {
        let mut applied = lock(&self.applied);
        let after = (Bound::Excluded(*applied), Bound::Unbounded);
        let page: Vec<Uuid> =
            self.requested.borrow().range(after).take(MAX_CANCELLATIONS as usize).copied().collect();
        *applied = page.last().copied().filter(|_| is_full(&page)).unwrap_or_default();
        page
    }
}

fn is_full(page: &[Uuid]) -> bool {
    page.len() == MAX_CANCELLATIONS as usize
}

impl WorkerNode {
    /// Replaces the list, and wakes those who wait for a message on it. The heartbeat carried its first page.
    pub(super) async fn record_cancellations(&self, mut page: Vec<Uuid>) {
        let mut requested: BTreeSet<Uuid> = page.iter().copied().collect();
        for _ in 1..MAX_PAGES {
            let Some(last) = page.iter().max().copied().filter(|_| is_full(&page)) else { break };
            // Boxed because it is rare, and every heartbeat's future would carry its size.
            let next = Box::pin(self.store.messages().cancellations(last, MAX_CANCELLATIONS)).await;
            let Some(next) = ok_or_log("failed to list requests to cancel messages", next) else { break };
            requested.extend(&next);
            page = next;
        }
        self.cancellations.requested.send_if_modified(|known| std::mem::replace(known, requested) != *known);
    }

    /// Waits for a request to cancel this message.
    pub(super) async fn cancel_requested(&self, message: Uuid) {
        let mut requests = self.cancellations.requested.subscribe();
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
        let requested = self.cancellations.next_page();
        if requested.is_empty() {
            return;
        }
        let cancelled = self.store.messages().apply_cancellations(&requested).await;
        for message in ok_or_log("failed to cancel messages on request", cancelled).into_iter().flatten() {
            tracing::info!(message_id = %message, "message cancelled on request after its attempt");
        }
    }
}
