//! Types that the layer and the handler exchange besides request and response.

use ichido_core::fence::Fence;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::RecordName;
use uuid::Uuid;

/// The key under which a handler runs, in its request's extensions.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Operation, identity and key.
    pub name: RecordName,
    /// Grows with each claim of the key.
    ///
    /// A receiver that remembers the greatest fence can refuse a call that was overtaken. `None` in transactional mode
    /// without [`Once::claim_first`](super::Once::claim_first): the key is not claimed, and effects belong in the
    /// transaction.
    pub fence: Option<Fence>,
}

impl Claim {
    /// Derives the key for a call that is one step of this action.
    ///
    /// The key is the same on every run, differs between steps, and does not reveal the client's own key.
    pub fn key_for(&self, step: &str) -> IdempotencyKey {
        let RecordName { operation, identity, key } = &self.name;
        IdempotencyKey::derived(
            "once/step",
            &[operation.as_bytes(), identity.as_bytes(), key.as_str().as_bytes(), step.as_bytes()],
        )
    }
}

/// The message that was enqueued with a response, in its extensions.
///
/// The key is kept while that message may still be sent.
// Spec: A5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnqueuedMessage(pub Uuid);

/// Says that an earlier request had done the same under another key, in a response's extensions.
///
/// The handler finds this out by content, such as a URL that was saved before, and responds with the earlier result. The
/// layer stores the response under the request's own key and counts the request as a duplicate, in its metrics and for
/// the alert `duplicates`.
// Spec: A7, A14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SameContent;

/// Requests another run of the transaction, in a response's extensions.
///
/// Use it in transactional mode after a serialisation failure or deadlock: the layer rolls back and runs the handler again.
/// The number of runs is limited; the last response is then returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryTransaction;

impl RetryTransaction {
    /// Returns whether a database error calls for another run.
    pub fn is_needed_for(error: &sqlx::Error) -> bool {
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        matches!(code.as_deref(), Some("40001" | "40P01"))
    }
}
