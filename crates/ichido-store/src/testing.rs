//! What tests of this crate, and of those above it, need to run on real databases.
//!
//! Guarantee: every database handed out is new and empty, lives in a temporary folder, runs with the durability we ship
//! with, and is gone when its owner is, however that ends.

pub mod postgres;
pub mod sqlite;

use crate::error::StoreError;

/// Calls the store again while it is busy, for tests in which several callers meet at one row.
///
/// On a slow machine a row can be locked for longer than a call waits for it. [`StoreError::Busy`] means that nothing was done, so
/// calling again loses nothing and repeats nothing.
///
/// # Panics
/// If the call fails in any other way.
pub async fn while_busy<T, F>(mut call: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        match call().await {
            Err(StoreError::Busy) => tokio::task::yield_now().await,
            answer => return answer.expect("the store answers"),
        }
    }
}
