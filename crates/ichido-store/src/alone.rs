//! Writing a batch so that a failing row fails alone, and a broken connection is resolved by looking again.

use std::time::Duration;

use crate::error::StoreError;

/// How often a batch is written again after the connection broke, before its callers are told.
const AGAIN_MAX: u32 = 6;
/// The first wait before that; it doubles.
const AGAIN_WAIT: Duration = Duration::from_millis(50);

/// Writes one batch and answers each of its jobs, in order.
pub(crate) trait Write<J, R>: Send + Sync + 'static {
    /// Whether a busy database is busy for every job alike, so that splitting a batch only waits as often as it has parts: SQLite has
    /// one writer, PostgreSQL has locks on rows.
    const BUSY_FOR_ALL: bool;

    /// Must be harmless to repeat: with `again` set, an earlier write of the same jobs may have been done though its answer
    /// was lost, and this one finds that out and answers for it. That is how a COMMIT of unknown fate is read back.
    fn write(&self, jobs: &[J], again: bool) -> impl Future<Output = Result<Vec<R>, StoreError>> + Send;
}

/// Writes jobs; a batch that is refused is split in halves until the job to blame is alone.
pub(crate) async fn write_all<J: Sync, R: Send, W: Write<J, R>>(
    writer: &W,
    jobs: &[J],
) -> Vec<Result<R, StoreError>> {
    let mut results = Vec::with_capacity(jobs.len());
    let mut parts = vec![jobs];
    while let Some(part) = parts.pop() {
        match write_again(writer, part).await {
            Ok(answers) => results.extend(answers.into_iter().map(Ok)),
            Err(error @ (StoreError::Unavailable(_) | StoreError::Unknown(_))) => {
                // No use in splitting: the database is away for everybody.
                let lost = matches!(error, StoreError::Unknown(_));
                results.push(Err(error));
                results.extend(part.iter().skip(1).map(|_| Err(away(lost))));
            }
            Err(StoreError::Busy) if W::BUSY_FOR_ALL => {
                results.extend(part.iter().map(|_| Err(StoreError::Busy)));
            }
            Err(error) if part.len() == 1 => results.push(Err(error)),
            Err(_) => {
                let (left, right) = part.split_at(part.len() / 2);
                parts.push(right);
                parts.push(left);
            }
        }
    }
    results
}

fn away(lost: bool) -> StoreError {
    let error = sqlx::Error::PoolTimedOut;
    if lost { StoreError::Unknown(error) } else { StoreError::Unavailable(error) }
}

async fn write_again<J: Sync, R: Send>(writer: &impl Write<J, R>, jobs: &[J]) -> Result<Vec<R>, StoreError> {
    let mut wait = AGAIN_WAIT;
    let mut was_lost = false;
    for _ in 0..AGAIN_MAX {
        match writer.write(jobs, was_lost).await {
            Err(StoreError::Unknown(_)) => was_lost = true,
            Err(StoreError::Unavailable(_)) if was_lost => (),
            outcome => return outcome,
        }
        tokio::time::sleep(wait).await;
        wait = wait.saturating_mul(2);
    }
    match writer.write(jobs, was_lost).await {
        // Not reached now does not unmake what may have been done then.
        Err(StoreError::Unavailable(error)) if was_lost => Err(StoreError::Unknown(error)),
        outcome => outcome,
    }
}
