//! The outcomes that are not a success, as text.

use ichido_core::time::Timestamp;

/// Why an action is not retried, although the server did not refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// All allowed attempts failed.
    #[error("every try that is allowed was made")]
    TriesSpent,
    /// The server asked to wait longer than [`RetryRules::retry_after_max`](super::RetryRules::retry_after_max).
    #[error("the server asks to come back no sooner than {come_back_at}")]
    AskedToWait {
        /// When the server accepts the next request.
        come_back_at: Timestamp,
    },
    /// The next attempt would be after the deadline.
    #[error("the next try would be at {come_back_at}, after the time that all tries have together")]
    OutOfTime {
        /// When the next attempt would have been.
        come_back_at: Timestamp,
    },
    /// The response carries a different key, so it says nothing about our action.
    #[error("the answer is about another idempotency key than the one that was sent")]
    AnotherKey,
    /// It has no key and may have been done.
    // Spec: C4.
    #[error(
        "it changes state, has no idempotency key, and may have been done: sent again, it could be done twice; find out what became of \
         it, and give the next one a key"
    )]
    NoKey,
    /// The shared retry budget of this client is spent.
    #[error(
        "too many other calls to this server failed and were made again, so that the shared budget for retries is spent; it fills up as \
         calls succeed"
    )]
    BudgetSpent,
}

/// The kind of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key was used for a different request.
    ///
    /// An action has one key and one body. Either the body changed for this attempt, and the action was done with the
    /// first one, or the key belongs to another action.
    #[error(
        "the idempotency key was used for a different request; send an action with the bytes that it was first sent with, and a new action \
         under a new key"
    )]
    KeyConflict,
    /// The server stores an earlier failure as the outcome of the key.
    #[error(
        "the server keeps this failure as the outcome of the idempotency key, and says nothing else under it; find out what was done before \
         you begin anew, under a new key"
    )]
    KeptFailure,
    /// Any other refusal, with the server's own reason.
    #[error("the server will not do it")]
    ByServer,
}
