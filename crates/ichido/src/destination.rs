//! Where messages go: one try of one message, and what came of it.
//!
//! Guarantee: a destination is called with the same key on every try of a message (SPEC D7), never tries again by itself, and tells
//! of each try what is known of its effect, never more.
//!
//! Start at [`Call`] and [`Came`]. [`Destination`] is the kinds there are; [`Handler`] is a function in this process, `http` a receiver
//! elsewhere and `nats` a stream, each behind the feature of its name.

mod cancel;
mod handler;
#[cfg(feature = "http")]
pub mod http;
mod job;
#[cfg(feature = "nats")]
pub mod nats;

pub use cancel::Cancel;
pub use handler::Handler;
pub use job::{Done, Failed, Job};

#[cfg(any(feature = "http", feature = "nats"))]
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ichido_core::fence::Fence;
use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::Verdict;
#[cfg(any(feature = "http", feature = "nats"))]
use ichido_core::verdict::{Advice, Effect, ErrorCode};
use ichido_store::message::{Note, QueueName};
use uuid::Uuid;

#[cfg(feature = "http")]
use self::http::Http;
#[cfg(feature = "nats")]
use self::nats::Nats;

/// Where a queue's messages go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Destination {
    /// A function in this process.
    Handler(Handler),
    /// A receiver that is called over HTTP.
    #[cfg(feature = "http")]
    Http(Arc<Http>),
    /// A stream of NATS `JetStream`.
    #[cfg(feature = "nats")]
    Nats(Arc<Nats>),
}

impl Destination {
    /// Makes one try. It ends by itself within the promised time-out; whoever drops it before gives the call up.
    pub async fn call(&self, call: &Call, cancel: &Cancel) -> Came {
        match self {
            Self::Handler(handler) => handler.call(call, cancel).await,
            // Whoever drops the call closes its connection, which is all that can be told to the other side.
            #[cfg(feature = "http")]
            Self::Http(http) => http.call(call).await,
            // What was published cannot be called back.
            #[cfg(feature = "nats")]
            Self::Nats(nats) => nats.call(call).await,
        }
    }

    /// What it promises.
    pub fn promise(&self) -> Promise {
        match self {
            Self::Handler(handler) => handler.promise(),
            #[cfg(feature = "http")]
            Self::Http(http) => http.promise(),
            #[cfg(feature = "nats")]
            Self::Nats(nats) => nats.promise(),
        }
    }

    /// Whether it can be asked after a call whose effect is not known.
    pub fn can_be_asked(&self) -> bool {
        match self {
            Self::Handler(handler) => handler.can_be_asked(),
            #[cfg(feature = "http")]
            Self::Http(http) => http.can_be_asked(),
            #[cfg(feature = "nats")]
            Self::Nats(_) => false,
        }
    }

    /// Asks what became of the calls under an outbound key.
    pub async fn ask(&self, key: &IdempotencyKey) -> Asked {
        match self {
            Self::Handler(handler) => handler.ask(key).await,
            #[cfg(feature = "http")]
            Self::Http(http) => http.ask(key).await,
            #[cfg(feature = "nats")]
            Self::Nats(_) => Asked::unknown(),
        }
    }

    /// What a person can do so that keys are honoured for so long.
    pub(crate) fn key_retention_advice(&self, keeps_for: Duration) -> String {
        match self {
            #[cfg(feature = "nats")]
            Self::Nats(nats) => format!(
                "set duplicate_window of stream {} to {keeps_for:?} or more and start again, or shorten the queue's retries",
                nats.stream(),
            ),
            _ => format!(
                "have the receiver remember keys for {keeps_for:?} or more, or shorten the queue's retries"
            ),
        }
    }
}

impl From<Handler> for Destination {
    fn from(handler: Handler) -> Self {
        Self::Handler(handler)
    }
}

#[cfg(feature = "http")]
impl From<Http> for Destination {
    fn from(http: Http) -> Self {
        Self::Http(Arc::new(http))
    }
}

