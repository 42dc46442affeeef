//! Dead letters: dead and parked messages, which wait for a person.
//!
//! Guarantee: a dead letter is kept until an operator's event, checked by the lifecycle, moves it. Each such event is an entry
//! of the message's history with its actor. A person may close a dead letter without sending it: it stays dead, and is
//! [closed](Disposition).
//!
//! ```
//! use ichido_core::lifecycle::State;
//! use ichido_core::retry::Guarantee;
//! use ichido_store::Store;
//! use ichido_store::dead_letter::{DeadLetterFilter, DeadLetterStep, RequeuePolicy};
//! use ichido_store::message::Note;
//!
//! # async fn requeue_all(store: &Store) -> Result<(), Box<dyn std::error::Error>> {
//! let note = Note { actor: Some("olivia".to_owned()), ..Note::default() };
//! let mut after = None;
//! loop {
//!     let page = store.dead_letters().page(&DeadLetterFilter::default(), after, 500).await?;
//!     let Some(last) = page.last() else { break };
//!     after = Some((last.since, last.id));
//!     let ids: Vec<_> = page.iter().map(|letter| letter.id).collect();
//!     let policy = RequeuePolicy { requeue: true, guarantee: Guarantee::Idempotent };
//!     for stepped in store.dead_letters().requeue(&ids, |_| policy, &note).await? {
//!         assert!(matches!(stepped, DeadLetterStep::Now(State::Queued { .. })));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
// SPEC A11, D17, E3, E4, F2.

use std::num::NonZeroU32;

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Decision, Doubt, Event, History, Reconciled, State, StepRefusal};
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use uuid::Uuid;

use crate::message::{DeadLetterState, QueueName};

/// The limits of dead letters.
pub mod limits {
    /// The most classes that are counted at once: queues times codes, and whether the effect is known.
    pub const MAX_CLASSES: u32 = 10_000;
    /// The most letters that are counted by class. Counting takes a few microseconds for each.
    pub const MAX_COUNTED: u32 = 30_000;
}

ichido_core::words! {
    /// Whether a person has closed a dead letter. A parked one is always open: it is decided, not closed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Disposition {
        /// It waits for a person.
        #[default]
        Open = "open",
        /// It needs no more attention. It may still be requeued.
        Discarded = "discarded",
        /// A new message replaces it, so it is not sent again.
        Replaced = "replaced",
    }
}

/// A filter of dead letters. The default selects every open, dead one.
///
/// State, disposition, queue, code or group, and time of death use an index; the other fields are checked for each remaining letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    /// Dead or parked.
    pub state: DeadLetterState,
    /// Open or closed.
    pub disposition: Disposition,
    /// With this queue.
    pub queue: Option<QueueName>,
    /// With this code as the last error.
    pub code: Option<ErrorCode>,
    /// With this knowledge of the effect.
    pub effect: Option<Effect>,
    /// With this identity.
    pub identity: Option<String>,
    /// Dead or parked at this time or later.
    pub since_from: Option<Timestamp>,
    /// Dead or parked before this time.
    pub since_before: Option<Timestamp>,
    /// With this text, case-sensitively, in the last error's message.
    pub text: Option<String>,
    /// Of this failure group.
    pub group: Option<Uuid>,
}

impl DeadLetterFilter {
    /// Returns where a page begins: after the last letter of the previous page, and before `since_before`.
    pub(crate) fn begin(&self, after: Option<(Timestamp, Uuid)>) -> Option<(Timestamp, Uuid)> {
        let before = self.since_before.map(|moment| (moment, Uuid::nil()));
        match (before, after) {
            (Some(before), Some(after)) => Some(before.min(after)),
            (before, after) => before.or(after),
        }
    }
}

/// A dead letter without its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterRow {
    /// The message's id.
    pub id: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// The caller's identity.
    pub identity: String,
    /// Its key.
    pub key: IdempotencyKey,
    /// Dead or parked.
    pub state: DeadLetterState,
    /// Open or closed.
    pub disposition: Disposition,
    /// Whether the effect was done, not done, or unknown.
    pub effect: Effect,
    /// The code of the last error.
    pub code: Option<String>,
    /// The message of the last error.
    pub error: Option<String>,
    /// Its failure group; `None` if an earlier release wrote it.
    pub group: Option<Uuid>,
    /// When it died or was parked.
    pub since: Timestamp,
    /// When a worker last asked the receiver about its unknown effect, and did not learn it.
    pub asked_at: Option<Timestamp>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// Its attempts so far.
    pub history: History,
    /// The priority; 0 is most urgent.
    pub priority: u8,
    /// The message that it replaces.
    pub replacement_of: Option<Uuid>,
    /// What it is about, for people.
    pub item: Option<String>,
    /// The size of its request.
    pub request_bytes: u64,
}

