//! Whether a queue takes one more message in, by the bounds of its settings.
//!
//! Guarantee: a queue without bounds is never looked at. However many requests come, the store is asked once a second, for all queues
//! together. What this server takes in between two looks counts as waiting, so that by itself it never exceeds `waiting_max`; of what
//! others put in on the same store it knows by its next look.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::drain::{Bounds, Full, Intake, Load, Look, Window};
use ichido_core::lifecycle::Stage;
use ichido_core::sync::lock;
use ichido_store::Store;
use ichido_store::message::Count;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::api::Known;
use super::problem::{Code, Problem};
use crate::limits::COUNTS_EVERY;

/// The doors of the queues that have bounds.
pub(super) struct Admission {
    doors: Arc<BTreeMap<String, Door>>,
    /// `None` where no queue has bounds.
    looking: Option<JoinHandle<()>>,
}

struct Door {
    bounds: Bounds,
    inside: Mutex<Inside>,
}

/// What is known of a queue.
#[derive(Default)]
struct Inside {
    window: Window,
    /// How many were let in here, and of how many it is known what became of them.
    let_in: u64,
    settled: u64,
    /// How many were settled when the last look began: those are in its counts.
    settled_at_look: u64,
}

/// Room for one message, until it is known what became of it.
pub(super) struct Room<'a>(Option<&'a Door>);

impl Admission {
    /// Without bounds, for who puts nothing in.
    pub(super) fn none() -> Self {
        Self { doors: Arc::default(), looking: None }
    }

    /// Looks once, and then every second. A store that does not answer now refuses by itself.
    pub(super) async fn start(store: Store, queues: &BTreeMap<String, Known>) -> Self {
        let doors = queues.iter().filter_map(|(name, known)| {
            let bounds = known.intake.bounds;
            (bounds != Bounds::default()).then(|| (name.clone(), Door { bounds, inside: Mutex::default() }))
        });
        let doors: Arc<BTreeMap<String, Door>> = Arc::new(doors.collect());
        if doors.is_empty() {
            return Self { doors, looking: None };
        }
        let began = Instant::now();
        look(&store, &doors, began).await;
        let looking = tokio::spawn({
            let doors = Arc::clone(&doors);
            async move {
                let mut every = interval(COUNTS_EVERY);
                every.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    every.tick().await;
                    look(&store, &doors, began).await;
                }
            }
        });
        Self { doors, looking: Some(looking) }
    }

    /// Lets one message into a queue, or says when to ask again.
    pub(super) fn enter(&self, queue: &str) -> Result<Room<'_>, Problem> {
        let Some(door) = self.doors.get(queue) else { return Ok(Room(None)) };
        let mut inside = door.inside();
        match inside.load().judge(door.bounds) {
            Intake::Open => {
                inside.let_in += 1;
                Ok(Room(Some(door)))
            }
            Intake::Full { why, again_after } => {
                let detail = match why {
                    Full::WaitingMax => "as many messages wait in this queue as may",
                    Full::DrainWithin => "this queue would not deliver the message within its bound",
                };
                let wait = again_after.as_secs().max(1);
                let detail = format!("{detail}; nothing was put in; send the same request again in {wait} s");
                Err(Problem::new(Code::QueueFull, detail).after(Duration::from_secs(wait)))
            }
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(looking) = &self.looking {
            looking.abort();
        }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if let Some(door) = self.0 {
            door.inside().settled += 1;
        }
    }
}

impl Door {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        // Numbers alone are behind it, which no panic leaves half changed.
        lock(&self.inside)
    }
}

impl Inside {
    fn load(&self) -> Load {
        let load = self.window.load();
        Load { waiting: load.waiting.saturating_add(self.let_in - self.settled_at_look), ..load }
    }
}

/// One look at all queues. One that fails changes nothing: what was known still stands.
async fn look(store: &Store, doors: &BTreeMap<String, Door>, began: Instant) {
    let settled: Vec<u64> = doors.values().map(|door| door.inside().settled).collect();
    let counts = match timeout(COUNTS_EVERY, store.queues().counts()).await {
        Ok(Ok(counts)) => counts,
        Ok(Err(error)) => {
            tracing::debug!(%error, "the queues could not be counted");
            return;
        }
        Err(_) => return,
    };
    let at = began.elapsed();
    let counted = sums(&counts);
    for ((name, door), settled) in doors.iter().zip(settled) {
        let (waiting, ended) = counted.get(name.as_str()).copied().unwrap_or_default();
        let mut inside = door.inside();
        inside.window.look(Look { at, waiting, ended });
        inside.settled_at_look = settled;
    }
}

/// How many of each queue wait, and how many have ended.
fn sums(counts: &[Count]) -> HashMap<&str, (u64, u64)> {
    let mut sums: HashMap<&str, (u64, u64)> = HashMap::new();
    for Count { queue, state, count } in counts {
        let (waiting, ended) = sums.entry(queue).or_default();
        let sum = match state {
            Stage::Queued | Stage::Sending | Stage::Failed => waiting,
            // A parked one waits for a person, not for the queue.
            Stage::Parked | Stage::Sent | Stage::Dead | Stage::Cancelled => ended,
        };
        *sum = sum.saturating_add(u64::try_from(*count).unwrap_or(0));
    }
    sums
}
