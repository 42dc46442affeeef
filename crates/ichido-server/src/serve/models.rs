//! The bodies of the API about messages, queues and nodes.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use ichido_core::lifecycle::Stage;
use ichido_core::verdict::ErrorCode;
use ichido_store::message::{MessageRow, Transition};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::caller::ApiCaller;

/// Replaces the digest of a result that an earlier call produced and nobody saw.
// Spec: D7.
const FROM_CONFLICT: &str = "sha256:from-conflict";

/// A message that was accepted. It says nothing that ever changes, so that every answer to the same request is the same.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Accepted {
    /// The message's id.
    pub id: Uuid,
    /// Its queue.
    pub queue: String,
    /// Its key.
    pub idempotency_key: String,
    /// `sha256:` over the canonical request.
    pub request_digest: String,
    /// Always `queued`: how it stands later is told at `href`.
    pub status: String,
    /// Where it is shown.
    pub href: String,
}

impl Accepted {
    pub(super) fn new(id: Uuid, queue: String, key: String, digest: String) -> Self {
        Self {
            id,
            queue,
            idempotency_key: key,
            request_digest: digest,
            status: Stage::Queued.to_string(),
            href: href(id),
        }
    }
}

/// Returns the path of a message.
pub(super) fn href(id: Uuid) -> String {
    format!("/v1/messages/{id}")
}

/// What every listing and every look at a message shows.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct MessageFacts {
    pub id: Uuid,
    pub queue: String,
    /// For whom it is: with queue and key, what makes it unique.
    pub identity: String,
    pub idempotency_key: String,
    /// The media type of the request.
    pub content_type: String,
    /// How long the request is; its bytes are at `/request`.
    pub request_bytes: usize,
    pub request_digest: String,
    /// `queued`, `sending`, `failed` (waiting for its next try), `parked` (waiting for a person), `sent`, `dead` or `cancelled`.
    pub status: String,
    /// What is known of its effect: `not_done`, `done` or `unknown`.
    pub effect: String,
    /// Tries so far, the first included.
    pub tries: u32,
    pub tries_allowed: u32,
    /// When it is due; none once it is being sent or has ended.
    pub next_attempt_at: Option<String>,
    pub last_error: Option<LastError>,
    /// 0 is most urgent.
    pub priority: u8,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// The dead message that it was made from.
    pub made_from: Option<Uuid>,
    pub created_at: String,
    pub updated_at: String,
}

/// A message as it stands.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Message {
    #[serde(flatten)]
    pub facts: MessageFacts,
    /// What came of it, once it was sent.
    pub result: Option<MessageResult>,
    /// The way it came, as the header `Ichido-Hops` has it.
    pub hops: Option<String>,
}

/// A message in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Listed {
    #[serde(flatten)]
    facts: MessageFacts,
    /// Where all of it is shown.
    href: String,
}

/// Why the last try failed.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct LastError {
    pub code: String,
    pub text: Option<String>,
}

/// What came of a message that was sent.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct MessageResult {
    pub at: String,
    /// The status of the receiver's answer.
    pub status: Option<u16>,
    /// The receiver's own name for what it did, such as a broker's order id.
    pub receipt: Option<String>,
    /// `sha256:` over the canonical result; `sha256:from-conflict` where the receiver had done it before.
    pub result_digest: Option<String>,
}

impl LastError {
    pub(super) const fn new(code: String, text: Option<String>) -> Self {
        Self { code, text }
    }
}

impl MessageFacts {
    fn new(row: MessageRow) -> Self {
        Self {
            id: row.id,
            queue: row.queue,
            identity: row.identity,
            idempotency_key: row.key.as_str().to_owned(),
            content_type: row.content_type,
            request_bytes: row.request.len(),
            request_digest: row.request_digest.to_string(),
            status: row.status.to_string(),
            effect: row.effect.to_string(),
            tries: row.tries,
            tries_allowed: row.tries_allowed,
            next_attempt_at: row.next_attempt.map(|at| at.to_string()),
            last_error: row.last_error.map(|code| LastError::new(code, row.last_error_text)),
            priority: row.priority,
            trace: row.trace,
            made_from: row.made_from,
            created_at: row.created_at.to_string(),
            updated_at: row.updated_at.to_string(),
        }
    }
}

impl Message {
    pub(super) fn new(mut row: MessageRow, transitions: &[Transition]) -> Self {
        let last_to_sent = transitions.iter().rev().find(|step| step.to == Stage::Sent);
        let result = last_to_sent.filter(|_| row.status == Stage::Sent).map(|step| MessageResult {
            at: step.at.to_string(),
            status: step.status,
            receipt: step.receipt.clone(),
            result_digest: result_digest(step),
        });
        Self { hops: row.hops.take(), facts: MessageFacts::new(row), result }
    }
}

