//! Letters: dead and parked messages, which wait for a person.
//!
//! Guarantee: a letter is kept until an operator's event, judged by the lifecycle, moves it; each such event is an entry of the
//! message's history with its actor. A person may be done with a dead one without sending it: it stays dead, and is
//! [closed](Standing).
//!
//! ```
//! use ichido_core::lifecycle::{Event, State};
//! use ichido_core::retry::Safety;
//! use ichido_store::Store;
//! use ichido_store::letter::{LetterFilter, LetterStepped};
//! use ichido_store::message::Note;
//!
//! # async fn requeue_all(store: &Store) -> Result<(), Box<dyn std::error::Error>> {
//! let note = Note { actor: Some("olivia".to_owned()), ..Note::default() };
//! let mut after = None;
//! loop {
//!     let page = store.dead_letters().page(&LetterFilter::default(), after, 500).await?;
//!     let Some(last) = page.last() else { break };
//!     after = Some((last.since, last.id));
//!     let ids: Vec<_> = page.iter().map(|letter| letter.id).collect();
//!     let requeue = |_: &_, _| Event::Requeued { allowed: true, safety: Safety::Keyed };
//!     for stepped in store.dead_letters().step(&ids, requeue, &note).await? {
//!         assert!(matches!(stepped, LetterStepped::Now(State::Queued { .. })));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
// SPEC A11, D17, E3, E4, F2.

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{History, State, Why};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use uuid::Uuid;

use crate::message::{LetterState, QueueName};

ichido_core::words! {
    /// Whether a person is done with a letter. A parked one is always open: it is decided, not closed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Standing {
        /// It waits for a person.
        #[default]
        Open = "open",
        /// It needs no more attention. It may still be requeued, should somebody think again.
        Discarded = "discarded",
        /// A new message was made from it: it is not sent again beside that one.
        Replaced = "replaced",
    }
}

/// Which letters. The default is every dead one that is open.
///
/// State, standing, queue and time of death go by an index; the other fields are looked at in each letter that those leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterFilter {
    /// Dead or parked.
    pub state: LetterState,
    /// Open or closed.
    pub standing: Standing,
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// With this code as the last error.
    pub code: Option<ErrorCode>,
    /// Of which this is known.
    pub effect: Option<Effect>,
    /// Of this identity.
    pub identity: Option<String>,
    /// Dead or parked from this moment on.
    pub since_from: Option<Timestamp>,
    /// Dead or parked before this moment.
    pub since_before: Option<Timestamp>,
    /// With this text, cased so, in what the last error said.
    pub text: Option<String>,
}

impl LetterFilter {
    /// Where a page begins: behind the last letter of the page before, and before the latest moment that is asked for.
    pub(crate) fn begin(&self, after: Option<(Timestamp, Uuid)>) -> Option<(Timestamp, Uuid)> {
        let before = self.since_before.map(|moment| (moment, Uuid::nil()));
        match (before, after) {
            (Some(before), Some(after)) => Some(before.min(after)),
            (before, after) => before.or(after),
        }
    }
}

/// A letter without its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterRow {
    /// The message's id.
    pub id: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// For whom.
    pub identity: String,
    /// Its key.
    pub key: IdempotencyKey,
    /// Dead or parked.
    pub state: LetterState,
    /// Open or closed.
    pub standing: Standing,
    /// What is known of its effect.
    pub effect: Effect,
    /// The code of the last error.
    pub code: Option<String>,
    /// What the last error said.
    pub error: Option<String>,
    /// When it died or was parked.
    pub since: Timestamp,
    /// When it was put in.
    pub created_at: Timestamp,
    /// What has been tried.
    pub history: History,
    /// 0 is most urgent.
    pub priority: u8,
    /// The message that it was made from.
    pub made_from: Option<Uuid>,
    /// How long its request is.
    pub request_bytes: u64,
}

impl LetterRow {
    /// Its state, as the lifecycle has it.
    pub const fn lifecycle(&self) -> State {
        match self.state {
            LetterState::Dead => State::Dead { effect: self.effect, history: self.history },
            LetterState::Parked => State::Parked { history: self.history },
        }
    }
}

/// What an event made of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterStepped {
    /// It stands; the message is now in this state.
    Now(State),
    /// It does not apply, and nothing was changed.
    Refused(Why),
    /// It is no letter, or none any more: somebody else was quicker.
    NoLetter,
}

/// What came of making a new message from a dead one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The new one is in, and the old one closed.
    By {
        /// The new one's id.
        id: Uuid,
        /// What is known of the old one's effect: where it was done, the new one does it once more.
        effect: Effect,
    },
    /// The old one does not allow it, and nothing was changed.
    Refused(Why),
    /// The new one's key was used before, and nothing was changed.
    KeyUsed {
        /// By this message.
        id: Uuid,
    },
    /// There is no such dead letter.
    NoLetter,
}
