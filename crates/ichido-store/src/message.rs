//! Messages: what is put in, what is claimed, what is reported, what is seen.
//!
//! Guarantee: a message is unique by queue, identity and key for as long as it is kept, and its
//! request is the caller's bytes. Its states are those of [`ichido_core::lifecycle::State`], one to one.
//!
//! # A worker
//!
//! What came of a call is judged by `ichido_core`: the verdict says what is known of the effect, and [`Event::of_try`] makes the
//! event to report of it. An event holds moments; count them from [`Work::claimed_at`], which is the store's own clock.
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//!
//! use ichido_core::key::IdempotencyKey;
//! use ichido_core::lifecycle::{Event, Stage, State, Tried};
//! use ichido_core::retry::{Guarantee, Retry, Safety};
//! use ichido_core::verdict::{Answer, Echo, Seen, Table};
//! use ichido_store::Store;
//! use ichido_store::message::{
//!     ClaimTerms, Enqueued, LetterState, MessageFilter, NewMessage, Note, QueueName, Settlement, Stepped,
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
//! assert_eq!(store.messages().enqueue(message).await?, Enqueued::Same { id });
//!
//! // Claim. When there is nothing, wait for a wake-up and look again after a bound in any case.
//! let terms = ClaimTerms {
//!     node: Uuid::now_v7(),
//!     lease: Duration::from_secs(30),
//!     marks: false,
//!     guarantee: Guarantee::HonoursKeys { keeps_for: Duration::from_hours(24) },
//!     travels_for: Duration::from_mins(1),
//! };
//! let few = NonZeroU32::new(32).ok_or("at least one")?;
//! let mut works = store.claims().take(&queue, few, terms).await?;
//! while works.is_empty() {
//!     store.queues().wait(&queue, Duration::from_millis(200)).await;
//!     works = store.claims().take(&queue, few, terms).await?;
//! }
//! let work = &works[0];
//!
//! // Call the destination, and renew the claim while that takes long. It answers 503.
//! assert_eq!(store.claims().renew(&[work.fence], terms.lease).await?, [true]);
//! let answer = Answer { status: 503, headers: &[], body: b"", echo: Echo::Absent };
//!
//! // Judge and settle.
//! let receiver = Guarantee::HonoursKeys { keeps_for: Duration::from_hours(24) };
//! let safety = work.history.safety(receiver, work.claimed_at);
//! let verdict = Table::http().judge(&Seen::Answer(answer), work.claimed_at);
//! let failure = NonZeroU32::new(work.history.tries).ok_or("this try counts")?;
//! let dice = 0.5; // Yours to draw, from 0 up to 1.
//! let wait = Retry::OUTBOX.wait(failure, dice, verdict.hint);
//! let tried = Tried {
//!     fence: work.fence,
//!     effect: verdict.effect,
//!     safety,
//!     due: work.claimed_at.plus(wait),
//!     travels_until: work.claimed_at.plus(Duration::from_mins(10)),
//! };
//! let event = Event::of_try(verdict.next(safety, work.history.effect()), tried);
//! let note = Note { code: verdict.code, status: Some(503), ..Note::default() };
//! let stepped = store.claims().settle(Settlement::of(work, event, note)).await?;
//! assert!(matches!(stepped, Stepped::Now(State::Failed { .. })));
//!
//! // It is claimable again when its wait is over and somebody promotes it.
//! # store.skew_by(wait + Duration::from_secs(1));
//! assert_eq!(store.claims().promote(1_000).await?, [(queue.clone(), 1)]);
//! # let work = &store.claims().take(&queue, few, terms).await?[0];
//! # let failure = ichido_core::lifecycle::Failure::ForGood;
//! # let (fence, effect) = (work.fence, ichido_core::verdict::Effect::NotDone);
//! # let travels_until = work.claimed_at;
//! # let event = Event::Failed { fence, failure, effect, safety, travels_until };
//! # store.claims().settle(Settlement::of(work, event, Note::default())).await?;
//!
//! // Later it is dead, and a person sends it again.
//! let dead = store.dead_letters().list(LetterState::Dead, Some(&queue), None, 100).await?;
//! let note = Note { actor: Some("olivia".to_owned()), ..Note::default() };
//! let requeue = |_now| Event::Requeued { allowed: true, safety: Safety::Keyed };
//! let stepped = store.messages().step(dead[0].message.id, requeue, &note).await?;
//! assert!(matches!(stepped, Stepped::Now(State::Queued { .. })));
//!
//! // What happened, how it stands, and how much there is.
//! let steps = store.messages().transitions(id).await?;
//! assert_eq!(steps.last().map(|step| step.kind.as_str()), Some("requeued"));
//! assert_eq!(store.messages().get(id).await?.ok_or("it is kept")?.status, Stage::Queued);
//! assert_eq!(store.queues().counts().await?[0].count, 1);
//!
//! // A listing goes on after the last of the page before.
//! let mut filter = MessageFilter { queue: Some(queue.clone()), ..MessageFilter::default() };
//! while let Some(last) = store.messages().list(&filter, 100).await?.last() {
//!     filter.after = Some(last.id);
//! }
//!
//! // A paused queue takes messages in and gives none out.
//! store.queues().pause(&queue, true, Some("olivia")).await?;
//! assert!(store.claims().take(&queue, few, terms).await?.is_empty());
//! # Ok(())
//! # }
//! ```
// SPEC D1.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Begun, Event, History, Stage, State};
use ichido_core::retry::{Guarantee, Retry};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use uuid::Uuid;

