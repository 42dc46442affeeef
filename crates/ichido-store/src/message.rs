//! Types of the outbox: messages that are enqueued, claimed, settled and listed.
//!
//! Guarantee: a message is unique by queue, identity and key for as long as it is kept, and its request is the caller's bytes.
//! Its states are those of [`ichido_core::lifecycle::State`], one to one.
//!
//! # A worker
//!
//! `ichido_core` judges the outcome of a call: the verdict says what is known of the effect, and [`Event::from_attempt`](ichido_core::lifecycle::Event::from_attempt) creates the
//! event to report. Compute the timestamps of an event from [`ClaimedMessage::claimed_at`], which is on the store's clock.
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//!
//! use ichido_core::key::IdempotencyKey;
//! use ichido_core::lifecycle::{Event, StateName, State, AttemptResult};
//! use ichido_core::retry::{Guarantee, Retry};
//! use ichido_core::verdict::{HttpResponse, Echo, AttemptResponse, VerdictTable};
//! use ichido_store::Store;
//! use ichido_store::dead_letter::{DeadLetterStep, RequeuePolicy};
//! use ichido_store::message::{
//!     ClaimOptions, Enqueued, DeadLetterState, MessageFilter, NewMessage, Note, QueueName, Settlement, StepResult,
//! };
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! let store = Store::open(&file.url, 4).await?;
//! let queue = QueueName::parse("mail").ok_or("letters, digits, . _ - and :")?;
//! let key = IdempotencyKey::parse("welcome-ann")?;
//! let message = NewMessage::new(queue.clone(), "ann", key, b"welcome!".to_vec());
//! let Enqueued::New { id } = store.messages().enqueue(message.clone()).await? else {
//!     return Err("nobody put it in before".into());
//! };
//! assert_eq!(store.messages().enqueue(message).await?, Enqueued::Replay { id });
//!
//! // Claim. If there is nothing, wait for a wake-up, and claim again after a timeout in any case.
//! let terms = ClaimOptions {
//!     node: Uuid::now_v7(),
//!     lease: Duration::from_secs(30),
//!     start_marks: false,
//!     guarantee: Guarantee::Keyed { keeps_for: Duration::from_hours(24) },
//!     max_time_in_flight: Duration::from_mins(1),
//! };
//! let few = NonZeroU32::new(32).ok_or("at least one")?;
//! let mut works = store.claims().claim(&queue, few, terms).await?;
//! while works.is_empty() {
//!     store.queues().wait(&queue, Duration::from_millis(200)).await;
//!     works = store.claims().claim(&queue, few, terms).await?;
//! }
//! let work = &works[0];
//!
//! // Call the destination, and renew the claim if that takes long. It answers 503.
//! assert_eq!(store.claims().renew(&[work.fence], terms.lease).await?, [true]);
//! let answer = HttpResponse { status: 503, headers: &[], body: b"", echo: Echo::Absent };
//!
//! // Judge and settle.
//! let receiver = Guarantee::Keyed { keeps_for: Duration::from_hours(24) };
//! let safety = work.history.safety(receiver, work.claimed_at);
//! let verdict = VerdictTable::http().judge(&AttemptResponse::Http(answer), work.claimed_at);
//! let failure = NonZeroU32::new(work.history.attempts).ok_or("this try counts")?;
//! let dice = 0.5; // Draw it yourself, from 0 up to 1.
//! let wait = Retry::ORDER.wait(failure, dice, verdict.hint);
//! let tried = AttemptResult {
//!     fence: work.fence,
//!     effect: verdict.effect,
//!     safety,
//!     due: work.claimed_at.plus(wait),
//!     in_flight_until: work.claimed_at.plus(Duration::from_mins(10)),
//! };
//! let event = Event::from_attempt(verdict.next(safety, work.history.effect()), tried);
//! let note = Note { code: verdict.code, status: Some(503), ..Note::default() };
//! let stepped = store.claims().settle(Settlement::new(work, event, note)).await?;
//! assert!(matches!(stepped, StepResult::Now(State::Failed { .. })));
//!
//! // It is claimable again after its backoff, once somebody promotes it.
//! # store.advance_clock(wait + Duration::from_secs(1));
//! assert_eq!(store.claims().promote(1_000).await?, [(queue.clone(), 1)]);
//! # let work = &store.claims().claim(&queue, few, terms).await?[0];
//! # let failure = ichido_core::lifecycle::Failure::Permanent;
//! # let (fence, effect) = (work.fence, ichido_core::verdict::Effect::NotDone);
//! # let in_flight_until = work.claimed_at;
//! # let event = Event::Failed { fence, failure, effect, safety, in_flight_until };
//! # store.claims().settle(Settlement::new(work, event, Note::default())).await?;
//!
//! // Later it is dead, and a person requeues it.
//! let dead = store.dead_letters().list(DeadLetterState::Dead, Some(&queue), None, 100).await?;
//! let note = Note { actor: Some("olivia".to_owned()), ..Note::default() };
//! let policy = RequeuePolicy { requeue: true, guarantee: Guarantee::Idempotent };
//! let stepped = store.dead_letters().requeue(&[dead[0].message.id], |_| policy, &note).await?;
//! assert!(matches!(stepped[..], [DeadLetterStep::Now(State::Queued { .. })]));
//!
//! // Its history, its state, and the counts.
//! let steps = store.messages().transitions(id).await?;
//! assert_eq!(steps.last().map(|step| step.kind.as_str()), Some("requeued"));
//! assert_eq!(store.messages().get(id).await?.ok_or("it is kept")?.status, StateName::Queued);
//! assert_eq!(store.queues().counts().await?[0].count, 1);
//!
//! // The next page begins after the last message of the previous one.
//! let mut filter = MessageFilter { queue: Some(queue.clone()), ..MessageFilter::default() };
//! while let Some(last) = store.messages().list(&filter, 100).await?.last() {
//!     filter.after = Some(last.id);
//! }
//!
//! // A paused queue accepts messages, and none can be claimed.
//! store.queues().pause(&queue, true, Some("olivia")).await?;
//! assert!(store.claims().claim(&queue, few, terms).await?.is_empty());
//! # Ok(())
//! # }
//! ```
// SPEC D1.

