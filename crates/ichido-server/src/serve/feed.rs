//! The feed: what happens, told to whoever listens.
//!
//! Guarantee: however many listen, one task looks, once a second, and with nobody there it does not look at all. Who listens holds no
//! connection to the database. A listener that does not keep up misses changes, is told so, and is told the whole state again; one
//! that does not read at all is cut off. Who would not be let in any more is sent home at the next look, and all are when the server stops.

mod state;
mod subscriber;

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use ichido_core::sync::lock;
use ichido_http::server::permits::{Full, Permits};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::access::Access;
use super::api::ApiState;
use super::caller::ApiCaller;
use crate::limits::{FEED_BUFFERED_MAX, FEED_LISTENERS_OF_ONE_MAX, FEED_LIVES, FEED_LOOK_EVERY};
use state::{FeedChanges, FeedState};
use subscriber::Subscriber;

/// How many listen, for the metrics page.
const LISTENING: &str = "ichido_http_listening";

/// Why nobody more may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscribeError {
    Full(Full),
    Stopping,
}

/// Where listeners come in.
pub(super) struct Feed {
    /// Those that the task has not taken over yet.
    came: Mutex<Vec<Subscriber>>,
    somebody_came: Notify,
    seats: Permits<Uuid>,
    stop: watch::Sender<bool>,
}

impl Feed {
    pub(super) fn new(listeners_max: usize) -> Self {
        metrics::describe_gauge!(LISTENING, "Those who listen to the feed of events");
        // What is missing cannot be told from what never happened.
        metrics::gauge!(LISTENING).set(0.0);
        Self {
            came: Mutex::default(),
            somebody_came: Notify::new(),
            seats: Permits::new(listeners_max, FEED_LISTENERS_OF_ONE_MAX),
            stop: watch::channel(false).0,
        }
    }

    /// A seat: what is told comes out of it, piece by piece.
    pub(super) fn listen(
        &self,
        caller: ApiCaller,
        messages: Vec<Uuid>,
    ) -> Result<mpsc::Receiver<Bytes>, SubscribeError> {
        // Held until the newcomer is in: whoever stops clears this once it is known that the server does.
        let mut came = self.lock();
        if *self.stop.borrow() {
            return Err(SubscribeError::Stopping);
        }
        let seat = self.seats.try_take(caller.token).map_err(SubscribeError::Full)?;
        let (tell, told) = mpsc::channel(FEED_BUFFERED_MAX);
        let leaves_at = Instant::now() + FEED_LIVES;
        came.push(Subscriber::new(caller, messages, tell, leaves_at, seat));
        drop(came);
        self.somebody_came.notify_one();
        Ok(told)
    }

    /// Sends everybody home: the server stops.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        // Each change under it is whole.
        lock(&self.came)
    }
}

/// Looks and tells until the server stops.
pub(super) async fn run(api: Arc<ApiState>, access: Arc<Access>) {
    let mut stopping = api.feed.stop.subscribe();
    tokio::select! {
        _ = stopping.wait_for(|stops| *stops) => (),
        () = look_and_tell(&api, &access) => (),
    }
    // Those who came in meanwhile go as well.
    api.feed.lock().clear();
    metrics::gauge!(LISTENING).set(0);
}

async fn look_and_tell(api: &ApiState, access: &Access) {
    let mut listening: Vec<Subscriber> = Vec::new();
    let mut looking = FeedState::default();
    loop {
        if listening.is_empty() {
            // What is known would be old when the next one comes.
            looking = FeedState::default();
            while api.feed.lock().is_empty() {
                api.feed.somebody_came.notified().await;
            }
        }
        let next_look = Instant::now() + FEED_LOOK_EVERY;
        listening.append(&mut api.feed.lock());
        listening.retain(Subscriber::listens);
        let watched = listening.iter().flat_map(Subscriber::messages).collect();
        let looked = match looking.look(api, watched).await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::warn!(%error, "the feed of events could not look");
                FeedChanges::nothing()
            }
        };
        // After the look, which may have taken its time.
        let lets_in = access.still().await;
        let now = Instant::now();
        listening.retain_mut(|subscriber| {
            lets_in(subscriber.caller()) && subscriber.tell(&looking, &looked, now).is_ok()
        });
        metrics::gauge!(LISTENING).set(u32::try_from(listening.len()).unwrap_or(u32::MAX));
        sleep_until(next_look).await;
    }
}