use crate::bounded;
use crate::check;
use crate::error::StoreError;

/// The bounds of a message.
pub mod limits {
    /// The longest name of a queue, in bytes.
    pub const QUEUE_BYTES_MAX: usize = 128;
    /// The longest identity, in bytes.
    pub const IDENTITY_BYTES_MAX: usize = 255;
    /// The longest media type of a request, in bytes.
    pub const CONTENT_TYPE_BYTES_MAX: usize = 255;
    /// The longest trace, in bytes: a `traceparent` with a long `tracestate`.
    pub const TRACE_BYTES_MAX: usize = 1024;
    /// The longest list of hops: as long as the header may be.
    pub const HOPS_BYTES_MAX: usize = ichido_core::hops::FIELD_BYTES_MAX;
    /// The largest request, in bytes.
    pub const REQUEST_BYTES_MAX: usize = 4 << 20;
    /// The most tries that a message may be allowed. Both databases count further than this, so that no count ever overflows.
    pub const TRIES_MAX: u32 = 1_000_000_000;
    /// The longest excerpt of an error that is kept, in bytes; the rest is cut off.
    pub const EXCERPT_BYTES_MAX: usize = 1024;
    /// The longest lease of a claim; a longer one is taken as this. One that ends later was taken while the clock was ahead, and has
    /// lapsed.
    pub const LEASE_MAX: std::time::Duration = std::time::Duration::from_hours(24);
    /// The most messages that one claim takes.
    pub const CLAIM_MAX: u32 = 5_000;
    /// The most messages that one page of a listing has.
    pub const PAGE_MAX: u32 = 1_000;
}