mod cancel;
mod claimed;
mod id_prefix;
mod request_body;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::retry::Retry;
use ichido_core::text;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use uuid::Uuid;

pub use cancel::{CancelOutcome, Cancellation};
pub use claimed::{ClaimOptions, ClaimedMessage, Note, ReceiverResponse, Settlement, StepResult};
pub use id_prefix::IdPrefix;
pub use request_body::{InvalidBody, RequestBody};

use crate::bounded;
use crate::check;
use crate::error::StoreError;
use crate::micros;

/// Limits of a message.
pub mod limits {
    /// The maximum length of a queue's name, in bytes.
    pub const MAX_QUEUE_BYTES: usize = 128;
    /// The maximum length of an identity, in bytes.
    pub const MAX_IDENTITY_BYTES: usize = 255;
    /// The maximum length of a request's media type, in bytes.
    pub const MAX_CONTENT_TYPE_BYTES: usize = 255;
    /// The maximum length of a trace context, in bytes: a `traceparent` with a long `tracestate`.
    pub const MAX_TRACE_BYTES: usize = 1024;
    /// The maximum length of a correlation id, in bytes.
    pub const MAX_TRACE_ID_BYTES: usize = 128;
    /// The maximum length of an item, in characters; the rest is cut off.
    pub const MAX_ITEM_CHARS: usize = 200;
    /// The maximum length of the hops: that of the header.
    pub const MAX_HOPS_BYTES: usize = ichido_core::hops::MAX_FIELD_BYTES;
    /// The maximum size of a request, in bytes.
    pub const MAX_REQUEST_BYTES: usize = 4 << 20;
    /// The maximum number of messages that one call enqueues in a transaction.
    pub const MAX_ENQUEUE: u32 = 10_000;
    /// The maximum size of their requests together, in bytes.
    pub const MAX_ENQUEUE_BYTES: usize = 64 << 20;
    /// The maximum number of attempts that a message may be allowed. Both databases can count further, so no count overflows.
    pub const MAX_ATTEMPTS: u32 = 1_000_000_000;
    /// The maximum length of a stored error excerpt, in bytes; the rest is cut off.
    pub const MAX_EXCERPT_BYTES: usize = 1024;
    /// The maximum size of a receiver's response that is kept, in bytes; a larger one is not kept.
    pub const MAX_RESPONSE_BYTES: usize = 1 << 20;
    /// The maximum lease of a claim; a longer one is capped. A lease that ends later than this was taken while the clock was
    /// ahead, and counts as lapsed.
    pub const MAX_LEASE: std::time::Duration = std::time::Duration::from_hours(24);
    /// The maximum number of messages in one claim.
    pub const MAX_CLAIM: u32 = 5_000;
    /// The maximum number of messages on a page.
    pub const MAX_PAGE: u32 = 1_000;
    /// The maximum number of pairs of queue and identity in which a key is looked up.
    pub const MAX_KEY_PAIRS: u32 = 10_000;
    /// The maximum number of messages whose keys are compared with a hash.
    pub const MAX_KEYS_SCANNED: u32 = 100_000;
    /// The maximum number of messages that one search examines.
    pub const MAX_SEARCHED: u32 = 10_000;
}

