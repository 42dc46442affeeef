//! Those who wait for their message to end.
//!
//! Guarantee: however many wait, one task looks for all of them, with one statement for each thousand; who waits holds no connection
//! to the database, and who hangs up leaves nothing behind.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::lifecycle::Stage;
use ichido_core::sync::lock;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::limits::PAGE_MAX;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::limits::{LOOK_AGAIN_AFTER, LOOK_EVERY};

/// How many wait, for the metrics page.
pub(super) const WAITING: &str = "ichido_http_waiting";

/// Why it is not known that a message has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotEnded {
    /// It has not, in the time that was given.
    InTime,
    /// As many wait as may: it was not waited for.
    NoRoom,
    /// The server stops: it was not waited for to the end.
    Stopping,
}

impl NotEnded {
    /// For programs.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::InTime => "not_in_time",
            Self::NoRoom => "no_room",
            Self::Stopping => "server_stops",
        }
    }
}

/// The room in which they wait.
pub(super) struct Waiting {
    room: Arc<Room>,
    looking: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

struct Room {
    waiters_max: usize,
    waiters: Mutex<Waiters>,
    /// Somebody came into the empty room.
    came: Notify,
}

#[derive(Default)]
struct Waiters {
    next: u64,
    by_number: HashMap<u64, (Uuid, oneshot::Sender<()>)>,
}

impl Waiting {
    /// Opens a room for so many.
    pub(super) fn start(store: Store, waiters_max: usize) -> Self {
        let room = Arc::new(Room { waiters_max, waiters: Mutex::default(), came: Notify::new() });
        let looking = tokio::spawn(look(Arc::clone(&room), store));
        Self { room, looking, stop: watch::channel(false).0 }
    }

    /// Waits until a message has ended or is parked, at most so long.
    pub(super) async fn until_ended(&self, id: Uuid, within: Duration) -> Result<(), NotEnded> {
        let mut stopping = self.stop.subscribe();
        let (_place, ended) = self.room.enter(id).ok_or(NotEnded::NoRoom)?;
        tokio::select! {
            ended = timeout(within, ended) => match ended {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) | Err(_) => Err(NotEnded::InTime),
            },
            _ = stopping.wait_for(|stops| *stops) => Err(NotEnded::Stopping),
        }
    }

    /// Sends everybody home: the server stops.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl Room {
    /// A place, and what is heard there; `None` when there is none left.
    fn enter(self: &Arc<Self>, id: Uuid) -> Option<(Place, oneshot::Receiver<()>)> {
        let (tell, told) = oneshot::channel();
        let mut waiters = self.lock();
        if self.waiters_max <= waiters.by_number.len() {
            return None;
        }
        let number = waiters.next;
        waiters.next += 1;
        waiters.by_number.insert(number, (id, tell));
        count(&waiters);
        drop(waiters);
        self.came.notify_one();
        Some((Place { room: Arc::clone(self), number }, told))
    }

    /// One look for all; how many were told.
    async fn look_once(&self, store: &Store) -> Result<usize, StoreError> {
        let ids: BTreeSet<Uuid> = self.lock().by_number.values().map(|(id, _)| *id).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let mut told = 0;
        for part in ids.chunks(PAGE_MAX as usize) {
            let stages = store.messages().stages(part).await?;
            // A parked one waits for a person, and who waits for it may be one.
            let has_ended = |stage: Stage| stage.is_final() || stage == Stage::Parked;
            let ended: BTreeSet<Uuid> =
                stages.into_iter().filter(|(_, stage, _)| has_ended(*stage)).map(|(id, ..)| id).collect();
            let mut waiters = self.lock();
            let over: Vec<u64> = waiters
                .by_number
                .iter()
                .filter(|(_, (id, _))| ended.contains(id))
                .map(|(number, _)| *number)
                .collect();
            told += over.len();
            for (_, tell) in over.iter().filter_map(|number| waiters.by_number.remove(number)) {
                // Who has just hung up need not know.
                _ = tell.send(());
            }
            count(&waiters);
        }
        Ok(told)
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        // Each change under it is whole.
        lock(&self.waiters)
    }
}

/// Keeps one waiter in the room for as long as it lives.
struct Place {
    room: Arc<Room>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiters = self.room.lock();
        waiters.by_number.remove(&self.number);
        count(&waiters);
    }
}

fn count(waiters: &Waiters) {
    let waiting = u32::try_from(waiters.by_number.len()).unwrap_or(u32::MAX);
    metrics::gauge!(WAITING).set(waiting);
}

async fn look(room: Arc<Room>, store: Store) {
    loop {
        while room.lock().by_number.is_empty() {
            room.came.notified().await;
        }
        let again_after = match room.look_once(&store).await {
            Ok(_) => LOOK_EVERY,
            Err(error) => {
                tracing::warn!(%error, "those who wait could not be looked after");
                LOOK_AGAIN_AFTER
            }
        };
        sleep(again_after).await;
    }
}