/// The name of a queue: 1 to 128 letters, digits, `.`, `_`, `-` and `:`. Cheap to clone: each of its messages carries it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Takes a name, or `None` when it is no name.
    ///
    /// ```
    /// use ichido_store::message::QueueName;
    ///
    /// assert!(QueueName::parse("mail.welcome-v2:eu").is_some());
    /// assert!(QueueName::parse("").is_none() && QueueName::parse("no blanks").is_none());
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        let fits = (1..=limits::QUEUE_BYTES_MAX).contains(&name.len());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':');
        (fits && name.bytes().all(plain)).then(|| Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A message to be put in.
#[derive(Clone)]
pub struct NewMessage {
    /// Where to.
    pub queue: QueueName,
    /// For whom: with the queue and the key, what makes it unique.
    pub identity: String,
    /// The action's key.
    pub key: IdempotencyKey,
    /// The media type of the request.
    pub content_type: String,
    /// The caller's bytes.
    pub request: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// The way it came, as the header `Ichido-Hops` has it.
    // SPEC F1.
    pub hops: Option<String>,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// 0 is most urgent, 255 least; [`NewMessage::new`] says 2.
    pub priority: u8,
    /// Tries allowed, the first one included, at most [`limits::TRIES_MAX`]; [`NewMessage::new`] says as many as [`Retry::OUTBOX`].
    pub tries_allowed: NonZeroU32,
    /// Not before this much later: it is queued at once, and claimable after [`Claims::promote`](crate::Claims::promote).
    pub delay: Duration,
    /// The dead message that it was made from.
    // SPEC D17.
    pub made_from: Option<Uuid>,
    /// Equal content within a window is the same action whatever its key.
    // SPEC A7.
    pub same_content: Option<SameContent>,
}

/// When two messages of one queue and identity count as one although their keys differ.
#[derive(Clone, Copy, Debug)]
pub struct SameContent {
    /// What is compared.
    pub content: Digest,
    /// For how long.
    pub window: Duration,
}

impl NewMessage {
    /// A message with nothing special about it: due at once, as many tries as [`Retry::OUTBOX`], priority 2,
    /// `application/octet-stream`, and the digest of its bytes as they are. Set the fields for anything else.
    pub fn new(queue: QueueName, identity: &str, key: IdempotencyKey, request: Vec<u8>) -> Self {
        let digest = Digest::of_bytes(&request);
        Self {
            queue,
            identity: identity.to_owned(),
            key,
            content_type: "application/octet-stream".to_owned(),
            request,
            digest,
            hops: None,
            trace: None,
            priority: 2,
            tries_allowed: Retry::OUTBOX.tries,
            delay: Duration::ZERO,
            made_from: None,
            same_content: None,
        }
    }

    /// Refuses what is out of bounds, or what no database could hold, before it meets others in a batch.
    pub(crate) fn checked(self) -> Result<Self, StoreError> {
        self.check()?;
        let same_content = self.same_content.map(|same| SameContent { window: bounded(same.window), ..same });
        Ok(Self { delay: bounded(self.delay), same_content, ..self })
    }

    fn check(&self) -> Result<(), StoreError> {
        check::text("the identity", &self.identity, limits::IDENTITY_BYTES_MAX)?;
        check::text("the content type", &self.content_type, limits::CONTENT_TYPE_BYTES_MAX)?;
        check::text("the hops", self.hops.as_deref().unwrap_or_default(), limits::HOPS_BYTES_MAX)?;
        check::text("the trace", self.trace.as_deref().unwrap_or_default(), limits::TRACE_BYTES_MAX)?;
        check::bytes("the request", self.request.len(), limits::REQUEST_BYTES_MAX)?;
        check::number("the number of tries allowed", self.tries_allowed.get(), 1..=limits::TRIES_MAX)
    }
}

ichido_core::debug_only! {
    /// Payload and key stay out of logs.
    NewMessage as new_message { queue, key, request_bytes: new_message.request.len() }
}

/// What became of a message that was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It is new.
    New {
        /// Its id.
        id: Uuid,
    },
    /// The same message was put in before: the request has the same digest. The rest (priority, tries, delay, media type) is not
    /// compared, and the first one's stays.
    Same {
        /// The first one's id.
        id: Uuid,
    },
    /// Its key was used for a different request, and nothing was put in.
    Different {
        /// The first one's id.
        id: Uuid,
    },
    /// Equal content was put in under another key within the window, and nothing was put in.
    SameContent {
        /// The first one's id.
        id: Uuid,
    },
}

