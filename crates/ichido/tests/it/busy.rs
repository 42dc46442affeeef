//! Calls that meet others at one row.

use ichido_store::error::StoreError;

/// Asks again while the store is busy: on a busy machine a row may be held for longer than a call waits, and then nothing was done.
pub(crate) async fn while_busy<T, F>(mut call: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        match call().await {
            Err(StoreError::Busy) => tokio::task::yield_now().await,
            answer => return answer.expect("an answer"),
        }
    }
}