impl Listed {
    pub(super) fn new(row: MessageRow) -> Self {
        Self { href: href(row.id), facts: MessageFacts::new(row) }
    }
}

/// The events of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Events {
    /// In the order in which they happened.
    events: Vec<Event>,
}

impl Events {
    pub(super) fn new(transitions: Vec<Transition>) -> Self {
        Self { events: transitions.into_iter().map(Event::new).collect() }
    }
}

/// One transition in a message's life.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Event {
    pub at: String,
    /// What happened, such as `claimed`, `succeeded` or `requeued`.
    pub kind: String,
    pub from: String,
    pub to: String,
    pub tries: u32,
    pub effect: String,
    pub error_code: Option<String>,
    /// What the error said.
    pub error_text: Option<String>,
    /// The status of the receiver's answer.
    pub status: Option<u16>,
    pub receipt: Option<String>,
    pub result_digest: Option<String>,
    /// The claim it belongs to.
    pub fence: Option<u64>,
    /// The node that acted.
    pub node: Option<Uuid>,
    /// The person who acted.
    pub actor: Option<String>,
}

impl Event {
    pub(super) fn new(step: Transition) -> Self {
        Self {
            at: step.at.to_string(),
            result_digest: result_digest(&step),
            kind: step.kind,
            from: step.from.to_string(),
            to: step.to.to_string(),
            tries: step.tries,
            effect: step.effect.to_string(),
            error_code: step.code,
            error_text: step.excerpt,
            status: step.status,
            receipt: step.receipt,
            fence: step.fence,
            node: step.node,
            actor: step.actor,
        }
    }
}

fn result_digest(step: &Transition) -> Option<String> {
    match step.result_digest {
        Some(digest) => Some(digest.to_string()),
        None if step.code.as_deref() == Some(ErrorCode::ConflictProcessed.as_str()) => {
            Some(FROM_CONFLICT.to_owned())
        }
        None => None,
    }
}

/// All queues that the caller may see.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Queues {
    pub(super) queues: Vec<Queue>,
}

/// A queue as it stands. A producer is told its name and whether it is served and paused: what is in it is of other identities, too.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Queue {
    pub name: String,
    /// Whether this server takes messages in for it and delivers them.
    pub served_here: bool,
    /// Whether nothing of it is delivered until it is resumed.
    pub paused: bool,
    /// Who paused it; not told to a producer.
    pub paused_by: Option<String>,
    /// Since when.
    pub paused_at: Option<String>,
    /// How many messages are in each state; null to a producer.
    pub counts: Option<Counts>,
    /// When the oldest message that could be delivered now was put in; not told to a producer.
    pub oldest_waiting_at: Option<String>,
    /// Its age; not told to a producer.
    pub oldest_waiting_seconds: Option<f64>,
}

impl Queue {
    /// Hides what the caller may not see.
    pub(super) fn redacted_for(self, caller: &ApiCaller) -> Self {
        if caller.require_viewer().is_ok() {
            return self;
        }
        Self { paused_by: None, counts: None, oldest_waiting_at: None, oldest_waiting_seconds: None, ..self }
    }
}

/// How many messages are in each state.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct Counts {
    pub queued: i64,
    pub sending: i64,
    pub failed: i64,
    pub parked: i64,
    pub sent: i64,
    pub dead: i64,
    pub cancelled: i64,
}

impl Counts {
    pub(super) fn get_mut(&mut self, stage: Stage) -> &mut i64 {
        match stage {
            Stage::Queued => &mut self.queued,
            Stage::Sending => &mut self.sending,
            Stage::Failed => &mut self.failed,
            Stage::Parked => &mut self.parked,
            Stage::Sent => &mut self.sent,
            Stage::Dead => &mut self.dead,
            Stage::Cancelled => &mut self.cancelled,
        }
    }
}

/// All nodes that were ever heard of.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<NodeStatus>,
}

/// A node of the same store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub(super) struct NodeStatus {
    pub(super) id: Uuid,
    pub(super) name: String,
    /// Whether it was heard of lately.
    pub(super) alive: bool,
    pub(super) started_at: String,
    pub(super) seen_at: String,
}

/// Whether the server should get requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// `ready`.
    pub(super) status: &'static str,
    /// What was looked at; only where `?verbose` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checks: Option<Vec<ReadinessCheck>>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Check)]
pub(super) struct ReadinessCheck {
    pub(super) name: &'static str,
    pub(super) ok: bool,
    pub(super) detail: String,
}

/// A refusal or a failure (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProblemDetails {
    /// `urn:ichido:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    title: String,
    status: u16,
    /// What is wrong with this request, and how to mend it.
    detail: String,
    /// One word that stays the same, with a page of its own in `docs/errors/`.
    code: String,
}