impl Enqueued {
    /// Whether the same was put in before.
    pub(crate) const fn is_repeated(self) -> bool {
        match self {
            Self::Same { .. } | Self::SameContent { .. } => true,
            Self::New { .. } | Self::Different { .. } => false,
        }
    }
}

/// A message with the id it gets if it is new.
pub(crate) type Numbered = (Uuid, NewMessage);

/// The first message under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    pub(crate) id: Uuid,
    pub(crate) digest: Digest,
}

/// What the first message under the same key makes of this one.
pub(crate) fn answer((id, new): &Numbered, first: First) -> Enqueued {
    match first {
        // Our own insert, whose answer was lost on the way.
        First { id: first, .. } if first == *id => Enqueued::New { id: first },
        First { id, digest } if digest == new.digest => Enqueued::Same { id },
        First { id, .. } => Enqueued::Different { id },
    }
}

/// Who claims, for how long, and how carefully.
#[derive(Clone, Copy, Debug)]
pub struct ClaimTerms {
    /// The node that claims: any id that is new for each start of the program, shown in the audit.
    pub node: Uuid,
    /// How long the claim holds without being renewed.
    pub lease: Duration,
    /// Whether the beginning of each call will be marked ([`Begun::NotYet`]), by [`Claims::begin`](crate::Claims::begin):
    /// for irreversible work without keys. A message that a worker died with is always claimed so
    /// ([`Work::begun`] says it). The example is at [`rescue`](crate::rescue).
    pub marks: bool,
    /// What the one who claims believes of repetitions. Kept with the claim: should its holder die, a rescue goes by this or by
    /// its own belief, whichever promises less.
    // SPEC F2.
    pub guarantee: Guarantee,
    /// How long after its beginning a call may still be travelling; kept likewise, and the longer one holds.
    pub travels_for: Duration,
}

/// A claimed message.
#[derive(Clone)]
pub struct Work {
    /// Its id.
    pub id: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// For whom.
    pub identity: String,
    /// Its key.
    pub key: IdempotencyKey,
    /// The media type of the request.
    pub content_type: String,
    /// The caller's bytes.
    pub request: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// The way it came, as the header `Ichido-Hops` has it.
    // SPEC F1.
    pub hops: Option<String>,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// 0 is most urgent.
    pub priority: u8,
    /// When it was put in.
    pub created_at: Timestamp,
    /// When it was claimed, by the store's clock.
    pub claimed_at: Timestamp,
    /// The claim.
    pub fence: Fence,
    /// Whether the beginning of its call was marked when it was claimed. [`Claims::begin`](crate::Claims::begin) does not
    /// change it here; the store goes by the mark and refuses [`Event::GivenBack`] once it is made.
    pub begun: Begun,
    /// What has been tried, this try included.
    pub history: History,
}

ichido_core::debug_only! {
    /// Payload and key stay out of logs.
    Work as work { id, queue, key, fence, history }
}

impl Work {
    /// Its state.
    pub const fn state(&self) -> State {
        State::Sending {
            fence: self.fence,
            claimed_at: self.claimed_at,
            begun: self.begun,
            proven: false,
            history: self.history,
        }
    }
}

/// What a worker reports of a message that it holds.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Which message.
    pub id: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// Its priority.
    pub priority: u8,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// Its state when it was claimed, with the fence.
    pub state: State,
    /// What happened: one of the events that a holder may report, which are [`Event::Succeeded`], [`Event::Failed`] and
    /// [`Event::GivenBack`]. Any other is refused.
    pub event: Event,
    /// What is known about it.
    pub note: Note,
}

impl Settlement {
    /// A report about `work`.
    pub fn of(work: &Work, event: Event, note: Note) -> Self {
        Self {
            id: work.id,
            queue: work.queue.clone(),
            priority: work.priority,
            claimed_at: work.claimed_at,
            state: work.state(),
            event,
            note,
        }
    }
}

