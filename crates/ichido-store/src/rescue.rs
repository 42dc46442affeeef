//! The rescue: what becomes of messages whose worker is gone (SPEC D12, E1, E2).
//!
//! Guarantee: each message that a lapsed lease still holds takes exactly one step, decided by the lifecycle; what was
//! settled a moment before takes none.

use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Begun, Event, History, State};
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::message::{Note, QueueName};
use crate::placement::{Moves, Moving, Stamp};

/// A lease whose time is over, with what it still holds.
#[derive(Debug)]
pub(crate) struct Lapsed {
    pub(crate) fence: Fence,
    pub(crate) queue: QueueName,
    pub(crate) node: Uuid,
    pub(crate) claimed_at: Timestamp,
    pub(crate) now: Timestamp,
    /// Whether the lease held one message only.
    pub(crate) alone: bool,
    pub(crate) left: Vec<LapsedMessage>,
}

#[derive(Debug)]
pub(crate) struct LapsedMessage {
    pub(crate) id: Uuid,
    pub(crate) priority: u8,
    pub(crate) begun: Begun,
    pub(crate) history: History,
}

/// What a queue's owner says about messages whose worker is gone.
#[derive(Clone, Copy, Debug)]
pub struct RescueTerms {
    /// What the queue's destination promises about repetitions.
    pub guarantee: Guarantee,
    /// How long a message that is charged with a death waits before the next try.
    pub wait: Duration,
    /// How long after its claim a call may still be travelling: the hard deadline plus what the destination takes to settle.
    pub travels_for: Duration,
}

/// The steps of all that a lapsed lease still holds.
pub(crate) fn judge(lapsed: &Lapsed, terms: &RescueTerms) -> Moves {
    let mut moves = Moves::default();
    for message in &lapsed.left {
        let history = message.history;
        let state = State::Sending {
            fence: lapsed.fence,
            claimed_at: lapsed.claimed_at,
            begun: message.begun,
            history,
        };
        let event = Event::WorkerDied {
            fence: lapsed.fence,
            alone: lapsed.alone,
            safety: history.safety(terms.guarantee, lapsed.now),
            due: lapsed.now.plus(terms.wait),
            travels_until: lapsed.now.plus(terms.travels_for),
        };
        let moving = Moving { id: message.id, queue: lapsed.queue.clone(), priority: message.priority };
        let stamp = Stamp {
            fence: Some(lapsed.fence),
            claimed_at: Some(lapsed.claimed_at),
            node: Some(lapsed.node),
            now: lapsed.now,
        };
        // A message in a worker's hands can always lose its worker, so there is nothing to refuse.
        if let Ok(states) = state.advance(event, lapsed.now) {
            moves.add(&moving, state, event, states, &Note::default(), stamp);
        }
    }
    moves
}
