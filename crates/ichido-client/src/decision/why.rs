//! The outcomes that are not a success, as text.

use ichido_core::time::Timestamp;

/// Why an action is not retried, although the server did not refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GiveUpReason {
    /// All allowed attempts failed.
    #[error("all attempts failed")]
    TriesSpent,
    /// The server asked to wait longer than [`RetryRules::max_retry_after`](super::RetryRules::max_retry_after).
    #[error("the server asks for no retry before {come_back_at}")]
    AskedToWait {
        /// When the server accepts the next request.
        come_back_at: Timestamp,
    },
    /// The next attempt would be after the deadline.
    #[error("the next attempt would be at {come_back_at}, after the total timeout")]
    OutOfTime {
        /// When the next attempt would have been.
        come_back_at: Timestamp,
    },
    /// The response carries a different key, so it says nothing about our action.
    #[error("the response is for a different idempotency key than the one sent")]
    AnotherKey,
    /// It has no key and may have been done.
    // Spec: C4.
    #[error(
        "the request changes state, has no idempotency key, and may have taken effect: a retry could repeat the \
         effect; check whether it took effect, and use a key next time"
    )]
    NoKey,
    /// The shared retry budget of this client is spent.
    #[error(
        "too many other calls to this server failed and were retried, so the shared retry budget is spent; it refills \
         as calls succeed"
    )]
    BudgetSpent,
}

/// The kind of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusalReason {
    /// The key was used for a different request.
    ///
    /// An action has one key and one body. Either the body changed for this attempt, and the action was done with the
    /// first one, or the key belongs to another action.
    #[error(
        "the idempotency key was used for a different request; retry an action with its original bytes, and use a new \
         key for a new action"
    )]
    KeyConflict,
    /// The server stores an earlier failure as the outcome of the key.
    #[error(
        "the server stores this failure as the outcome of the idempotency key and always replays it; check what was \
         done before you start again with a new key"
    )]
    KeptFailure,
    /// Any other refusal, with the server's own reason.
    #[error("the server refused the request")]
    ByServer,
}
