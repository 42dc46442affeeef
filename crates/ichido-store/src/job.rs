//! Work of all kinds in one stream, and its answers.

use crate::ledger::{KeyClaimed, KeySettle, KeySettled};
use crate::message::{Enqueued, Numbered, Settlement, Stepped};
use crate::record::Attempt;

/// Work of any kind.
pub(crate) enum Job {
    Claim(Attempt),
    Settle(KeySettle),
    Message(Numbered),
    Settlement(Settlement),
}

/// The answer to a [`Job`], of the same kind.
pub(crate) enum Answer {
    Claimed(KeyClaimed),
    Settled(KeySettled),
    Enqueued(Enqueued),
    Stepped(Stepped),
}
