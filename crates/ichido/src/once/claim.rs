//! What passes between the layer and the handler, beside the request and the response themselves.

use ichido_core::fence::Fence;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::RecordName;
use uuid::Uuid;

/// The claim under which a handler runs, among its request's extensions.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Operation, identity and key.
    pub name: RecordName,
    /// Grows with each claim of the key. A receiver that remembers the greatest one it saw can refuse a call that was overtaken.
    pub fence: Fence,
}

impl Claim {
    /// The key for a call to somebody else that is one step of this action: the same on every run, another for each step, and
    /// telling nobody the client's own key.
    pub fn key_for(&self, step: &str) -> IdempotencyKey {
        let RecordName { operation, identity, key } = &self.name;
        IdempotencyKey::derived(
            "once/step",
            &[operation.as_bytes(), identity.as_bytes(), key.as_str().as_bytes(), step.as_bytes()],
        )
    }
}

/// Among a response's extensions: the message that was made with it. The key is not forgotten while that message may still
/// be sent (SPEC A5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made(pub Uuid);

/// Among a response's extensions, in transactional mode: the transaction met another one (a serialisation failure, a
/// deadlock), so roll it back and run the handler again. Bounded; the last response is then the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAgain;

impl RunAgain {
    /// Whether this is what an error of the database says.
    pub fn is_called_for(error: &sqlx::Error) -> bool {
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        matches!(code.as_deref(), Some("40001" | "40P01"))
    }
}
