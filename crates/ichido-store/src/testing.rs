//! Test support: real databases for this crate's tests and those above it.
//!
//! Guarantee: every database is new and empty, lives in a temporary folder, runs with the durability we ship with, and is
//! removed with its owner, however that ends.

pub mod postgres;
pub mod sqlite;
pub mod stoppable;

use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::dead_letter::{DeadLetterRow, DeadLetterStep};
use crate::error::StoreError;
use crate::message::{Note, StepResult};
use crate::store::{DeadLetters, Messages};

impl Messages<'_> {
    /// Applies any event of the lifecycle to one message, which programs cannot.
    pub async fn step(
        self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<StepResult, StoreError> {
        self.apply(id, event, note).await
    }
}

impl DeadLetters<'_> {
    /// Applies any event of the lifecycle to dead letters, which programs cannot.
    pub async fn step(
        self,
        ids: &[Uuid],
        event: impl Fn(&DeadLetterRow, Timestamp) -> Event + Send + Sync,
        note: &Note,
    ) -> Result<Vec<DeadLetterStep>, StoreError> {
        self.apply(ids, &event, note).await
    }
}

/// Retries a call while the store is busy, for tests in which several callers use one row.
///
/// On a slow machine a row can be locked, or all connections can be in use, for longer than a call waits. Both errors mean that
/// nothing was done, so a retry loses nothing and repeats nothing.
///
/// # Panics
/// If the call fails in any other way.
pub async fn while_busy<T, F>(mut call: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        match call().await {
            Err(StoreError::Busy | StoreError::Unavailable(sqlx::Error::PoolTimedOut)) => {
                tokio::task::yield_now().await;
            }
            answer => return answer.expect("the store responds"),
        }
    }
}
