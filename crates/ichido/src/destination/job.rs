//! What a handler receives, and what it can return.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::text::with_causes;
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};
use ichido_store::message::{Note, QueueName};
use uuid::Uuid;

use super::{Cancel, DeliveryAttempt, DeliveryOutcome};

/// The wait before a message is tried again whose handler stopped although nobody asked to cancel it.
const CANCELLED_WAIT: Duration = Duration::from_secs(1);

// Flat, although it repeats most of `DeliveryAttempt`: handlers destructure it by name and move its parts.
/// One attempt of one message, its request parsed as `T`.
pub struct Job<T> {
    /// The request.
    pub payload: T,
    /// The message's id.
    pub message: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// The identity it acts for.
    pub identity: String,
    /// The outbound key: the same on every attempt.
    ///
    /// Pass it on to the services that you call.
    pub key: IdempotencyKey,
    /// The fence of its claim: greater than that of any earlier attempt.
    ///
    /// A receiver that stores it can refuse a late one.
    pub fence: Fence,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The hops so far. Pass them on as `Ichido-Hops` to the services that you call.
    // Spec: F1.
    pub hops: Hops,
    /// The trace it belongs to, in the format of `traceparent`.
    pub trace: Option<String>,
    /// Signals that the work is no longer wanted: stop, and return [`JobError::cancelled`] if nothing was done.
    pub cancel: Cancel,
}

impl<T> Job<T> {
    pub(super) fn new(call: DeliveryAttempt, payload: T, cancel: Cancel) -> Self {
        let DeliveryAttempt { message, queue, identity, key, fence, attempt, hops, trace, .. } = call;
        Self { payload, message, queue, identity, key, fence, attempt, hops, trace, cancel }
    }
}

/// Keeps payload and key out of logs.
impl<T> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("message", &self.message)
            .field("queue", &self.queue)
            .field("key", &self.key)
            .field("fence", &self.fence)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// The work was done. `Ok(())` is enough if there is nothing to report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSuccess {
    /// The receiver's own id of the result, such as an order number.
    pub receipt: Option<String>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
}

impl From<()> for JobSuccess {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<JobSuccess> for DeliveryOutcome {
    fn from(done: JobSuccess) -> Self {
        let verdict = Verdict::declared(None, Effect::Done, Advice::Accept, None, Some(PaceReport::Success));
        let JobSuccess { receipt, result_digest } = done;
        Self::Judged { verdict, note: Note { receipt, result_digest, ..Note::default() } }
    }
}

/// Why the work was not done, or may not have been.
///
/// Its effect is trusted: a handler that does not know must not claim that nothing was done.
///
/// `?` turns any other error into one of unknown effect. Such work is retried if the handler is repeatable or its upstream
/// deduplicates by key; otherwise it is parked for a person.
///
/// It does not implement [`std::error::Error`], so all other errors can be converted into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError(Box<DeliveryOutcome>); // Boxed to keep results small.

impl JobError {
    /// Nothing was done; retry as the queue's schedule says.
    pub fn retry(why: impl fmt::Display) -> Self {
        Self::judged(ErrorCode::Unknown, Effect::NotDone, Advice::Retry, None, None, why)
    }

    /// Nothing was done; retry as the schedule says, but not before `wait` is over.
    ///
    /// It affects only this message; to slow down all of them, see [`JobError::throttled`].
    pub fn retry_after(wait: Duration, why: impl fmt::Display) -> Self {
        Self::judged(ErrorCode::Unknown, Effect::NotDone, Advice::Retry, Some(wait), None, why)
    }

    /// Nothing was done, and no retry can help: a dead letter.
    pub fn dead(why: impl fmt::Display) -> Self {
        Self::judged(ErrorCode::BadRequest, Effect::NotDone, Advice::GiveUp, None, None, why)
    }

    /// It may have been done.
    ///
    /// Retried only if that cannot repeat the effect; otherwise parked, and looked up if possible.
    pub fn unknown(why: impl fmt::Display) -> Self {
        Self::judged(ErrorCode::Unknown, Effect::Unknown, Advice::Retry, None, None, why)
    }

    /// The upstream is called too fast, and did nothing.
    ///
    /// All nodes slow down for this destination; with a wait, none calls before it is over.
    // Spec: D6.
    pub fn throttled(wait: Option<Duration>, why: impl fmt::Display) -> Self {
        let report = Some(PaceReport::Throttled);
        Self::judged(ErrorCode::RateLimited, Effect::NotDone, Advice::Retry, wait, report, why)
    }

    /// The upstream is down, and did nothing.
    ///
    /// If this continues, all nodes pause this destination for a while.
    pub fn unreachable(why: impl fmt::Display) -> Self {
        let report = Some(PaceReport::Failure);
        Self::judged(ErrorCode::Broker5xx, Effect::NotDone, Advice::Retry, None, report, why)
    }

    /// Not now: nothing was done; retry after `wait`.
    ///
    /// The attempt does not count, except in a queue with start marks, where only a counted failure can follow the mark.
    pub fn snooze(wait: Duration) -> Self {
        Self(Box::new(DeliveryOutcome::Snoozed { wait }))
    }

    /// It stopped as [`Job::cancel`] asked, and nothing was done.
    ///
    /// The message is cancelled if somebody asked for that. Otherwise the worker is stopping, and the message is tried again, as
    /// after [`JobError::snooze`].
    // Spec: D2.
    pub fn cancelled() -> Self {
        Self::snooze(CANCELLED_WAIT)
    }

    pub(super) fn timed_out(after: Duration) -> Self {
        let why = format!("the handler took longer than {after:?} and was abandoned");
        Self::judged(ErrorCode::NetworkTimeout, Effect::Unknown, Advice::Retry, None, None, why)
    }

    /// Builds a failure. It does not concern other messages, so the pace ignores it without a report.
    fn judged(
        code: ErrorCode,
        effect: Effect,
        advice: Advice,
        hint: Option<Duration>,
        report: Option<PaceReport>,
        why: impl fmt::Display,
    ) -> Self {
        let verdict = Verdict::declared(Some(code), effect, advice, hint, report);
        Self(Box::new(DeliveryOutcome::with_reason(verdict, why.to_string())))
    }
}

impl From<JobError> for DeliveryOutcome {
    fn from(failed: JobError) -> Self {
        *failed.0
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for JobError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = error.into();
        Self::unknown(with_causes(&*error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Failed {
        text: &'static str,
        #[source]
        cause: Option<Box<Self>>,
    }

    #[test]
    fn cause_that_an_error_repeats_appears_once() {
        let cause = |text, cause| Some(Box::new(Failed { text, cause }));
        // As sqlx does.
        let inner = cause("error returned: (code: 1) no such table", cause("(code: 1) no such table", None));
        let DeliveryOutcome::Judged { note, .. } =
            JobError::from(Failed { text: "cannot save", cause: inner }).into()
        else {
            panic!("judged");
        };
        let expected = "cannot save: error returned: (code: 1) no such table";
        assert_eq!(note.excerpt.as_deref(), Some(expected));
    }
}