#[cfg(feature = "nats")]
impl From<Nats> for Destination {
    fn from(nats: Nats) -> Self {
        Self::Nats(Arc::new(nats))
    }
}

/// One try of one message, as its destination gets it.
#[derive(Clone)]
pub struct Call {
    /// The message's id.
    pub message: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// For whom it acts.
    pub identity: String,
    /// The outbound key: the same on every try.
    pub key: IdempotencyKey,
    /// The claim under which it is made: greater than that of any earlier try.
    pub fence: Fence,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// The way it came, the outbox as its last hop (SPEC F1).
    pub hops: Hops,
    /// The trace it belongs to, as `traceparent` has it.
    pub trace: Option<String>,
    /// The media type of the body.
    pub content_type: String,
    /// The caller's bytes.
    pub body: Bytes,
}

ichido_core::debug_only! {
    /// Payload and key stay out of logs.
    Call as call { message, queue, key, fence, attempt, body_bytes: call.body.len() }
}

/// What a try came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// It was made, and this is what is known of it.
    Judged {
        /// What it came to.
        verdict: Verdict,
        /// For the audit: code, status, result digest, the receiver's own name for it, an excerpt of the error.
        note: Note,
    },
    /// It was put off without being made, and does not count.
    Snoozed {
        /// For this long.
        wait: Duration,
    },
}

impl Came {
    /// A try with this verdict, whose code goes into the note.
    pub fn judged(verdict: Verdict, note: Note) -> Self {
        Self::Judged { verdict, note: Note { code: verdict.code, ..note } }
    }

    /// The same with nothing to note but what happened.
    pub fn said(verdict: Verdict, why: impl Into<String>) -> Self {
        Self::judged(verdict, Note { excerpt: Some(why.into()), ..Note::default() })
    }

    /// A message that no call can carry: it is wrong as it stands, and nothing was sent.
    #[cfg(any(feature = "http", feature = "nats"))]
    fn unsendable() -> Self {
        let why =
            "not sent: its media type cannot be the value of a header field; put it in anew with another";
        let code = Some(ErrorCode::BadRequest);
        Self::said(Verdict::said(code, Effect::NotDone, Advice::GiveUp, None, None), why)
    }
}

/// What a destination promises about the calls it gets (SPEC F2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// About repetitions.
    pub guarantee: Guarantee,
    /// The longest that a call may take; it is given up on then.
    pub time_out: Duration,
    /// The longest that a call may still be travelling after it was given up on: proxies on the way may hold it.
    pub settles_within: Duration,
}

impl Promise {
    /// How long after its beginning a call may still be travelling.
    pub fn max_time_in_flight(&self) -> Duration {
        self.time_out.saturating_add(self.settles_within)
    }
}

/// What a destination says when it is asked, by its key, what became of a message (SPEC F2).
#[derive(Clone, PartialEq, Eq)]
pub enum Asked {
    /// It was done.
    Done {
        /// For the audit: status, result digest, the receiver's own name for it, an excerpt of the answer.
        note: Note,
    },
    /// It was not done, and a call that is still travelling is not thereby excluded: ask no sooner than it can have settled.
    NotDone {
        /// For the audit.
        note: Note,
    },
    /// Neither is proved: no answer, or one that says neither.
    Unknown {
        /// For the audit.
        note: Note,
    },
}

impl Asked {
    /// It was done, and nothing more is known.
    pub fn done() -> Self {
        Self::Done { note: Note::default() }
    }

    /// It was not done, and nothing more is known.
    pub fn not_done() -> Self {
        Self::NotDone { note: Note::default() }
    }

    /// Neither is proved, and nothing more is known.
    pub fn unknown() -> Self {
        Self::Unknown { note: Note::default() }
    }
}

/// The answer itself stays out of logs.
impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, note) = match self {
            Self::Done { note } => ("Done", note),
            Self::NotDone { note } => ("NotDone", note),
            Self::Unknown { note } => ("Unknown", note),
        };
        f.debug_struct(name).field("status", &note.status).finish_non_exhaustive()
    }
}