/// The identity of a message that is given none.
pub const IDENTITY_DEFAULT: &str = "local";

/// The priority of a message that is given none.
pub const PRIORITY_DEFAULT: u8 = 2;

/// The name of a queue: 1 to 128 letters, digits, `.`, `_`, `-` and `:`.
///
/// Cheap to clone, because each message carries it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Parses a name. Returns `None` if it is invalid.
    ///
    /// ```
    /// use ichido_store::message::QueueName;
    ///
    /// assert!(QueueName::parse("mail.welcome-v2:eu").is_some());
    /// assert!(QueueName::parse("").is_none() && QueueName::parse("no blanks").is_none());
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        let fits = (1..=limits::MAX_QUEUE_BYTES).contains(&name.len());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':');
        (fits && name.bytes().all(plain)).then(|| Self(name.into()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

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

/// Returns whether the same message was enqueued before.
pub(crate) const fn is_repeated(outcome: EnqueueOutcome) -> bool {
    matches!(outcome, Ok(Enqueued::Replay { .. } | Enqueued::SameContent { .. }))
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

/// One transition of a message.
// SPEC D13.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When it happened.
    pub at: Timestamp,
    /// The state before.
    pub from: StateName,
    /// The state after.
    pub to: StateName,
    /// The event, by its [`Event::name`](ichido_core::lifecycle::Event::name).
    pub kind: String,
    /// The fence of the claim or action that it belongs to.
    pub fence: Option<u64>,
    /// Attempts so far.
    pub attempts: u32,
    /// What is known of the effect.
    pub effect: Effect,
    /// Why it failed.
    pub code: Option<String>,
    /// The response status.
    pub status: Option<u16>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
    /// The receiver's own id for what it did.
    pub receipt: Option<String>,
    /// The error message.
    pub excerpt: Option<String>,
    /// The receiver's response to a success.
    pub response: Option<ReceiverResponse>,
    /// The node that acted.
    pub node: Option<Uuid>,
    /// The operator who acted.
    pub actor: Option<String>,
}

/// A message as one row.
// SPEC D1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// Its id.
    pub id: Uuid,
    /// Its queue.
    pub queue: String,
    /// The caller's identity.
    pub identity: String,
    /// Its key.
    pub key: IdempotencyKey,
    /// The media type of the request.
    pub content_type: String,
    /// The caller's bytes.
    pub request: Vec<u8>,
    /// The digest of the request.
    pub request_digest: Digest,
    /// Its state.
    pub status: StateName,
    /// Attempts so far.
    pub attempts: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// When it is due; `None` once it is being sent or has ended.
    pub next_attempt: Option<Timestamp>,
    /// The code of the last error.
    pub last_error: Option<String>,
    /// The message of the last error.
    pub last_error_text: Option<String>,
    /// Whether the effect was done, not done, or unknown.
    pub effect: Effect,
    /// The priority; 0 is most urgent.
    pub priority: u8,
    /// The hops that it passed, as in the header `Ichido-Hops`.
    // SPEC F1.
    pub hops: Option<String>,
    /// The trace context.
    pub trace: Option<String>,
    /// The correlation id that the request carries.
    pub trace_id: Option<String>,
    /// What it is about, for people.
    pub item: Option<String>,
    /// The message that it replaces.
    pub replacement_of: Option<Uuid>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The priority and the time that a message was enqueued with. Neither changes.
// SPEC H5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSchedule {
    /// The priority; 0 is most urgent.
    pub priority: u8,
    /// The earliest time of its first attempt; `None` is at once.
    pub run_at: Option<Timestamp>,
}

/// A filter of messages, which are listed newest first.
///
/// Indexes find a key, a trace id, a code, a state that is not final, the first digits of an id, and an identity with few messages.
/// Other members are compared message by message.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    /// With these first digits of the id.
    pub id: Option<IdPrefix>,
    /// With this queue.
    pub queue: Option<QueueName>,
    /// In this state.
    pub status: Option<StateName>,
    /// With this identity.
    pub identity: Option<String>,
    /// With this key.
    pub key: Option<IdempotencyKey>,
    /// With this correlation id.
    pub trace_id: Option<String>,
    /// With this code as the last error.
    pub code: Option<ErrorCode>,
    /// Enqueued at this time or later.
    pub created_from: Option<Timestamp>,
    /// Enqueued before this time.
    pub created_before: Option<Timestamp>,
    /// Older than this message: the last one of the previous page.
    pub after: Option<Uuid>,
}

