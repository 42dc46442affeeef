//! Those who wait for their message to end.
//!
//! Guarantee: however many wait, one task looks for all of them, with one statement for each thousand; who waits holds no connection
//! to the database, and who hangs up leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::lifecycle::Stage;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::limits::PAGE_MAX;
use ichido_store::waiters::Waiters;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::limits::{WAIT_POLL_INTERVAL, WAIT_POLL_RETRY_INTERVAL};

/// How many wait, for the metrics page.
pub(super) const WAITING: &str = "ichido_http_waiting";

ichido_core::words! {
    /// Why it is not known that a message has ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum NotEnded {
        /// It has not, in the time that was given.
        InTime = "not_in_time",
        /// As many wait as may: it was not waited for.
        Full = "no_room",
        /// The server stops: it was not waited for to the end.
        Stopping = "server_stops",
    }
}

/// The room in which they wait.
pub(super) struct OutcomeWaiters {
    list: Arc<WaitList>,
    poller: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

struct WaitList {
    permits: Semaphore,
    waiters: Waiters<Uuid>,
    /// Somebody came.
    joined: Notify,
}

impl OutcomeWaiters {
    /// Opens a room for so many.
    pub(super) fn start(store: Store, waiters_max: usize) -> Self {
        let permits = Semaphore::new(waiters_max.min(Semaphore::MAX_PERMITS));
        let list = Arc::new(WaitList { permits, waiters: Waiters::default(), joined: Notify::new() });
        let poller = tokio::spawn(poll(Arc::clone(&list), store));
        Self { list, poller, stop: watch::channel(false).0 }
    }

    /// Waits until a message has ended or is parked, at most so long.
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

    /// Sends everybody home: the server stops.
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
    /// One look for all.
    async fn poll_once(&self, store: &Store) -> Result<(), StoreError> {
        for part in self.waiters.keys().chunks(PAGE_MAX as usize) {
            for (id, stage, _) in store.messages().stages(part).await? {
                // A parked one waits for a person, and who waits for it may be one.
                if stage.is_final() || stage == Stage::Parked {
                    self.waiters.wake(&id);
                }
            }
        }
        Ok(())
    }
}

/// Somebody who waits, for the metrics page, until this is dropped.
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
                tracing::warn!(%error, "those who wait could not be looked after");
                WAIT_POLL_RETRY_INTERVAL
            }
        };
        sleep(again_after).await;
    }
}
