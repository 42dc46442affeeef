//! A message to enqueue, and what came of it.
//!
//! Guarantee: a message is checked before it joins a batch, so one that a database cannot hold fails alone.
// SPEC A7, D1.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use ichido_core::text;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::{PRIORITY_DEFAULT, QueueName, RequestBody, limits};
use crate::bounded;
use crate::check;
use crate::counters::{Arrival, Counters};
use crate::error::StoreError;
use crate::micros;

/// A message to enqueue.
#[derive(Clone)]
pub struct NewMessage {
    /// The queue.
    pub queue: QueueName,
    /// The caller's identity. Queue, identity and key make the message unique.
    pub identity: String,
    /// The idempotency key.
    pub key: IdempotencyKey,
    /// The caller's bytes, with their media type and digest.
    pub request: RequestBody,
    /// The hops that it passed, as in the header `Ichido-Hops`.
    // SPEC F1.
    pub hops: Option<String>,
    /// The trace context.
    pub trace: Option<String>,
    /// The correlation id that the request carries. Messages are found by it.
    // SPEC D13.
    pub trace_id: Option<String>,
    /// What it is about, for people: a title or a URL. Dead letters and their notifications show it, cut to
    /// [`limits::MAX_ITEM_CHARS`].
    // SPEC E3.
    pub item: Option<String>,
    /// The priority: 0 is most urgent, 255 least. [`NewMessage::new`] sets [`PRIORITY_DEFAULT`].
    pub priority: u8,
    /// The maximum number of attempts, including the first; at most [`limits::MAX_ATTEMPTS`]. [`NewMessage::new`] sets that of
    /// [`Retry::ORDER`].
    pub max_attempts: NonZeroU32,
    /// The delay before the first attempt. The message is queued at once, and claimable after
    /// [`Claims::promote`](crate::Claims::promote).
    pub delay: Duration,
    /// The earliest time of the first attempt, by the store's clock. One that has passed means at once; with a delay, the later
    /// of the two applies.
    // SPEC H5.
    pub run_at: Option<Timestamp>,
    /// The dead letter that it replaces.
    // SPEC D17.
    pub replacement_of: Option<Uuid>,
    /// If set, equal content within a window is the same action, whatever its key.
    // SPEC A7.
    pub same_content: Option<SameContent>,
}

/// When two messages of one queue and identity count as one although their keys differ.
#[derive(Clone, Copy, Debug)]
pub struct SameContent {
    /// The digest that is compared.
    pub content: Digest,
    /// The length of the window.
    pub window: Duration,
}

impl NewMessage {
    /// Creates a message with defaults.
    ///
    /// It is due at once and has as many attempts as [`Retry::ORDER`] and priority 2. Set the fields for anything else. A
    /// request that is a `Vec<u8>` has the media type `application/octet-stream`, and is compared by its bytes.
    pub fn new(
        queue: QueueName,
        identity: &str,
        key: IdempotencyKey,
        request: impl Into<RequestBody>,
    ) -> Self {
        Self {
            queue,
            identity: identity.to_owned(),
            key,
            request: request.into(),
            hops: None,
            trace: None,
            trace_id: None,
            item: None,
            priority: PRIORITY_DEFAULT,
            max_attempts: Retry::ORDER.max_attempts,
            delay: Duration::ZERO,
            run_at: None,
            replacement_of: None,
            same_content: None,
        }
    }

    /// Returns when it is due if it is enqueued now; `None` is at once. PostgreSQL's statements compute the same.
    pub(crate) fn due_from(&self, now: Timestamp) -> Option<Timestamp> {
        let due = self.run_at.unwrap_or(now).max(now.plus(self.delay));
        (now < due).then_some(due)
    }

    /// Returns whether it may be claimable as soon as it is enqueued, so those who wait for its queue are woken.
    pub(crate) fn is_maybe_claimable(&self) -> bool {
        // Only the statement knows whether `run_at` has passed, and waking somebody for nothing does no harm.
        self.delay.is_zero()
    }

    /// Returns whether it is due as soon as it is enqueued, whatever the time is.
    pub(crate) fn is_due_at_once(&self) -> bool {
        micros(self.delay) == 0 && self.run_at.is_none()
    }

