//! The model's endpoints: which of them takes the next call, and when (SPEC B10).
//!
//! Each has a pace of its own. One that refuses calls is called more slowly or left alone for a while, and the others carry what they bear.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::pace::{Choice, Opening, Settings, choose};
use ichido_core::time::Timestamp;
use ichido_core::verdict::Verdict;
use ichido_store::Store;

use crate::llm::Model;
use crate::worker::clock::Clock;
use crate::worker::pacer::{Caller, FRESH_FOR, Home, Pacer, Slot};

/// How long nobody looks whether a wait is still needed: another endpoint may have become free.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// A wait is no shorter than this, so that nobody looks again without end.
const WAIT_MIN: Duration = Duration::from_millis(1);

pub(super) struct Ways {
    clock: Arc<Clock>,
    pacers: Vec<Pacer>,
}

/// A call may be made.
pub(super) struct Way {
    /// To this endpoint.
    pub(super) endpoint: usize,
    sent: Timestamp,
    caller: Caller,
}

impl Ways {
    pub(super) fn of(
        model: &dyn Model,
        settings: Settings,
        store: Option<&Store>,
        clock: &Arc<Clock>,
    ) -> Self {
        let pacer = |endpoint: &String| {
            let home = store.map_or_else(Home::alone, |store| Home::Shared(store.clone()));
            Pacer::new(endpoint.clone(), settings, home, Arc::clone(clock))
        };
        Self { clock: Arc::clone(clock), pacers: model.endpoints().iter().map(pacer).collect() }
    }

    /// Waits until a call may be made to one of them.
    pub(super) async fn open(&self, is_fresh: bool, dice: impl Fn() -> f64) -> Way {
        let caller = if is_fresh { Caller::Fresh } else { Caller::Again };
        loop {
            let openings: Vec<Opening> = self.pacers.iter().map(Pacer::opening).collect();
            let wait_until = match choose(&openings, dice()) {
                Choice::AllRest { until } => {
                    // What is known of them may be old.
                    for pacer in &self.pacers {
                        pacer.refresh(self.clock.own().saturating_sub(FRESH_FOR)).await;
                    }
                    until
                }
                Choice::Endpoint(endpoint) => match self.slot(endpoint, caller).await {
                    Ok(sent) => return Way { endpoint, sent, caller },
                    Err(until) => until,
                },
            };
            let wait = wait_until.since(self.clock.now()).clamp(WAIT_MIN, LOOK_AGAIN_AFTER);
            tokio::time::sleep(wait).await;
        }
    }

    /// Waits for a slot at one of them, and in the slot for whatever overtook it; `Err` is not before that moment.
    async fn slot(&self, endpoint: usize, caller: Caller) -> Result<Timestamp, Timestamp> {
        let Some(pacer) = self.pacers.get(endpoint) else { return Err(Timestamp::MAX) };
        match pacer.slot(caller).await {
            Slot::NotBefore(until, _) => Err(until),
            Slot::At(moment) => {
                tokio::time::sleep(moment.since(self.clock.now())).await;
                pacer.stopped().map_or(Ok(moment), |(until, _)| Err(until))
            }
        }
    }

    /// What a call told of its endpoint.
    pub(super) async fn hear(&self, way: &Way, verdict: &Verdict) {
        if let Some(pacer) = self.pacers.get(way.endpoint) {
            pacer.hear(verdict, way.sent, way.caller).await;
        }
    }

    /// Shares what was heard and not yet written.
    pub(super) async fn report(&self) {
        for pacer in &self.pacers {
            pacer.report().await;
        }
    }
}
