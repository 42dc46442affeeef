//! The claims of a worker: renewed together while any of their messages is held, and never believed beyond their lease.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use ichido_core::fence::Fence;
use ichido_core::lifecycle::Event;
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::message::Work;
use tokio::sync::OwnedSemaphorePermit;

use super::clock::Clock;
use crate::destination::Cancel;

/// The part of a lease after which it is renewed: two more tries fit in before it lapses.
const RENEW_AT: u32 = 3;
/// How often it is looked what is to be renewed.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long to wait after the store could not be asked.
const RENEW_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// The most claims in one renewal.
const RENEW_MAX: usize = 1_000;

/// One claim, for as long as any of its messages is held.
pub(super) struct Claim {
    fence: Fence,
    lease: Duration,
    /// By our own clock.
    times: Mutex<Times>,
    /// It is no longer ours.
    pub(super) lost: Cancel,
}

#[derive(Clone, Copy)]
struct Times {
    /// When it lapses, counted from before the store was asked.
    until: Duration,
    /// When to renew it.
    due: Duration,
}

/// A message of a claim.
pub(super) struct Held {
    /// Without its request.
    pub(super) work: Work,
    /// The caller's bytes.
    pub(super) body: Bytes,
    pub(super) claim: Arc<Claim>,
    /// That no other message that a worker died with is in hand, where this is one.
    pub(super) suspect: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// The store's time, which is not before its own word for when this was claimed.
    pub(super) fn now(&self, clock: &Clock) -> Timestamp {
        clock.now().max(self.work.claimed_at)
    }

    /// That it was not begun, and may be claimed again at once: due at a moment that has surely passed.
    pub(super) fn back(&self) -> Event {
        Event::GivenBack { fence: self.work.fence, due: self.work.claimed_at }
    }
}

pub(super) struct Claims {
    store: Store,
    clock: Arc<Clock>,
    live: Mutex<Vec<Weak<Claim>>>,
}

impl Claims {
    pub(super) fn new(store: Store, clock: Arc<Clock>) -> Self {
        Self { store, clock, live: Mutex::default() }
    }

    /// Keeps what was claimed, asked for at `asked_at`.
    pub(super) fn keep(&self, works: Vec<Work>, lease: Duration, asked_at: Duration) -> Vec<Held> {
        let Some(fence) = works.first().map(|work| work.fence) else { return Vec::new() };
        let times = Times { until: asked_at + lease, due: asked_at + lease / RENEW_AT };
        let claim = Arc::new(Claim { fence, lease, times: Mutex::new(times), lost: Cancel::new() });
        lock(&self.live).push(Arc::downgrade(&claim));
        let held = |mut work: Work| {
            let body = Bytes::from(std::mem::take(&mut work.request));
            Held { work, body, claim: Arc::clone(&claim), suspect: None }
        };
        works.into_iter().map(held).collect()
    }

    /// Whether a claim holds for so long: by our own clock, or, where that is in doubt, by the store's word. Asked right before
    /// a call, because the process may have stood still since the claim.
    pub(super) async fn hold(&self, claim: &Arc<Claim>, long: Duration) -> bool {
        if claim.lost.is_cancelled() {
            return false;
        }
        if claim.holds_at(self.clock.own() + long) {
            return true;
        }
        // Apart, because few get here, and every attempt would carry the room for it.
        Box::pin(self.renew(std::slice::from_ref(claim), claim.lease)).await;
        self.hold_now(claim)
    }

    /// Whether a claim holds at this moment, by our own clock.
    pub(super) fn hold_now(&self, claim: &Claim) -> bool {
        !claim.lost.is_cancelled() && claim.holds_at(self.clock.own())
    }

    /// Renews what is due, until it is aborted.
    pub(super) async fn run(&self) {
        loop {
            self.run_once().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn run_once(&self) {
        let now = self.clock.own();
        let mut due: BTreeMap<Duration, Vec<Arc<Claim>>> = BTreeMap::new();
        {
            let mut live = lock(&self.live);
            live.retain(|claim| 0 < claim.strong_count());
            for claim in live.iter().filter_map(Weak::upgrade) {
                if lock(&claim.times).due <= now && !claim.lost.is_cancelled() {
                    due.entry(claim.lease).or_default().push(claim);
                }
            }
        }
        for (lease, claims) in due {
            for part in claims.chunks(RENEW_MAX) {
                self.renew(part, lease).await;
            }
        }
    }

    async fn renew(&self, claims: &[Arc<Claim>], lease: Duration) {
        let asked_at = self.clock.own();
        let fences: Vec<Fence> = claims.iter().map(|claim| claim.fence).collect();
        match self.store.claims().renew(&fences, lease).await {
            Ok(stands) => {
                for (claim, stands) in claims.iter().zip(stands) {
                    if stands {
                        *lock(&claim.times) =
                            Times { until: asked_at + lease, due: asked_at + lease / RENEW_AT };
                    } else {
                        // It ended with its last message, or was rescued: whoever still holds one of it finds out.
                        claim.lost.cancel();
                    }
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = error.in_full(),
                    claims = claims.len(),
                    "leases of messages could not be renewed; trying again"
                );
                let due = self.clock.own() + RENEW_AGAIN_AFTER;
                for claim in claims {
                    lock(&claim.times).due = due;
                }
            }
        }
    }
}

impl Claim {
    fn holds_at(&self, moment: Duration) -> bool {
        moment < lock(&self.times).until
    }
}
