//! Work of all kinds in one stream, and its answers.

use crate::ledger::{KeyClaimed, KeySettle, KeySettled};
use crate::message::{Enqueued, Numbered, Settlement, Stepped};
use crate::record::ClaimAttempt;

/// Work of any kind.
pub(crate) enum WriteJob {
    Claim(ClaimAttempt),
    Settle(KeySettle),
    Message(Numbered),
    Settlement(Settlement),
}

/// The answer to a [`WriteJob`], of the same kind.
pub(crate) enum WriteResult {
    Claimed(KeyClaimed),
    Settled(KeySettled),
    Enqueued(Enqueued),
    Stepped(Stepped),
}
