//! Destinations: one delivery attempt of one message, and its outcome.
//!
//! Guarantee: a destination receives the same key on every attempt of a message, never retries on its own, and reports only
//! what is known of the effect.
//!
//! Start at [`DeliveryAttempt`] and [`DeliveryOutcome`]. [`Destination`] lists the kinds: [`Handler`] is a function in this process, `http` a
//! remote receiver and `nats` a stream, each behind the feature of its name.
// Spec: D7.

mod cancel;
#[cfg(feature = "testing")]
mod faults;
mod handler;
mod handlers;
#[cfg(feature = "http")]
pub mod http;
mod job;
mod layer;
#[cfg(feature = "nats")]
pub mod nats;
mod promptness;

pub use cancel::Cancel;
#[cfg(feature = "testing")]
pub use faults::Fault;
#[cfg(feature = "testing")]
pub(crate) use faults::FaultLayer;
pub(crate) use handler::FirstPoll;
pub use handler::Handler;
pub use handlers::Handlers;
pub(crate) use handlers::no_handler;
pub use job::{Job, JobError, JobSuccess};
pub use layer::{HandlerFuture, HandlerRequest, HandlerService};

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

use crate::handler_tx::HandlerTx;

#[cfg(feature = "http")]
use self::http::Http;
#[cfg(feature = "nats")]
use self::nats::Nats;

/// The destination of a queue's messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Destination {
    /// Functions in this process, one for each type of message.
    Handlers(Box<Handlers>),
    /// A receiver that is called over HTTP.
    #[cfg(feature = "http")]
    Http(Arc<Http>),
    /// A stream of NATS `JetStream`.
    #[cfg(feature = "nats")]
    Nats(Arc<Nats>),
}

impl Destination {
    /// Makes one attempt. It ends within the promised timeout; dropping it earlier abandons the call.
    pub async fn call(&self, call: &DeliveryAttempt, cancel: &Cancel) -> DeliveryOutcome {
        self.call_in(call.clone(), cancel, None).await
    }

    /// Makes one attempt, in a transaction if it is a transactional function.
    pub(crate) async fn call_in(
        &self,
        call: DeliveryAttempt,
        cancel: &Cancel,
        tx: Option<HandlerTx>,
    ) -> DeliveryOutcome {
        match self {
            Self::Handlers(handlers) => handlers.call_in(call, cancel, tx).await,
            // Dropping the call closes its connection; the receiver gets no other signal.
            #[cfg(feature = "http")]
            Self::Http(http) => http.call(&call).await,
            // A published message cannot be recalled.
            #[cfg(feature = "nats")]
            Self::Nats(nats) => nats.call(&call).await,
        }
    }

    /// Returns what it promises.
    pub fn terms(&self) -> DeliveryTerms {
        match self {
            Self::Handlers(handlers) => handlers.terms(),
            #[cfg(feature = "http")]
            Self::Http(http) => http.terms(),
            #[cfg(feature = "nats")]
            Self::Nats(nats) => nats.terms(),
        }
    }

    /// Returns whether it can look up a call whose effect is unknown.
    pub fn can_reconcile(&self) -> bool {
        match self {
            Self::Handlers(handlers) => handlers.can_reconcile(),
            #[cfg(feature = "http")]
            Self::Http(http) => http.can_reconcile(),
            #[cfg(feature = "nats")]
            Self::Nats(_) => false,
        }
    }

    /// Looks up the effect of the calls under an outbound key.
    pub async fn reconcile(&self, key: &IdempotencyKey) -> ReconcileOutcome {
        match self {
            Self::Handlers(handlers) => handlers.ask(key).await,
            #[cfg(feature = "http")]
            Self::Http(http) => http.reconcile(key).await,
            #[cfg(feature = "nats")]
            Self::Nats(_) => ReconcileOutcome::unknown(),
        }
    }

    /// Returns the functions that do its work, if they are in this process.
    pub(crate) fn handlers(&self) -> Option<&Handlers> {
        match self {
            Self::Handlers(handlers) => Some(handlers),
            #[cfg(any(feature = "http", feature = "nats"))]
            _ => None,
        }
    }

    /// Advises how to make the receiver remember keys for `keeps_for`.
    pub(crate) fn key_retention_advice(&self, keeps_for: Duration) -> String {
        match self {
            #[cfg(feature = "nats")]
            Self::Nats(nats) => format!(
                "set duplicate_window of stream {} to at least {keeps_for:?} and restart, or shorten the \
                    queue's retries",
                nats.stream(),
            ),
            _ => format!(
                "make the receiver remember keys for at least {keeps_for:?}, or shorten the queue's retries"
            ),
        }
    }
}

