//! Writes a batch so that a bad row fails alone, and resolves a broken connection by reading back.
//!
//! Writing a batch again is harmless because each row recognises its own earlier write: a claim by the id of its attempt, an
//! enqueue by the id of its message, a settle by its fence. The caller gets an unknown outcome only if the database cannot be
//! asked.

use std::time::Duration;

use crate::error::StoreError;

/// How often a batch is retried after the connection broke, before it is split or fails.
const MAX_RETRIES: u32 = 6;
/// The same for a part of a batch: the whole was retried enough.
const MAX_PART_RETRIES: u32 = 1;
/// The first backoff before a retry; it doubles.
const RETRY_WAIT: Duration = Duration::from_millis(50);
/// How many parts of a batch may break the connection before the rest is given up. One bad job among a thousand breaks ten
/// parts before it is alone.
const MAX_BREAKS: u32 = 32;
/// How many parts of a batch are written before the rest gets `Busy`. Finding 50 locked jobs among a thousand takes about as
/// many.
const MAX_PARTS: u32 = 512;

/// How a batch is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteMode {
    /// Whether an earlier write of the same jobs may have been done although its answer was lost. This write finds out and
    /// returns its results. That is how a COMMIT of unknown fate is read back.
    pub is_retry: bool,
    /// Whether it is a part of a batch that failed as a whole. It hardly waits for locks, because the whole has waited.
    pub is_part: bool,
}

/// Writes one batch and returns the result of each job, in order.
pub trait BatchWriter<J, R>: Send + Sync + 'static {
    /// Whether a busy database is busy for every job alike. Splitting a batch would then only wait once per part. SQLite has
    /// one writer, PostgreSQL has row locks.
    const BUSY_FOR_ALL: bool;

    /// Returns a job's subject. Two jobs about one subject are written in the order they came. Used only with a side queue,
    /// which a single writer never needs.
    fn about(_job: &J) -> u64 {
        0
    }

    /// Writes the jobs. Must be harmless to repeat.
    fn write(&self, jobs: &[J], manner: WriteMode)
    -> impl Future<Output = Result<Vec<R>, StoreError>> + Send;
}

/// The outcome of a batch, or of a part of one.
pub(crate) enum BatchOutcome<R> {
    /// Every job has a result.
    Answered(Vec<Result<R, StoreError>>),
    /// Some job is to blame: [`write_split`] finds out which. `was_lost` tells whether the batch may have been done anyway.
    Split { was_lost: bool },
}

/// Writes jobs. A batch that fails is split until the job to blame is alone.
pub(crate) async fn write_all<J: Sync, R: Send>(
    writer: &impl BatchWriter<J, R>,
    jobs: &[J],
) -> Vec<Result<R, StoreError>> {
    match write_whole(writer, jobs).await {
        BatchOutcome::Answered(results) => results,
        BatchOutcome::Split { was_lost } => write_split(writer, jobs, was_lost).await,
    }
}

/// Writes a batch as a whole.
pub(crate) async fn write_whole<J: Sync, R: Send>(
    writer: &impl BatchWriter<J, R>,
    jobs: &[J],
) -> BatchOutcome<R> {
    write_with_retries(writer, jobs, WriteMode::default(), MAX_RETRIES).await.0
}

/// Writes a batch in halves, and halves that fail in halves again.
pub(crate) async fn write_split<J: Sync, R: Send>(
    writer: &impl BatchWriter<J, R>,
    jobs: &[J],
    was_lost: bool,
) -> Vec<Result<R, StoreError>> {
    let mut results = Vec::with_capacity(jobs.len());
    let mut parts = Vec::from(halves(jobs, was_lost));
    let (mut written, mut broken, mut is_unreachable) = (0, 0, false);
    while let Some((part, was_lost)) = parts.pop() {
        if is_unreachable || MAX_BREAKS <= broken {
            results.extend(part.iter().map(|_| Err(or_unknown(unreachable_error(), was_lost))));
            continue;
        }
        if MAX_PARTS <= written {
            results.extend(part.iter().map(|_| Err(or_unknown(StoreError::Busy, was_lost))));
            continue;
        }
        let manner = WriteMode { is_retry: was_lost, is_part: true };
        let (outcome, end) = write_with_retries(writer, part, manner, MAX_PART_RETRIES).await;
        written += 1;
        broken += u32::from(end == WriteEnd::Disconnected);
        is_unreachable = end == WriteEnd::Unreachable;
        match outcome {
            BatchOutcome::Answered(answers) => results.extend(answers),
            BatchOutcome::Split { was_lost } => parts.extend(halves(part, was_lost)),
        }
    }
    results
}