impl DeadLetterRow {
    /// Returns its lifecycle state.
    pub const fn lifecycle(&self) -> State {
        lifecycle(self.state, self.effect, self.history)
    }

    /// Returns what decides about it.
    pub fn traits(&self) -> LetterTraits {
        let Self { state, disposition, effect, history, .. } = *self;
        LetterTraits { queue: self.queue.clone(), state, disposition, effect, doubt: history.doubt }
    }

    pub(crate) fn requeued(&self, policy: RequeuePolicy, now: Timestamp) -> Event {
        requeued(&self.history, policy, now)
    }

    pub(crate) const fn decided(&self, decision: Decision, now: Timestamp) -> Event {
        decided(self.state, decision, now)
    }
}

/// What decides whether a letter may be requeued, discarded or decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterTraits {
    /// Its queue.
    pub queue: QueueName,
    /// Dead or parked.
    pub state: DeadLetterState,
    /// Open or closed.
    pub disposition: Disposition,
    /// Whether the effect was done, not done, or unknown.
    pub effect: Effect,
    /// What is unknown about its attempts.
    pub doubt: Option<Doubt>,
}

impl LetterTraits {
    /// Returns whether it could be requeued under this policy, or why not.
    pub fn check_requeue(&self, policy: RequeuePolicy, now: Timestamp) -> Result<(), StepRefusal> {
        self.check(requeued(&self.history(), policy, now), now)
    }

    /// Returns whether it could be decided this way, or why not.
    pub fn check_decision(&self, decision: Decision, now: Timestamp) -> Result<(), StepRefusal> {
        self.check(decided(self.state, decision, now), now)
    }

    fn check(&self, event: Event, now: Timestamp) -> Result<(), StepRefusal> {
        let state = lifecycle(self.state, self.effect, self.history());
        state.step(event, now).map(drop).map_err(|illegal| illegal.why)
    }

    /// Whether an operator may act does not depend on the number of attempts.
    const fn history(&self) -> History {
        History { doubt: self.doubt, ..History::new(NonZeroU32::MIN) }
    }
}

/// The letters that match a filter, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterClasses {
    /// By what decides about them.
    pub classes: Vec<LetterClass>,
    /// Whether more letters match than were counted.
    pub has_more: bool,
}

/// Letters about which everything decides alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterClass {
    /// What decides about each of them.
    pub traits: LetterTraits,
    /// The code of their last error.
    pub code: Option<String>,
    /// How many there are.
    pub count: u64,
}

const fn lifecycle(state: DeadLetterState, effect: Effect, history: History) -> State {
    match state {
        DeadLetterState::Dead => State::Dead { effect, history },
        DeadLetterState::Parked => State::Parked { history },
    }
}

fn requeued(history: &History, policy: RequeuePolicy, now: Timestamp) -> Event {
    let RequeuePolicy { requeue: allowed, guarantee } = policy;
    Event::Requeued { allowed, safety: history.safety(guarantee, now) }
}

/// A dead letter stays dead, and its effect becomes known.
const fn decided(state: DeadLetterState, decision: Decision, now: Timestamp) -> Event {
    match (decision, state) {
        (Decision::Done, DeadLetterState::Dead) => Event::Reconciled(Reconciled::Done),
        (Decision::NotDone, DeadLetterState::Dead) => Event::Reconciled(Reconciled::NotDone { due: now }),
        (decision, _) => Event::Decided(decision),
    }
}

/// A queue's policy for its dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequeuePolicy {
    /// Whether they may be requeued.
    // SPEC D17.
    pub requeue: bool,
    /// What its destination guarantees about repeated calls.
    pub guarantee: Guarantee,
}

/// The outcome of an operator's action on a dead letter.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterStep {
    /// It was applied; the message is now in this state.
    Now(State),
    /// It is not allowed, and nothing was changed.
    Refused(StepRefusal),
    /// It is not a dead letter, or no longer one: somebody else was faster.
    NoLetter,
}

/// The outcome of replacing a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "unless it was replaced, nothing was enqueued"]
pub enum ReplaceOutcome {
    /// The new message is enqueued, and the old one closed.
    By {
        /// The id of the new message.
        id: Uuid,
        /// What is known of the old one's effect. If it was done, the new message does it once more.
        effect: Effect,
    },
    /// The old message cannot be replaced, and nothing was changed.
    Refused(StepRefusal),
    /// The new message's key was used before, and nothing was changed.
    KeyUsed {
        /// The message that used it.
        id: Uuid,
    },
    /// There is no such dead letter.
    NoLetter,
}