/// What is known about an event, for the audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Why it failed.
    pub code: Option<ErrorCode>,
    /// The status of the answer; left out where it is no number that both databases hold, which no status is.
    pub status: Option<u16>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
    /// The receiver's own name for what it did.
    pub receipt: Option<String>,
    /// What the error said, cut to a bound.
    pub excerpt: Option<String>,
    /// Who acted: an operator's name.
    pub actor: Option<String>,
}

/// What the store made of a settlement or a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// It stands; the message is now in this state.
    Now(State),
    /// It does not apply, and nothing was changed. A worker that reads [`StaleFence`](ichido_core::lifecycle::Why::StaleFence)
    /// has lost its claim, and somebody else may have the message.
    Refused(ichido_core::lifecycle::Why),
    /// There is no such message.
    NoSuchMessage,
}

/// One transition in a message's life.
// SPEC D13.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When.
    pub at: Timestamp,
    /// From which state.
    pub from: Stage,
    /// To which state.
    pub to: Stage,
    /// What happened: a name as [`Event::name`] gives it.
    pub kind: String,
    /// The claim or the action it belongs to.
    pub fence: Option<u64>,
    /// Tries so far.
    pub tries: u32,
    /// What is known of the effect.
    pub effect: Effect,
    /// Why it failed.
    pub code: Option<String>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
    /// The receiver's own name for what it did.
    pub receipt: Option<String>,
    /// What the error said.
    pub excerpt: Option<String>,
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
    /// For whom.
    pub identity: String,
    /// Its key.
    pub key: IdempotencyKey,
    /// The media type of the request.
    pub content_type: String,
    /// The caller's bytes.
    pub request: Vec<u8>,
    /// Their digest.
    pub request_digest: Digest,
    /// Which state it is in.
    pub status: Stage,
    /// Tries so far.
    pub tries: u32,
    /// Tries allowed.
    pub tries_allowed: u32,
    /// When it is due; `None` once it is being sent or has ended.
    pub next_attempt: Option<Timestamp>,
    /// The code of the last error.
    pub last_error: Option<String>,
    /// What the last error said.
    pub last_error_text: Option<String>,
    /// What is known of its effect.
    pub effect: Effect,
    /// 0 is most urgent.
    pub priority: u8,
    /// The way it came, as the header `Ichido-Hops` has it.
    // SPEC F1.
    pub hops: Option<String>,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// The message that it was made from.
    pub made_from: Option<Uuid>,
    /// When it was put in.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Which messages to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// In this state.
    pub status: Option<Stage>,
    /// Of this identity.
    pub identity: Option<String>,
    /// With this key.
    pub key: Option<IdempotencyKey>,
    /// With this code as the last error.
    pub code: Option<ErrorCode>,
    /// Put in from this moment on.
    pub created_from: Option<Timestamp>,
    /// Put in before this moment.
    pub created_before: Option<Timestamp>,
    /// Older than this one: the last of the page before.
    pub after: Option<Uuid>,
}

impl MessageFilter {
    /// Whether it asks for a state that is not an end: such messages stand in small tables of their own.
    pub(crate) fn of_what_is_under_way(&self) -> bool {
        match self.status {
            Some(Stage::Queued | Stage::Sending | Stage::Failed | Stage::Parked | Stage::Dead) => true,
            Some(Stage::Sent | Stage::Cancelled) | None => false,
        }
    }
}

ichido_core::words! {
    /// Which messages wait for a person.
    // SPEC E3, F2.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum LetterState {
        /// Given up.
        #[default]
        Dead = "dead",
        /// Of unknown effect, until somebody decides.
        Parked = "parked",
    }
}

/// A message that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// When it died or was parked.
    pub since: Timestamp,
    /// The message.
    pub message: MessageRow,
}

/// How many messages of a queue are in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The queue.
    pub queue: String,
    /// The state.
    pub state: Stage,
    /// How many; a state without any may be left out.
    pub count: i64,
}
