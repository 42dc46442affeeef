//! The event feed for listeners.
//!
//! Guarantee: however many listen, one task polls once a second, and with no listeners it does not poll. Listeners hold no
//! database connection. A listener that falls behind misses changes, is notified, and gets the whole state again; one that does
//! not read at all is cut off. If the store does not respond, all learn it within three seconds, and again when it does. Listeners without access are disconnected at the next poll, and all are when the server stops.

mod state;
mod subscriber;

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use ichido_core::sync::lock;
use ichido_http::server::permits::{Full, Permits};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;

use super::access::Access;
use super::api::ApiState;
use super::caller::ApiCaller;
use crate::limits::{
    FEED_POLL_INTERVAL, FEED_STORE_AWAY_AFTER, FEED_STREAM_LIFETIME, MAX_FEED_BUFFERED,
    MAX_FEED_LISTENERS_PER_TOKEN,
};
use state::{FeedChanges, FeedState};
use subscriber::{STORE_AWAY, STORE_BACK, Subscriber};

/// The number of listeners, for the metrics page.
const LISTENERS: &str = "ichido_http_listening";

/// Why a listener is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscribeError {
    Full(Full),
    Stopping,
}

/// Accepts listeners.
pub(super) struct Feed {
    /// Listeners that the task has not taken over yet.
    pending: Mutex<Vec<Subscriber>>,
    arrived: Notify,
    permits: Permits<Uuid>,
    stop: watch::Sender<bool>,
    /// How often a poll found changes.
    version: AtomicU64,
}

/// Describes the feed's metrics.
pub(super) fn describe() {
    metrics::describe_gauge!(LISTENERS, "Listeners of the event feed");
}

impl Feed {
    pub(super) fn new(max_listeners: usize) -> Self {
        // A missing metric looks like one that never changed.
        metrics::gauge!(LISTENERS).set(0.0);
        Self {
            pending: Mutex::default(),
            arrived: Notify::new(),
            permits: Permits::new(max_listeners, MAX_FEED_LISTENERS_PER_TOKEN),
            stop: watch::channel(false).0,
            version: AtomicU64::new(0),
        }
    }

    /// Returns a number that grows before listeners learn of a change.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Adds a listener. Its events arrive at the receiver, piece by piece.
    pub(super) fn subscribe(
        &self,
        caller: ApiCaller,
        messages: Vec<Uuid>,
    ) -> Result<mpsc::Receiver<Bytes>, SubscribeError> {
        // Held until the listener is added: the task clears this list after the server began to stop.
        let mut pending = self.lock();
        if *self.stop.borrow() {
            return Err(SubscribeError::Stopping);
        }
        let permit = self.permits.try_take(caller.token).map_err(SubscribeError::Full)?;
        let (sender, receiver) = mpsc::channel(MAX_FEED_BUFFERED);
        let expires_at = Instant::now() + FEED_STREAM_LIFETIME;
        pending.push(Subscriber::new(caller, messages, sender, expires_at, permit));
        drop(pending);
        self.arrived.notify_one();
        Ok(receiver)
    }

    /// Disconnects all listeners, because the server stops.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        // Each change under the lock is complete, so a panic leaves no half-made one.
        lock(&self.pending)
    }
}

/// Polls and publishes until the server stops.
pub(super) async fn run(api: Arc<ApiState>, access: Arc<Access>) {
    let mut stopping = api.feed.stop.subscribe();
    tokio::select! {
        _ = stopping.wait_for(|stops| *stops) => (),
        () = poll_and_publish(&api, &access) => (),
    }
    // Disconnects those that arrived in the meantime.
    api.feed.lock().clear();
    metrics::gauge!(LISTENERS).set(0);
}

async fn poll_and_publish(api: &ApiState, access: &Access) {
    let mut subscribers: Vec<Subscriber> = Vec::new();
    let mut state = FeedState::default();
    let mut is_away = false;
    loop {
        if subscribers.is_empty() {
            // The state would be outdated when the next listener arrives.
            state = FeedState::default();
            while api.feed.lock().is_empty() {
                api.feed.arrived.notified().await;
            }
        }
        let next_poll = Instant::now() + FEED_POLL_INTERVAL;
        subscribers.append(&mut api.feed.lock());
        subscribers.retain(Subscriber::is_connected);
        let watched = subscribers.iter().flat_map(Subscriber::messages).collect();
        let polled = {
            let mut polling = pin!(state.poll(api, watched));
            loop {
                if let Ok(polled) = timeout(FEED_STORE_AWAY_AFTER, &mut polling).await {
                    break polled;
                }
                is_away = true;
                subscribers.append(&mut api.feed.lock());
                notify(&mut subscribers, STORE_AWAY);
            }
        };
        let changes = match polled {
            Ok(changes) => {
                if std::mem::take(&mut is_away) {
                    notify(&mut subscribers, STORE_BACK);
                }
                if changes.has_any() {
                    api.feed.version.fetch_add(1, Ordering::SeqCst);
                }
                changes
            }
            Err(error) => {
                tracing::warn!(%error, "event feed failed to poll the store");
                is_away = true;
                notify(&mut subscribers, STORE_AWAY);
                FeedChanges::none()
            }
        };
        // After the poll, which may have taken a while.
        let is_admitted = access.recheck().await;
        let now = Instant::now();
        subscribers.retain_mut(|subscriber| {
            is_admitted(subscriber.caller()) && subscriber.publish(&state, &changes, now).is_ok()
        });
        metrics::gauge!(LISTENERS).set(u32::try_from(subscribers.len()).unwrap_or(u32::MAX));
        sleep_until(next_poll).await;
    }
}

/// Sends a piece of news to all listeners.
fn notify(subscribers: &mut Vec<Subscriber>, event: &'static str) {
    let now = Instant::now();
    subscribers.retain_mut(|subscriber| subscriber.notify(event, now).is_ok());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ichido_store::Store;
    use ichido_store::testing::sqlite::fresh_file;

    use super::super::in_process;
    use super::*;

    /// Reads events until one contains a text. Returns it.
    async fn event(receiver: &mut mpsc::Receiver<Bytes>, text: &str) -> String {
        loop {
            let piece = receiver.recv().await.expect("the stream goes on");
            let piece = String::from_utf8(piece.to_vec()).expect("text");
            if piece.contains(text) {
                return piece;
            }
        }
    }

    #[tokio::test]
    async fn listeners_learn_that_the_store_does_not_respond() {
        let file = fresh_file();
        let store = Store::open(&file.url, 2).await.unwrap();
        let api = Arc::new(in_process::api(store.clone(), None));
        let access = Arc::new(Access::new(store.clone(), "127.0.0.1:4180".parse().unwrap()));
        let task = tokio::spawn(run(Arc::clone(&api), access));
        let mut receiver = api.feed.subscribe(ApiCaller::local(), Vec::new()).unwrap();
        event(&mut receiver, "event: nodes").await;
        store.close(Duration::from_secs(5)).await;
        let news = event(&mut receiver, "event: store").await;
        assert_eq!(news, STORE_AWAY);
        api.feed.stop();
        task.await.unwrap();
    }
}
