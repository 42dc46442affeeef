//! Messages as they are read: their rows, transitions and counts.

use ichido_core::audit::entry::EntryId;
use ichido_core::digest::Digest;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use uuid::Uuid;

use super::ReceiverResponse;

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

impl Transition {
    /// Returns whether it ended a call, or says what came of one.
    pub fn is_fact(&self) -> bool {
        let facts =
            ["succeeded", "failed", "stopped", "worker_died", "late_success", "reconciled", "decided"];
        facts.contains(&self.kind.as_str())
    }
}

/// A page of a message's transitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransitionPage {
    /// In order.
    pub transitions: Vec<Transition>,
    /// Where the page before it ends; `None` if this one begins with the first transition.
    pub earlier: Option<EntryId>,
    /// The transition from which on the effect is what it is now, if it is before this page, the newest one.
    pub basis: Option<Transition>,
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