    /// Refuses values that a database cannot hold, before they join a batch.
    pub(crate) fn checked(self) -> Result<Self, StoreError> {
        self.check()?;
        let same_content = self.same_content.map(|same| SameContent { window: bounded(same.window), ..same });
        // It is for people: what they cannot see is escaped, and what is too long is cut.
        let item = self.item.as_deref().map(|item| text::bounded(item, limits::MAX_ITEM_CHARS));
        Ok(Self { delay: bounded(self.delay), same_content, item, ..self })
    }

    fn check(&self) -> Result<(), StoreError> {
        check::text("the identity", &self.identity, limits::MAX_IDENTITY_BYTES)?;
        check::text("the content type", self.request.content_type(), limits::MAX_CONTENT_TYPE_BYTES)?;
        check::text("the hops", self.hops.as_deref().unwrap_or_default(), limits::MAX_HOPS_BYTES)?;
        check::text("the trace", self.trace.as_deref().unwrap_or_default(), limits::MAX_TRACE_BYTES)?;
        check::text(
            "the trace id",
            self.trace_id.as_deref().unwrap_or_default(),
            limits::MAX_TRACE_ID_BYTES,
        )?;
        check::bytes("the request", self.request.bytes().len(), limits::MAX_REQUEST_BYTES)?;
        check::number("the number of allowed attempts", self.max_attempts.get(), 1..=limits::MAX_ATTEMPTS)
    }
}

ichido_core::debug_only! {
    /// Keeps payload and key out of logs.
    NewMessage as new_message { queue, key, request_bytes: new_message.request.bytes().len() }
}

/// The outcome of enqueuing a message. A key that was used for a different request is [`StoreError::KeyConflict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// The message is new.
    New {
        /// Its id.
        id: Uuid,
    },
    /// The same message was enqueued before: its request has the same digest and media type. Priority, attempts,
    /// delay and `run_at` are not compared; those of the first message apply.
    Replay {
        /// The id of the first message.
        id: Uuid,
    },
    /// Equal content was enqueued under another key within the window, and nothing was enqueued.
    SameContent {
        /// The id of the first message.
        id: Uuid,
    },
}

impl Enqueued {
    /// Returns the id of the message, or of the first one like it.
    pub const fn id(self) -> Uuid {
        match self {
            Self::New { id } | Self::Replay { id } | Self::SameContent { id } => id,
        }
    }
}

/// The outcome of one message of a batch: a conflict is not an error of the batch.
pub(crate) type EnqueueOutcome = Result<Enqueued, KeyConflict>;

/// The key was used for a different request, and nothing was enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyConflict {
    /// The id of the first message.
    pub(crate) id: Uuid,
}

impl From<KeyConflict> for StoreError {
    fn from(conflict: KeyConflict) -> Self {
        Self::KeyConflict { id: conflict.id }
    }
}

/// Counts how a message arrived.
pub(crate) fn count_enqueue(counters: &Counters, queue: &QueueName, outcome: EnqueueOutcome) {
    let arrival = match outcome {
        Ok(Enqueued::New { .. }) => Arrival::New,
        Ok(Enqueued::Replay { id } | Enqueued::SameContent { id }) => {
            counters.replayed(id, 1);
            Arrival::Repeated
        }
        Err(KeyConflict { .. }) => Arrival::Conflict,
    };
    counters.message_arrived(queue.as_str(), arrival);
}

/// A message with the id it gets if it is new.
pub(crate) type NumberedMessage = (Uuid, NewMessage);

/// The first message under a key.
#[derive(Clone, Debug)]
pub(crate) struct FirstMessage {
    pub(crate) id: Uuid,
    pub(crate) digest: Digest,
    pub(crate) content_type: String,
}

/// Compares a message with the first message under the same key.
pub(crate) fn compare_with_first((own, new): &NumberedMessage, first: &FirstMessage) -> EnqueueOutcome {
    let FirstMessage { id, digest, content_type } = first;
    match *id {
        // Our own insert, whose answer was lost.
        id if id == *own => Ok(Enqueued::New { id }),
        id if new.request.is_same(content_type, *digest) => Ok(Enqueued::Replay { id }),
        id => Err(KeyConflict { id }),
    }
}
