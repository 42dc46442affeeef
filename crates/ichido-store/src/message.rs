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
mod filter;
mod id_prefix;
mod new;
mod request_body;
mod rows;

use std::sync::Arc;

pub use cancel::{CancelOutcome, Cancellation};
pub use claimed::{ClaimOptions, ClaimedMessage, Note, ReceiverResponse, Settlement, StepResult};
pub use filter::{MessageFilter, MessageMatches, MessagePage};
pub use id_prefix::IdPrefix;
pub(crate) use new::{
    EnqueueOutcome, FirstMessage, KeyConflict, NumberedMessage, compare_with_first, count_enqueue,
};
pub use new::{Enqueued, NewMessage, SameContent};
pub use request_body::{InvalidBody, RequestBody};
pub use rows::{
    DeadLetter, DeadLetterState, MessageRow, MessageSchedule, StateCount, Transition, TransitionPage,
};

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
