//! A claimed message, and the report that settles it.

use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, History, StartMark, State};
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use super::QueueName;

/// Who claims, for how long, and with which safeguards.
#[derive(Clone, Copy, Debug)]
pub struct ClaimOptions {
    /// The node that claims. Its id is new for each start of the program, and is shown in the audit trail.
    pub node: Uuid,
    /// How long the claim is valid without renewal.
    pub lease: Duration,
    /// Whether the start of each call will be marked ([`StartMark::NotYet`]) with [`Claims::mark_started`](crate::Claims::mark_started). Use it
    /// for irreversible work without keys.
    ///
    /// A message that a worker died with is always claimed this way ([`ClaimedMessage::start_mark`] shows it). [`rescue`](crate::rescue) has
    /// an example.
    pub start_marks: bool,
    /// The guarantee about repeated calls, as configured on this node. It is stored with the claim: if the holder dies, a
    /// rescue uses the weaker of this and its own guarantee.
    // SPEC F2.
    pub guarantee: Guarantee,
    /// How long a call may be in flight after it starts. It is stored likewise, and a rescue uses the longer one.
    pub max_time_in_flight: Duration,
}

/// A claimed message.
#[derive(Clone)]
pub struct ClaimedMessage {
    /// Its id.
    pub id: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// The caller's identity.
    pub identity: String,
    /// Its key.
    pub key: IdempotencyKey,
    /// The media type of the request.
    pub content_type: String,
    /// The caller's bytes.
    pub request: Vec<u8>,
    /// The digest of the request.
    pub digest: Digest,
    /// The hops that it passed, as in the header `Ichido-Hops`.
    // SPEC F1.
    pub hops: Option<String>,
    /// The trace context.
    pub trace: Option<String>,
    /// The correlation id that the request carries.
    pub trace_id: Option<String>,
    /// What it is about, for people.
    pub item: Option<String>,
    /// The priority; 0 is most urgent.
    pub priority: u8,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The time before which it was not to be sent; `None` if it was due at once.
    pub run_at: Option<Timestamp>,
    /// When a person last requeued it, or decided that it was not done; `None` if nobody did, or many attempts ago.
    pub requeued_at: Option<Timestamp>,
    /// When it was claimed, on the store's clock.
    pub claimed_at: Timestamp,
    /// The fence of the claim.
    pub fence: Fence,
    /// Whether the start of its call was marked when it was claimed. [`Claims::mark_started`](crate::Claims::mark_started) does not update
    /// this field; the store checks the mark and refuses [`Event::GivenBack`] once it is made.
    pub start_mark: StartMark,
    /// Its attempts so far, including this one.
    pub history: History,
}

ichido_core::debug_only! {
    /// Keeps payload and key out of logs.
    ClaimedMessage as work { id, queue, key, fence, history }
}

impl ClaimedMessage {
    /// Returns since when it waits: since it was due, or since a person sent it again.
    pub fn waits_since(&self) -> Timestamp {
        self.requeued_at.or(self.run_at).unwrap_or(self.created_at)
    }

    /// Returns its lifecycle state.
    pub const fn state(&self) -> State {
        State::Sending {
            fence: self.fence,
            claimed_at: self.claimed_at,
            start_mark: self.start_mark,
            proven: false,
            history: self.history,
        }
    }
}

/// A worker's report about a message that it holds.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The message.
    pub id: Uuid,
    /// Its queue.
    pub queue: QueueName,
    /// Its priority.
    pub priority: u8,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// Its state when it was claimed, with the fence.
    pub state: State,
    /// The event that a holder may report: [`Event::Succeeded`], [`Event::Failed`], [`Event::GivenBack`] or
    /// [`Event::Stopped`]. Any other is refused.
    pub event: Event,
    /// Details of the event.
    pub note: Note,
}

impl Settlement {
    /// Creates a report about `work`.
    pub fn new(work: &ClaimedMessage, event: Event, note: Note) -> Self {
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

/// Details of an event, for the audit trail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Why it failed.
    pub code: Option<ErrorCode>,
    /// The response status. Dropped if the databases cannot hold the number, which no valid status is.
    pub status: Option<u16>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
    /// The receiver's own id for what it did.
    pub receipt: Option<String>,
    /// The error message, truncated.
    pub excerpt: Option<String>,
    /// The receiver's response to a success.
    pub response: Option<ReceiverResponse>,
    /// The operator who acted.
    pub actor: Option<String>,
}

/// A receiver's response to a success: kept whole, or only its size and media type.
// SPEC D18.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceiverResponse {
    /// Its media type, with its encoding if it has one; empty if it has none.
    pub content_type: String,
    /// Its size, also if it is not kept. Of one that was not read to its end, the size of what was read.
    pub bytes: usize,
    /// Whether it was read to its end; if not, it has more than `bytes`.
    pub is_whole: bool,
    /// Its bytes; `None` if it was too large to keep.
    pub body: Option<Vec<u8>>,
}

ichido_core::debug_only! {
    /// Keeps the response out of logs.
    ReceiverResponse as response { content_type, bytes }
}

impl ReceiverResponse {
    /// Drops the body if it has more than `max_bytes`: a part of it would be misread.
    #[must_use]
    pub fn kept_up_to(self, max_bytes: usize) -> Self {
        Self { body: self.body.filter(|body| body.len() <= max_bytes), ..self }
    }
}

impl Note {
    /// Returns how much a batch grows by it.
    pub(crate) fn bytes(&self) -> usize {
        let body = self.response.as_ref().and_then(|response| response.body.as_ref());
        self.excerpt.as_ref().map_or(0, String::len) + body.map_or(0, Vec::len) + 300
    }
}

/// The outcome of a settlement or a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a refused step changed nothing"]
pub enum StepResult {
    /// It was applied; the message is now in this state.
    Now(State),
    /// It is not allowed, and nothing was changed. A worker that gets [`StaleFence`](ichido_core::lifecycle::StepRefusal::StaleFence)
    /// has lost its claim, and somebody else may have the message.
    Refused(ichido_core::lifecycle::StepRefusal),
    /// There is no such message.
    NoSuchMessage,
}