impl From<Handler> for Destination {
    fn from(handler: Handler) -> Self {
        Self::Handlers(Box::new(handler.into()))
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

/// One attempt of one message, as its destination receives it.
#[derive(Clone)]
pub struct DeliveryAttempt {
    /// The message's id.
    pub message: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// The identity it acts for.
    pub identity: String,
    /// The outbound key: the same on every attempt.
    pub key: IdempotencyKey,
    /// The fence of its claim: greater than that of any earlier attempt.
    pub fence: Fence,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The hops so far; the outbox is the last one.
    // Spec: F1.
    pub hops: Hops,
    /// The trace it belongs to, in the format of `traceparent`.
    pub trace: Option<String>,
    /// The media type of the body.
    pub content_type: String,
    /// The caller's bytes.
    pub body: Bytes,
}

ichido_core::debug_only! {
    /// Keeps payload and key out of logs.
    DeliveryAttempt as call { message, queue, key, fence, attempt, body_bytes: call.body.len() }
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The call was made, and this is known of it.
    Judged {
        /// What is known of it.
        verdict: Verdict,
        /// For the audit trail: code, status, result digest, the receiver's own id and response, an excerpt of the
        /// error.
        note: Note,
    },
    /// It was postponed without a call and does not count.
    Snoozed {
        /// The delay.
        wait: Duration,
    },
}

impl DeliveryOutcome {
    /// An attempt with this verdict, whose code is copied into the note.
    pub fn judged(verdict: Verdict, note: Note) -> Self {
        Self::Judged { verdict, note: Note { code: verdict.code, ..note } }
    }

    /// An attempt with this verdict and a reason as its only note.
    pub fn with_reason(verdict: Verdict, why: impl Into<String>) -> Self {
        Self::judged(verdict, Note { excerpt: Some(why.into()), ..Note::default() })
    }

    /// A message that no call can carry: it is invalid, and nothing was sent.
    #[cfg(any(feature = "http", feature = "nats"))]
    fn unsendable() -> Self {
        let why = "not sent: its content type is not a valid header value; enqueue it again with another";
        let code = Some(ErrorCode::BadRequest);
        Self::with_reason(Verdict::declared(code, Effect::NotDone, Advice::GiveUp, None, None), why)
    }
}

/// What a destination promises about its calls.
// Spec: F2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryTerms {
    /// The guarantee about repeated calls.
    pub guarantee: Guarantee,
    /// The longest that a call may take before it is abandoned.
    pub timeout: Duration,
    /// How long an abandoned call may still be in flight.
    ///
    /// Proxies on the way may hold it.
    pub settle_grace: Duration,
}

impl DeliveryTerms {
    /// Returns how long after its start a call may still be in flight.
    pub fn max_time_in_flight(&self) -> Duration {
        self.timeout.saturating_add(self.settle_grace)
    }
}

/// What a destination returns when it looks up a message by key.
// Spec: F2.
#[derive(Clone, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// It was done.
    Done {
        /// For the audit trail: status, result digest, the receiver's own id and response.
        note: Note,
    },
    /// It was not done.
    ///
    /// This does not exclude a call still in flight: look up only after it must have settled.
    NotDone {
        /// For the audit trail.
        note: Note,
    },
    /// Neither is proven: there was no response, or an inconclusive one.
    Unknown {
        /// For the audit trail.
        note: Note,
    },
}

impl ReconcileOutcome {
    /// It was done; nothing else is known.
    pub fn done() -> Self {
        Self::Done { note: Note::default() }
    }

    /// It was not done; nothing else is known.
    pub fn not_done() -> Self {
        Self::NotDone { note: Note::default() }
    }

    /// Neither is proven; nothing else is known.
    pub fn unknown() -> Self {
        Self::Unknown { note: Note::default() }
    }
}

/// Keeps the response itself out of logs.
impl std::fmt::Debug for ReconcileOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, note) = match self {
            Self::Done { note } => ("Done", note),
            Self::NotDone { note } => ("NotDone", note),
            Self::Unknown { note } => ("Unknown", note),
        };
        f.debug_struct(name).field("status", &note.status).finish_non_exhaustive()
    }
}
