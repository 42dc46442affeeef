//! Jobs of all kinds in one stream, and their results.

use crate::ledger::{KeyClaimed, KeySettle, KeySettled};
use crate::message::{EnqueueOutcome, NumberedMessage, Settlement, StepResult};
use crate::record::ClaimAttempt;

/// A job of any kind.
pub(crate) enum WriteJob {
    Claim(ClaimAttempt),
    Settle(KeySettle),
    Message(NumberedMessage),
    Settlement(Settlement),
}

/// The result of a [`WriteJob`], of the same kind.
pub(crate) enum WriteResult {
    Claimed(KeyClaimed),
    Settled(KeySettled),
    Enqueued(EnqueueOutcome),
    Stepped(StepResult),
}
