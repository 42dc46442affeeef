//! Requests that wait for the outcome of their message.
//!
//! Guarantee: however many wait, one task polls for all of them, with one statement per thousand. Waiting requests hold no
//! database connection, and leave nothing behind when they hang up.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::lifecycle::StateName;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::limits::MAX_PAGE;
use ichido_store::waiters::Waiters;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::limits::{WAIT_POLL_INTERVAL, WAIT_POLL_RETRY_INTERVAL};

/// The number of waiting requests, for the metrics page.
pub(super) const WAITING: &str = "ichido_http_waiting";

ichido_core::words! {
    /// Why the outcome of a message is not known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum NotEnded {
        /// It did not end in time.
        InTime = "not_in_time",
        /// The maximum number of requests waits, so this one did not.
        Full = "too_many_waiters",
        /// The server stops, which ended the wait.
        Stopping = "server_stops",
    }
}

/// The waiting requests, and the task that polls for them.
pub(super) struct OutcomeWaiters {
    list: Arc<WaitList>,
    poller: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

struct WaitList {
    permits: Semaphore,
    waiters: Waiters<Uuid>,
    /// Notified when a request begins to wait.
    joined: Notify,
}

impl OutcomeWaiters {
    /// Starts polling for up to this many waiting requests.
    pub(super) fn start(store: Store, max_waiters: usize) -> Self {
        let permits = Semaphore::new(max_waiters.min(Semaphore::MAX_PERMITS));
        let list = Arc::new(WaitList { permits, waiters: Waiters::default(), joined: Notify::new() });
        let poller = tokio::spawn(poll(Arc::clone(&list), store));
        Self { list, poller, stop: watch::channel(false).0 }
    }

    /// Waits up to `within` until a message has ended or is parked.
    pub(super) async fn wait_for_end(&self, id: Uuid, within: Duration) -> Result<(), NotEnded> {
        let mut stopping = self.stop.subscribe();
        let _permit = self.list.permits.try_acquire().map_err(|_| NotEnded::Full)?;
        let _gauge = WaitingGauge::new();
        let mut waiting = self.list.waiters.join(&id);
        self.list.joined.notify_one();
        tokio::select! {
            ended = timeout(within, waiting.woken()) => ended.map_err(|_| NotEnded::InTime),
            _ = stopping.wait_for(|stops| *stops) => Err(NotEnded::Stopping),
        }
    }

    /// Ends all waits, because the server stops.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Drop for OutcomeWaiters {
    fn drop(&mut self) {
        self.poller.abort();
    }
}

impl WaitList {
    /// Polls once for all waiting requests.
    async fn poll_once(&self, store: &Store) -> Result<(), StoreError> {
        for part in self.waiters.keys().chunks(MAX_PAGE as usize) {
            for (id, stage, _) in store.messages().states(part).await? {
                // A parked message waits for a person, who may be the one waiting.
                if stage.is_final() || stage == StateName::Parked {
                    self.waiters.wake(&id);
                }
            }
        }
        Ok(())
    }
}

/// Counts a waiting request in the metrics until it is dropped.
struct WaitingGauge;

impl WaitingGauge {
    fn new() -> Self {
        metrics::gauge!(WAITING).increment(1.0);
        Self
    }
}

impl Drop for WaitingGauge {
    fn drop(&mut self) {
        metrics::gauge!(WAITING).decrement(1.0);
    }
}

async fn poll(list: Arc<WaitList>, store: Store) {
    loop {
        while list.waiters.is_empty() {
            list.joined.notified().await;
        }
        let again_after = match list.poll_once(&store).await {
            Ok(()) => WAIT_POLL_INTERVAL,
            Err(error) => {
                tracing::warn!(%error, "failed to poll for waiting requests");
                WAIT_POLL_RETRY_INTERVAL
            }
        };
        sleep(again_after).await;
    }
}