impl MessageFilter {
    /// Returns the state, if it is not final. Such messages are in small tables.
    pub(crate) fn live_state(&self) -> Option<StateName> {
        self.status.filter(|status| match status {
            StateName::Queued
            | StateName::Sending
            | StateName::Failed
            | StateName::Parked
            | StateName::Dead => true,
            StateName::Sent | StateName::Cancelled => false,
        })
    }

    /// Returns the id before which the list begins.
    pub(crate) fn begin(&self) -> Uuid {
        let after = self.after.unwrap_or(Uuid::max());
        self.id.map_or(after, |prefix| after.min(prefix.end()))
    }
}

/// A page of messages.
#[derive(Clone, Debug, Default)]
pub struct MessagePage {
    /// The messages that match, newest first.
    pub messages: Vec<MessageRow>,
    /// [`MessageFilter::after`] of the next page; `None` if there is none. A page can be short and still have one, since the
    /// number of messages that one search examines is limited.
    pub next: Option<Uuid>,
    /// How many messages were examined.
    pub examined: u32,
}

/// The messages of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageMatches {
    /// Their ids.
    pub ids: Vec<Uuid>,
    /// Whether these are all.
    pub is_complete: bool,
    /// The number of messages whose keys were read, if they were read one by one.
    pub scanned: u32,
    /// When the oldest of these was enqueued.
    pub since: Option<Timestamp>,
}

ichido_core::words! {
    /// The states in which a message waits for a person.
    // SPEC E3, F2.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum DeadLetterState {
        /// Delivery was given up.
        #[default]
        Dead = "dead",
        /// The effect is unknown until somebody decides.
        Parked = "parked",
    }
}

/// A message that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// When it died or was parked.
    pub since: Timestamp,
    /// The message.
    pub message: MessageRow,
}

/// The number of messages of a queue in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateCount {
    /// The queue.
    pub queue: String,
    /// The state.
    pub state: StateName,
    /// The count; a state without any may be omitted.
    pub count: i64,
}
