//! What a handler gets, and what it may say came of it.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};
use ichido_store::message::{Note, QueueName};
use uuid::Uuid;

use super::{Call, Came, Cancel};

// Flat, though it repeats most of `Call`: handlers take it apart by name and move its parts.
/// One try of one message, its request read as `T`.
pub struct Job<T> {
    /// The request.
    pub payload: T,
    /// The message's id.
    pub message: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// For whom it acts.
    pub identity: String,
    /// The outbound key: the same on every try. What is called on the way should get it.
    pub key: IdempotencyKey,
    /// The claim under which it is made: greater than that of any earlier try. Whoever keeps it can refuse a late one.
    pub fence: Fence,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// The way it came (SPEC F1). What is called on the way should get it as `Ichido-Hops`.
    pub hops: Hops,
    /// The trace it belongs to, as `traceparent` has it.
    pub trace: Option<String>,
    /// Tells when the work is no longer wanted.
    pub cancel: Cancel,
}

impl<T> Job<T> {
    pub(super) fn new(call: Call, payload: T, cancel: Cancel) -> Self {
        let Call { message, queue, identity, key, fence, attempt, hops, trace, .. } = call;
        Self { payload, message, queue, identity, key, fence, attempt, hops, trace, cancel }
    }
}

/// Payload and key stay out of logs.
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

/// The work was done. `Ok(())` is as good where there is nothing to say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The receiver's own name for what it did, such as an order's number.
    pub receipt: Option<String>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
}

impl From<()> for Done {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<Done> for Came {
    fn from(done: Done) -> Self {
        let verdict = Verdict::said(None, Effect::Done, Advice::Accept, None, Some(PaceReport::Success));
        let Done { receipt, result_digest } = done;
        Self::Judged { verdict, note: Note { receipt, result_digest, ..Note::default() } }
    }
}

/// What a handler says when the work was not done, or not surely. What it says of the effect is believed: where it does not
/// know, it must not say that nothing was done.
///
/// Any other error becomes one of unknown effect by `?`: then the work is tried again where the handler is repeatable or what it
/// calls honours the key, and is parked for a person elsewhere.
///
/// It is no [`std::error::Error`] itself, so that all others can become it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed(Box<Came>); // Boxed, so that a result with it stays small.

impl Failed {
    /// Nothing was done; try again, as the queue's schedule says.
    pub fn retry(why: impl fmt::Display) -> Self {
        Self::judged(ErrorCode::Unknown, Effect::NotDone, Advice::Retry, None, None, why)
    }

    /// Nothing was done; try again as the queue's schedule says, and not before this is over. It says nothing of other messages: for
    /// what all of them wait for, see [`Failed::throttled`].
    pub fn retry_after(wait: Duration, why: impl fmt::Display) -> Self {
        Self::judged(ErrorCode::Unknown, Effect::NotDone, Advice::Retry, Some(wait), None, why)
    }

    /// Nothing was done, and no retry can mend it: a dead letter.
    pub fn dead(why: impl fmt::Display) -> Self {
        Self::judged(ErrorCode::BadRequest, Effect::NotDone, Advice::GiveUp, None, None, why)
    }

    /// It may have been done. Tried again only where that cannot do it twice; else parked, and asked after where that can be.
    pub fn unknown(why: impl fmt::Display) -> Self {
        Self::judged(ErrorCode::Unknown, Effect::Unknown, Advice::Retry, None, None, why)
    }

    /// What the handler calls is called too fast, and did nothing. All nodes slow down for this destination; with a wait, none
    /// calls before it is over (SPEC D6).
    pub fn throttled(wait: Option<Duration>, why: impl fmt::Display) -> Self {
        let report = Some(PaceReport::Throttled);
        Self::judged(ErrorCode::RateLimited, Effect::NotDone, Advice::Retry, wait, report, why)
    }

    /// What the handler calls is down, and did nothing. When this goes on, all nodes leave this destination alone for a while.
    pub fn unreachable(why: impl fmt::Display) -> Self {
        let report = Some(PaceReport::Failure);
        Self::judged(ErrorCode::Broker5xx, Effect::NotDone, Advice::Retry, None, report, why)
    }

    /// Not now: nothing was done, and it comes again after this long. The try does not count, except in a queue that marks the
    /// beginning of calls, where only a counted failure can follow the mark.
    pub fn snooze(wait: Duration) -> Self {
        Self(Box::new(Came::Snoozed { wait }))
    }

    pub(super) fn timed_out(after: Duration) -> Self {
        let why = format!("the handler took longer than {after:?} and was given up on");
        Self::judged(ErrorCode::NetworkTimeout, Effect::Unknown, Advice::Retry, None, None, why)
    }

    /// A failure of a handler says nothing of its neighbours, so it tells the pace nothing unless it says so.
    fn judged(
        code: ErrorCode,
        effect: Effect,
        advice: Advice,
        hint: Option<Duration>,
        report: Option<PaceReport>,
        why: impl fmt::Display,
    ) -> Self {
        let verdict = Verdict::said(Some(code), effect, advice, hint, report);
        Self(Box::new(Came::said(verdict, why.to_string())))
    }
}

impl From<Failed> for Came {
    fn from(failed: Failed) -> Self {
        *failed.0
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failed {
    fn from(error: E) -> Self {
        let error = error.into();
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        Self::unknown(causes.fold(error.to_string(), |why, cause| format!("{why}: {cause}")))
    }
}
