//! Nodes with more to send than they can, one destination, and the pace they share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::pace::{Grant, Pace, PaceSettings, permits_left};
use ichido_core::time::Timestamp;

use super::destination::{LimitModel, LimitedDestination, SECOND};

const MAX_PARALLEL: NonZeroU32 = NonZeroU32::new(64).unwrap();
/// A node asks for this many slots at a time.
const BULK: u32 = 8;

pub(crate) struct Simulation {
    pace: Pace,
    settings: PaceSettings,
    destination: LimitedDestination,
    says_retry_after: bool,
    /// This many calls in a thousand are refused at any rate.
    refused_anyway: i64,
    max_latency: i64,
    nodes: Vec<SimulatedNode>,
    events: BinaryHeap<Reverse<(i64, u64, SimulationEvent)>>,
    events_made: u64,
    dice: SplitMix,
    counts: CallCounts,
    now: i64,
}

#[derive(Default)]
struct SimulatedNode {
    /// Slots held and calls in flight.
    busy: u32,
    /// Accepted calls not yet reported to the pace.
    accepted: u32,
    /// Whether it will ask for slots on its own, or waits for a response to free a slot.
    awake: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulationEvent {
    Wakes { node: usize },
    Sends { node: usize },
    Answered { node: usize, sent: i64, refused: Option<i64> },
}

/// The counts of a period.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallCounts {
    pub(crate) sent: u32,
    pub(crate) accepted: u32,
    pub(crate) seconds: u32,
}

impl CallCounts {
    pub(crate) fn accepted_per_second(self) -> f64 {
        f64::from(self.accepted) / f64::from(self.seconds)
    }

    pub(crate) fn refused_share(self) -> f64 {
        f64::from(self.sent - self.accepted) / f64::from(self.sent.max(1))
    }
}

impl Simulation {
    pub(crate) fn new(model: LimitModel, limit: u32, nodes: usize, seed: u64) -> Self {
        let mut simulation = Self {
            pace: Pace::NEW,
            settings: PaceSettings::DEFAULT,
            destination: LimitedDestination::new(model, limit),
            says_retry_after: false,
            refused_anyway: 0,
            max_latency: SECOND * 3 / 10,
            nodes: Vec::new(),
            events: BinaryHeap::new(),
            events_made: 0,
            dice: SplitMix(seed),
            counts: CallCounts::default(),
            now: 0,
        };
        for node in 0..nodes {
            simulation.nodes.push(SimulatedNode::default());
            // Nodes start within a second, so each seed meets a window at another phase.
            let start = simulation.dice.between(0, SECOND);
            simulation.wake(node, start);
        }
        simulation
    }

    /// Refusals say when to retry, in whole seconds.
    pub(crate) fn with_retry_after(mut self) -> Self {
        self.says_retry_after = true;
        self
    }

    /// This many calls in a thousand are refused at any rate, and may be retried after a second.
    pub(crate) fn with_random_refusals(mut self, per_thousand: i64) -> Self {
        self.refused_anyway = per_thousand;
        self
    }

    /// Responses take up to this many seconds.
    pub(crate) fn with_latency(mut self, seconds: u32) -> Self {
        self.max_latency = i64::from(seconds) * SECOND;
        self
    }

    /// From `second` on, the destination allows `limit` a second.
    pub(crate) fn with_limit_from(mut self, second: u32, limit: u32) -> Self {
        self.run(i64::from(second) * SECOND);
        self.destination.limit = limit;
        self
    }

    /// Runs up to `from` seconds, then to `to`, and returns the counts in between.
    pub(crate) fn watch(&mut self, from: u32, to: u32) -> CallCounts {
        self.run(i64::from(from) * SECOND);
        self.counts = CallCounts::default();
        self.run(i64::from(to) * SECOND);
        CallCounts { seconds: to - from, ..self.counts }
    }

    fn run(&mut self, until: i64) {
        while let Some(Reverse((moment, _, event))) = self.events.peek().copied() {
            if until <= moment {
                break;
            }
            self.events.pop();
            self.now = moment;
            match event {
                SimulationEvent::Wakes { node } => self.on_wake(node),
                SimulationEvent::Sends { node } => self.on_send(node),
                SimulationEvent::Answered { node, sent, refused } => self.on_answer(node, sent, refused),
            }
        }
    }

    fn on_wake(&mut self, node: usize) {
        self.nodes[node].awake = false;
        let now = Timestamp::from_micros(self.now);
        let places = permits_left(MAX_PARALLEL, self.nodes[node].busy);
        let Some(count) = NonZeroU32::new(places.min(BULK)) else {
            return;
        };
        let (pace, grant) = self.pace.reserve(&self.settings, now, count);
        self.pace = pace;
        self.report(node);
        match grant {
            Grant::Wait { until, .. } => self.wake(node, until.as_micros()),
            Grant::Slots(slots) => {
                self.nodes[node].busy += slots.count();
                for slot in slots.moments() {
                    self.at(slot.as_micros(), SimulationEvent::Sends { node });
                }
                self.wake(node, slots.last().as_micros());
            }
        }
    }

    fn on_send(&mut self, node: usize) {
        if self.pace.stopped(&self.settings, Timestamp::from_micros(self.now)).is_some() {
            self.nodes[node].busy -= 1;
            return;
        }
        let refused =
            if self.is_refused_anyway() { Some(SECOND) } else { self.destination.call(self.now).err() };
        self.counts.sent += 1;
        self.counts.accepted += u32::from(refused.is_none());
        let latency = self.dice.between(SECOND / 50, self.max_latency);
        self.at(self.now + latency, SimulationEvent::Answered { node, sent: self.now, refused });
    }

    /// Random numbers are drawn only if needed, so the seeds mean the same without.
    fn is_refused_anyway(&mut self) -> bool {
        0 < self.refused_anyway && self.dice.between(0, 1_000) < self.refused_anyway
    }

    fn on_answer(&mut self, node: usize, sent: i64, refused: Option<i64>) {
        self.nodes[node].busy -= 1;
        match refused {
            None => self.nodes[node].accepted += 1,
            Some(wait) => {
                self.report(node);
                let (now, sent) = (Timestamp::from_micros(self.now), Timestamp::from_micros(sent));
                let seconds = u64::try_from((wait + SECOND - 1) / SECOND).unwrap();
                let retry_after = self.says_retry_after.then(|| Duration::from_secs(seconds));
                self.pace = self.pace.on_throttled(&self.settings, now, sent, retry_after);
            }
        }
        if !self.nodes[node].awake {
            self.wake(node, self.now);
        }
    }

    /// Reports to the pace what was accepted since the last report, as a node does whenever it writes the row.
    fn report(&mut self, node: usize) {
        if let Some(count) = NonZeroU32::new(std::mem::take(&mut self.nodes[node].accepted)) {
            self.pace = self.pace.on_success(&self.settings, Timestamp::from_micros(self.now), count);
        }
    }

    fn wake(&mut self, node: usize, at: i64) {
        self.nodes[node].awake = true;
        self.at(at, SimulationEvent::Wakes { node });
    }

    fn at(&mut self, moment: i64, event: SimulationEvent) {
        self.events_made += 1;
        self.events.push(Reverse((moment.max(self.now), self.events_made, event)));
    }
}

/// The generator of Steele, Lea and Flood (2014): small, and good enough for a test.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % u64::try_from(high - low).unwrap()).unwrap()
    }
}
