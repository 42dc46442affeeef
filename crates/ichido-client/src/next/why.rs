//! The ends that are no success, in words.

use ichido_core::time::Timestamp;

/// Why an action is not sent again, although the server did not refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// As many tries failed as are allowed.
    #[error("every try that is allowed was made")]
    TriesSpent,
    /// The server asked to be left alone for longer than [`RetryRules::retry_after_max`](super::RetryRules::retry_after_max).
    #[error("the server asks to come back no sooner than {come_back_at}")]
    AskedToWait {
        /// When it wants to be asked again.
        come_back_at: Timestamp,
    },
    /// The next try would come after the deadline.
    #[error("the next try would be at {come_back_at}, after the time that all tries have together")]
    OutOfTime {
        /// When the next try would have been.
        come_back_at: Timestamp,
    },
    /// The answer carries another key than ours, so that it says nothing of our action.
    #[error("the answer is about another idempotency key than the one that was sent")]
    AnotherKey,
    /// It has no key, and may have been done (SPEC C4).
    #[error(
        "it changes state, has no idempotency key, and may have been done: sent again, it could be done twice; find out what became of \
         it, and give the next one a key"
    )]
    NoKey,
    /// The retries that all calls of this client share are used up.
    #[error(
        "too many other calls to this server failed and were made again, so that the shared budget for retries is spent; it fills up as \
         calls succeed"
    )]
    BudgetSpent,
}

/// What kind of no an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key was used for a different request. An action has one key and one body: either the body was made anew for this try, and the
    /// action was done with the first one, or the key belongs to another action.
    #[error(
        "the idempotency key was used for a different request; send an action with the bytes that it was first sent with, and a new action \
         under a new key"
    )]
    KeyConflict,
    /// The action failed once, and the server keeps that failure as the outcome of the key: it answers with it again and again.
    #[error(
        "the server keeps this failure as the outcome of the idempotency key, and says nothing else under it; find out what was done before \
         you begin anew, under a new key"
    )]
    KeptFailure,
    /// Any other no, in the server's own words.
    #[error("the server will not do it")]
    ByServer,
}
