//! Where messages go: one try of one message, and what came of it.
//!
//! Guarantee: a destination is called with the same key on every try of a message (SPEC D7), never tries again by itself, and tells
//! of each try what is known of its effect, never more.
//!
//! Start at [`Call`] and [`Came`]. Each kind of destination is a module here, behind the feature of its name.

pub mod http;

use std::time::Duration;

use bytes::Bytes;
use ichido_core::fence::Fence;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::Verdict;
use ichido_store::message::{Note, QueueName};
use uuid::Uuid;

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
    /// The trace it belongs to, as `traceparent` has it.
    pub trace: Option<String>,
    /// The media type of the body.
    pub content_type: String,
    /// The caller's bytes.
    pub body: Bytes,
}

/// Payload and key stay out of logs.
impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("message", &self.message)
            .field("queue", &self.queue)
            .field("key", &self.key)
            .field("fence", &self.fence)
            .field("attempt", &self.attempt)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// What a try came to.
#[derive(Clone, Debug)]
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

/// What a destination says when it is asked, by its key, what became of a message (SPEC F2).
#[derive(Clone, PartialEq, Eq)]
pub enum Asked {
    /// It was done.
    Done {
        /// For the audit: status, result digest, the receiver's own name for it, an excerpt of the answer.
        note: Note,
    },
    /// It was not done.
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
