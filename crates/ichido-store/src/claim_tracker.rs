//! What this process holds: the messages of each claim that have not ended yet, and what an end comes to.
//!
//! A claim is one lease row for many messages, and the row goes with the last of them. Remembering here saves counting in the
//! database; what is lost with its process costs nothing, because the lease then lapses and the rescue finds it empty.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, History, State, Why};
use ichido_core::sync::lock;
use uuid::Uuid;

use crate::message::{Settlement, Work};
use crate::placement::MovedMessage;

#[derive(Debug, Default)]
pub(crate) struct ClaimTracker(Mutex<HashMap<Fence, HashSet<Uuid>>>);

impl ClaimTracker {
    /// Remembers a claim.
    pub(crate) fn claimed(&self, work: &[Work]) {
        if let Some(first) = work.first() {
            lock(&self.0).insert(first.fence, work.iter().map(|work| work.id).collect());
        }
    }

    /// Of these messages, those that are not known to be held under their claims: they have ended, or were claimed by another
    /// process, or never. Only the database can tell.
    pub(crate) fn unowned(&self, pairs: impl Iterator<Item = (Uuid, Fence)>) -> Vec<(Uuid, Fence)> {
        let held = lock(&self.0);
        pairs.filter(|(id, fence)| !held.get(fence).is_some_and(|ids| ids.contains(id))).collect()
    }

    /// The claims that hold nothing any more once these messages have ended.
    pub(crate) fn exhausted<'a>(&self, reports: impl Iterator<Item = &'a ClaimReport<'a>>) -> Vec<Fence> {
        let mut ids: HashMap<Fence, HashSet<Uuid>> = HashMap::new();
        for report in reports {
            ids.entry(report.fence).or_default().insert(report.settlement.id);
        }
        let held = lock(&self.0);
        ids.into_iter()
            .filter(|(fence, ids)| held.get(fence).is_some_and(|held| held.is_subset(ids)))
            .map(|(fence, _)| fence)
            .collect()
    }

    /// Remembers that these messages have ended, or have gone with their claim.
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

    /// Of the claims that were to be renewed, those that were not are no longer ours to end.
    pub(crate) fn renewed(&self, asked: &[Fence], renewed: &HashSet<Fence>) {
        lock(&self.0).retain(|fence, _| renewed.contains(fence) || !asked.contains(fence));
    }

    /// A claim was rescued.
    pub(crate) fn forget(&self, fence: Fence) {
        lock(&self.0).remove(&fence);
    }
}

/// A report of a message's holder, with what it comes to.
pub(crate) struct ClaimReport<'a> {
    /// Its place among the reports.
    pub(crate) index: usize,
    pub(crate) settlement: &'a Settlement,
    pub(crate) fence: Fence,
    pub(crate) history: History,
    pub(crate) states: (State, Option<State>),
}

impl<'a> ClaimReport<'a> {
    pub(crate) fn new(index: usize, settlement: &'a Settlement) -> Result<Self, Why> {
        let State::Sending { fence, history, .. } = settlement.state else {
            return Err(Why::StaleFence);
        };
        match settlement.state.advance(settlement.event, settlement.claimed_at) {
            // A call that begins has not ended.
            Ok((State::Sending { .. }, _)) => Err(Why::NotFromHere),
            Ok(states) => Ok(Self { index, settlement, fence, history, states }),
            Err(illegal) => Err(illegal.why),
        }
    }

    pub(crate) fn last(&self) -> State {
        self.states.1.unwrap_or(self.states.0)
    }

    /// The states where an earlier try is known to have done the work.
    pub(crate) fn proven(&self) -> (State, Option<State>) {
        let Settlement { state, event, claimed_at, .. } = self.settlement;
        match *state {
            State::Sending { fence, claimed_at: since, begun, history, .. } => {
                let state = State::Sending { fence, claimed_at: since, begun, proven: true, history };
                state.advance(*event, *claimed_at).unwrap_or(self.states)
            }
            _ => self.states,
        }
    }

    /// Whether the holder says that it never began the call, which a mark can contradict.
    pub(crate) fn is_given_back(&self) -> bool {
        matches!(self.settlement.event, Event::GivenBack { .. })
    }

    /// Which message under which claim.
    pub(crate) fn pair(&self) -> (Uuid, Fence) {
        (self.settlement.id, self.fence)
    }

    /// What the same report came to before, if it was this one that ended the message under its claim.
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

/// What is told of messages and their claims.
#[derive(Debug, Default)]
pub(crate) struct ClaimEnds {
    /// How each ended under its claim, where it has.
    pub(crate) ended: HashMap<(Uuid, Fence), ClaimEnd>,
    /// Those of which an earlier try is known to have done the work.
    pub(crate) proven: HashSet<Uuid>,
}

/// How a message ended under a claim: the event, and the state it led to.
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
