//! Requeues many failed jobs at once, for an operator.
//!
//! Guarantee: a dead job returns to its queue with its attempts at 0 and its history kept, if the engine's lifecycle
//! allows it. A job that fails again meanwhile is not retried twice. If it is stopped, completed work stays, and
//! running it again continues with the rest.
// SPEC E4.

use ichido::dead_letters::{RequeuePolicies, RequeuePolicy, Resolution, record_resolution};
use ichido::retry::Guarantee;
use ichido::store::Store;
use ichido::store::dead_letter::{DeadLetterFilter, DeadLetterRow, DeadLetterStep};
use ichido::store::error::StoreError;
use ichido::store::message::{Note, QueueName};

use crate::job_error::JobErrorCode;
use crate::jobs;
use crate::settings::limits;

/// The actor in the history of each job.
const ACTOR: &str = "bookmarks retry-failed";

/// Counts of failed jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retried {
    /// Requeued jobs.
    pub put_back: u64,
    /// Jobs not asked for, or that a retry cannot help.
    pub left: u64,
}

/// Why failed jobs could not be requeued.
#[derive(Debug, thiserror::Error)]
pub enum RetryError {
    /// The code does not exist.
    #[error("unknown error code {code:?}; use one of {}", codes())]
    CodeUnknown {
        /// The code asked for.
        code: String,
    },
    /// The database failed.
    #[error(
        "the store failed after {} jobs were requeued: {}; run the command again to requeue the rest",
        .before.put_back,
        .error.with_causes()
    )]
    Store {
        /// What was done before.
        before: Retried,
        /// The cause.
        #[source]
        error: StoreError,
    },
}

fn codes() -> String {
    JobErrorCode::ALL.iter().map(|job_error| job_error.as_str()).collect::<Vec<_>>().join(", ")
}

/// Requeues all jobs that failed with a code, or all that a retry can help; or counts them.
pub(crate) async fn retry_failed(
    store: &Store,
    code: Option<&str>,
    only_count: bool,
) -> Result<Retried, RetryError> {
    let asked_for = match code {
        None => None,
        Some(code) => {
            Some(JobErrorCode::of_code(code).ok_or(RetryError::CodeUnknown { code: code.to_owned() })?)
        }
    };
    let is_meant = |letter: &DeadLetterRow| {
        let job_error = JobErrorCode::of_error(letter.error.as_deref());
        asked_for.map_or(job_error.is_retryable(), |asked_for| job_error == asked_for)
    };
    let mut retried = Retried::default();
    let mut went = Ok(());
    for queue in jobs::queues() {
        went = of_queue(store, queue, is_meant, only_count, &mut retried).await;
        if went.is_err() {
            break;
        }
    }
    went.map(|()| retried).map_err(|error| RetryError::Store { before: retried, error })
}

/// Works one page at a time. The engine's bulk operation cannot distinguish our codes: its filter searches for a text
/// anywhere in an error.
async fn of_queue(
    store: &Store,
    queue: QueueName,
    is_meant: impl Fn(&DeadLetterRow) -> bool,
    only_count: bool,
    retried: &mut Retried,
) -> Result<(), StoreError> {
    let policy = RequeuePolicy { requeue: true, guarantee: Guarantee::Idempotent };
    let policies = RequeuePolicies::default().with(queue.clone(), policy);
    let note = Note { actor: Some(ACTOR.to_owned()), ..Note::default() };
    let now = store.now().await?;
    // A job that fails again while this runs is not considered twice.
    let filter =
        DeadLetterFilter { queue: Some(queue), since_before: Some(now), ..DeadLetterFilter::default() };
    let mut after = None;
    loop {
        let page = store.dead_letters().page(&filter, after, limits::MAX_RETRIED_AT_ONCE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.since, last.id));
        let (meant, left): (Vec<_>, Vec<_>) = page.into_iter().partition(&is_meant);
        retried.left += count(left.len());
        if only_count {
            retried.put_back += count(meant.len());
            continue;
        }
        let ids: Vec<_> = meant.iter().map(|letter| letter.id).collect();
        let stepped = store.dead_letters().requeue(&ids, |letter| policies.of(letter), &note).await?;
        for (letter, stepped) in meant.iter().zip(stepped) {
            match stepped {
                DeadLetterStep::Now(_) => {
                    record_resolution(&letter.queue, Resolution::Requeued, letter.since, now);
                    retried.put_back += 1;
                }
                DeadLetterStep::Refused(_) => retried.left += 1,
                // Another retry was faster.
                DeadLetterStep::NoLetter => (),
            }
        }
    }
}

fn count(letters: usize) -> u64 {
    u64::try_from(letters).unwrap_or(u64::MAX)
}