/// Returns both halves, each as uncertain as the whole; the left one is popped first.
fn halves<J>(jobs: &[J], was_lost: bool) -> [(&[J], bool); 2] {
    let (left, right) = jobs.split_at(jobs.len() / 2);
    [(right, was_lost), (left, was_lost)]
}

/// How the last write of a part ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteEnd {
    /// With an answer.
    Answered,
    /// The connection broke.
    Disconnected,
    /// The database could not be reached.
    Unreachable,
}

async fn write_with_retries<J: Sync, R: Send, W: BatchWriter<J, R>>(
    writer: &W,
    jobs: &[J],
    mut manner: WriteMode,
    max_retries: u32,
) -> (BatchOutcome<R>, WriteEnd) {
    let mut wait = RETRY_WAIT;
    let mut left = max_retries;
    loop {
        let outcome = writer.write(jobs, manner).await;
        let is_open = match &outcome {
            Err(StoreError::Unknown(_)) => {
                manner.is_retry = true;
                true
            }
            // The database may still be executing the lost write, or was not reached: neither undoes what may have been done.
            Err(StoreError::Busy | StoreError::Unavailable(_) | StoreError::Full) => manner.is_retry,
            _ => false,
        };
        if !is_open || left == 0 {
            return batch_outcome(outcome, jobs.len(), manner.is_retry, W::BUSY_FOR_ALL);
        }
        left -= 1;
        tokio::time::sleep(wait).await;
        wait = wait.saturating_mul(2);
    }
}

fn batch_outcome<R>(
    outcome: Result<Vec<R>, StoreError>,
    jobs: usize,
    was_lost: bool,
    busy_for_all: bool,
) -> (BatchOutcome<R>, WriteEnd) {
    let (end, for_all) = match &outcome {
        Err(StoreError::Unknown(_)) => (WriteEnd::Disconnected, false),
        Err(StoreError::Unavailable(_) | StoreError::Full | StoreError::FileLost { .. }) => {
            (WriteEnd::Unreachable, true)
        }
        Err(StoreError::Busy) => (WriteEnd::Answered, busy_for_all),
        _ => (WriteEnd::Answered, false),
    };
    let outcome = match outcome {
        Ok(answers) => BatchOutcome::Answered(answers.into_iter().map(Ok).collect()),
        // A single job; or splitting is pointless, because the database is unreachable or busy for everybody.
        Err(error) if jobs == 1 || for_all => {
            let other = || match &error {
                StoreError::Full => StoreError::Full,
                StoreError::FileLost { file } => StoreError::FileLost { file: file.clone() },
                _ if end == WriteEnd::Unreachable => unreachable_error(),
                _ => StoreError::Busy,
            };
            let mut errors: Vec<StoreError> = (1..jobs).map(|_| other()).collect();
            errors.insert(0, error);
            BatchOutcome::Answered(errors.into_iter().map(|error| Err(or_unknown(error, was_lost))).collect())
        }
        Err(_) => BatchOutcome::Split { was_lost },
    };
    (outcome, end)
}

/// Turns an error into `Unknown` if an earlier write may have been done.
pub(crate) fn or_unknown(error: StoreError, was_lost: bool) -> StoreError {
    match error {
        StoreError::Unavailable(error) if was_lost => StoreError::Unknown(error),
        StoreError::Busy | StoreError::Full if was_lost => StoreError::Unknown(sqlx::Error::PoolTimedOut),
        error => error,
    }
}

fn unreachable_error() -> StoreError {
    StoreError::Unavailable(sqlx::Error::PoolTimedOut)
}

#[cfg(test)]
mod tests;
