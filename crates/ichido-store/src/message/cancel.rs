//! What comes of asking to cancel a message.

use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;

use super::Note;

/// What came of [`Messages::cancel`](crate::Messages::cancel).
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It is cancelled, and is not sent again.
    Cancelled,
    /// An attempt is in flight, and its worker is asked to stop it. What is known of the effect then decides.
    Requested,
    /// It is parked or has ended in this state; nothing changed.
    Refused(StateName),
    /// There is no such message.
    NoSuchMessage,
}

/// A request to cancel a message in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancellation {
    /// When it was made.
    pub requested_at: Timestamp,
    /// Who made it.
    pub actor: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl Cancellation {
    /// Returns the note of the event that cancels the message.
    pub fn note(self) -> Note {
        Note { actor: self.actor, excerpt: self.reason, ..Note::default() }
    }
}
