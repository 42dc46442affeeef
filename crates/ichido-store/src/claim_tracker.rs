//! Tracks the messages of this process's claims that have not ended, and applies reports about them.
//!
//! A claim is one lease row for many messages, and the row is deleted with the last of them. Tracking this in memory saves
//! counting in the database. If the process dies, nothing is lost: the lease lapses and the rescue finds it empty.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, History, State, StepRefusal};
use ichido_core::sync::lock;
use uuid::Uuid;

use crate::message::{ClaimedMessage, Settlement};
use crate::placement::MovedMessage;

#[derive(Debug, Default)]
pub(crate) struct ClaimTracker(Mutex<HashMap<Fence, HashSet<Uuid>>>);

impl ClaimTracker {
    /// Adds a claim.
    pub(crate) fn claimed(&self, work: &[ClaimedMessage]) {
        if let Some(first) = work.first() {
            lock(&self.0).insert(first.fence, work.iter().map(|work| work.id).collect());
        }
    }

    /// Returns the messages that are not known to be held under their claims. They have ended, or another process claimed them,
    /// or nobody did; only the database knows.
    pub(crate) fn unowned(&self, pairs: impl Iterator<Item = (Uuid, Fence)>) -> Vec<(Uuid, Fence)> {
        let held = lock(&self.0);
        pairs.filter(|(id, fence)| !held.get(fence).is_some_and(|ids| ids.contains(id))).collect()
    }

    /// Returns the claims that hold nothing more once these messages have ended.
    pub(crate) fn exhausted<'a>(&self, reports: impl Iterator<Item = &'a ClaimReport<'a>>) -> Vec<Fence> {
        // Sorted, which reports mostly are already: cheaper than a set for each claim.
        let mut pairs: Vec<(Fence, Uuid)> =
            reports.map(|report| (report.fence, report.settlement.id)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let held = lock(&self.0);
        pairs
            .chunk_by(|(one, _), (other, _)| one == other)
            .filter_map(|pairs| {
                let (fence, _) = pairs.first()?;
                let held = held.get(fence)?;
                (pairs.iter().filter(|(_, id)| held.contains(id)).count() == held.len()).then_some(*fence)
            })
            .collect()
    }

    /// Removes messages that have ended, or that went with their claim.
    pub(crate) fn release<'a>(&self, reports: impl Iterator<Item = &'a ClaimReport<'a>>) {
        let mut held = lock(&self.0);
        for report in reports {
            if let Some(ids) = held.get_mut(&report.fence) {
                ids.remove(&report.settlement.id);
                if ids.is_empty() {
                    held.remove(&report.fence);
                }
            }
        }
    }

    /// Removes claims that were to be renewed but were not. They are no longer ours to end.
    pub(crate) fn renewed(&self, asked: &[Fence], renewed: &HashSet<Fence>) {
        lock(&self.0).retain(|fence, _| renewed.contains(fence) || !asked.contains(fence));
    }

    /// Removes a claim that was rescued.
    pub(crate) fn forget(&self, fence: Fence) {
        lock(&self.0).remove(&fence);
    }
}

/// A holder's report about a message, with the resulting states.
pub(crate) struct ClaimReport<'a> {
    /// The position among the reports.
    pub(crate) index: usize,
    pub(crate) settlement: &'a Settlement,
    pub(crate) fence: Fence,
    pub(crate) history: History,
    pub(crate) states: (State, Option<State>),
}

impl<'a> ClaimReport<'a> {
    pub(crate) fn new(index: usize, settlement: &'a Settlement) -> Result<Self, StepRefusal> {
        let State::Sending { fence, history, .. } = settlement.state else {
            return Err(StepRefusal::StaleFence);
        };
        match settlement.state.advance(settlement.event, settlement.claimed_at) {
            // A call that starts has not ended.
            Ok((State::Sending { .. }, _)) => Err(StepRefusal::WrongState),
            Ok(states) => Ok(Self { index, settlement, fence, history, states }),
            Err(illegal) => Err(illegal.why),
        }
    }

    pub(crate) fn last(&self) -> State {
        self.states.1.unwrap_or(self.states.0)
    }

    /// Returns the states if an earlier attempt is known to have had its effect.
    pub(crate) fn proven(&self) -> (State, Option<State>) {
        let Settlement { state, event, claimed_at, .. } = self.settlement;
        match *state {
            State::Sending { fence, claimed_at: since, start_mark, history, .. } => {
                let state = State::Sending { fence, claimed_at: since, start_mark, proven: true, history };
                state.advance(*event, *claimed_at).unwrap_or(self.states)
            }
            _ => self.states,
        }
    }

    /// Returns whether the holder reports that it never started the call. A start mark can contradict this.
    pub(crate) fn is_given_back(&self) -> bool {
        matches!(self.settlement.event, Event::GivenBack { .. })
    }

    /// Returns the message and its claim.
    pub(crate) fn message_claim(&self) -> (Uuid, Fence) {
        (self.settlement.id, self.fence)
    }

    /// Returns the outcome of the same report before, if that report ended the message under its claim.
    pub(crate) fn repeated_outcome(&self, before: &ClaimEnd) -> Option<State> {
        if before.kind != self.settlement.event.name() {
            return None;
        }
        match before.to.as_str() {
            to if to == self.states.0.name() => Some(self.last()),
            to if to == State::Sent.name() => Some(State::Sent),
            _ => None,
        }
    }

    pub(crate) fn moving(&self) -> MovedMessage {
        let Settlement { id, queue, priority, .. } = self.settlement;
        MovedMessage { id: *id, queue: queue.clone(), priority: *priority }
    }
}

/// How messages ended under their claims.
#[derive(Debug, Default)]
pub(crate) struct ClaimEnds {
    /// The end of each message under its claim, if it has ended.
    pub(crate) ended: HashMap<(Uuid, Fence), ClaimEnd>,
    /// Messages of which an earlier attempt is known to have had its effect.
    pub(crate) proven: HashSet<Uuid>,
}

/// How a message ended under a claim: the event, and the resulting state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimEnd {
    pub(crate) kind: String,
    pub(crate) to: String,
}

impl ClaimEnd {
    pub(crate) fn new(event: Event, to: State) -> Self {
        Self { kind: event.name().to_owned(), to: to.name().to_owned() }
    }
}
