//! The bodies of the API about messages, queues and nodes.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ichido_core::json::{Redaction, Redactor};
use ichido_core::lifecycle::{Event as LifecycleEvent, StateName};
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::counters::Replays;
use ichido_store::message::{
    Cancellation, MessageRow, MessageSchedule, ReceiverResponse, Transition, TransitionPage,
};
use ichido_store::node::MessageHolder;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::caller::ApiCaller;
use super::cursor;
use super::parallelism::Parallelism;

/// Replaces the digest of a result that an earlier call produced and nobody saw.
// Spec: D7.
const FROM_CONFLICT: &str = "sha256:from-conflict";

/// A message that was accepted.
///
/// It has no member that changes, so every response to the same request is the same.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Accepted {
    /// The message's id.
    pub id: Uuid,
    /// Its queue.
    pub queue: String,
    /// Its key.
    pub idempotency_key: String,
    /// Request digest: `sha256:` of the canonical request.
    pub request_digest: String,
    /// Always `queued`; `href` shows the current state.
    pub status: String,
    /// The path of the message.
    pub href: String,
    /// The priority that applies, if the request has a `priority`, `delay` or `run_at`: that of the first request with this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// When the first attempt is due, under the same condition; absent if it is due at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
}

impl Accepted {
    pub(super) fn new(id: Uuid, queue: String, key: String, digest: String) -> Self {
        Self {
            id,
            queue,
            idempotency_key: key,
            request_digest: digest,
            status: StateName::Queued.to_string(),
            href: href(id),
            priority: None,
            run_at: None,
        }
    }

    /// Shows the schedule that the message was enqueued with. It does not change, so neither does the response.
    pub(super) fn with_schedule(self, schedule: MessageSchedule) -> Self {
        let run_at = schedule.run_at.map(|run_at| run_at.to_string());
        Self { priority: Some(schedule.priority), run_at, ..self }
    }
}

/// Returns the path of a message.
pub(super) fn href(id: Uuid) -> String {
    format!("/v1/messages/{id}")
}

/// The members that messages have everywhere.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct MessageFacts {
    pub id: Uuid,
    pub queue: String,
    /// The identity that it belongs to. Queue, identity and key together are unique.
    pub identity: String,
    pub idempotency_key: String,
    /// The media type of the request.
    pub content_type: String,
    /// Size of the request, which is at `/request`.
    pub request_bytes: usize,
    /// Request digest: `sha256:` of the canonical request; `[redacted]` if its queue redacts values.
    pub request_digest: String,
    /// `queued`, `sending`, `failed` (waiting for its next attempt), `parked` (waiting for a person), `sent`, `dead` or `cancelled`.
    pub status: String,
    /// What is known of its effect: `not_done`, `done` or `unknown`; `in_flight` while it is being sent, which is not known yet.
    pub effect: String,
    /// Attempts so far, including the first.
    pub attempts: u32,
    pub max_attempts: u32,
    /// When it is due; null while it is being sent and when it is finished.
    pub next_attempt_at: Option<String>,
    pub last_error: Option<LastError>,
    /// 0 is sent first; 2 is the default.
    pub priority: u8,
    /// Its trace.
    pub trace: Option<String>,
    /// The correlation id that its request carries.
    pub trace_id: Option<String>,
    /// What it is about, for people: a title or URL in its request.
    pub item: Option<String>,
    /// The dead message that it replaces.
    pub replacement_of: Option<Uuid>,
    pub created_at: String,
    pub updated_at: String,
}

/// A message in its current state.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Message {
    #[serde(flatten)]
    pub facts: MessageFacts,
    /// The node that holds it, while it is being sent.
    pub held_by: Option<Holder>,
    /// The message that replaces it, if it is dead and was edited.
    pub replaced_by: Option<String>,
    /// The request to cancel it, while it is being sent.
    pub cancel_requested: Option<CancelRequest>,
    /// Its result, once it was sent.
    pub result: Option<MessageResult>,
    /// Its hop chain, as in the header `Ichido-Hops`.
    pub hops: Option<String>,
    /// How often it was enqueued again under its key; null if it was not.
    pub replays: Option<ReplayCount>,
}

/// How often the same request was sent again.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReplayCount {
    /// How many times, at least: a server that crashes loses what it counted in its last seconds. It is kept for 90 days.
    pub count: u64,
    pub first_at: String,
    pub last_at: String,
}

impl From<Replays> for ReplayCount {
    fn from(Replays { count, first_at, last_at }: Replays) -> Self {
        Self { count, first_at: first_at.to_string(), last_at: last_at.to_string() }
    }
}

/// A request to cancel a message in flight.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct CancelRequest {
    pub at: String,
    /// Who asked.
    pub actor: Option<String>,
    pub reason: Option<String>,
}

impl From<Cancellation> for CancelRequest {
    fn from(Cancellation { requested_at, actor, reason }: Cancellation) -> Self {
        Self { at: requested_at.to_string(), actor, reason }
    }
}

/// The node that holds a message in flight.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Holder {
    pub node: Uuid,
    /// The node's name; null if it sends no heartbeats.
    pub name: Option<String>,
    /// When its lease lapses unless it is renewed.
    pub lease_until: String,
    /// When it counts as dead without another heartbeat; null if it sends none.
    pub alive_until: Option<String>,
}

impl From<MessageHolder> for Holder {
    fn from(MessageHolder { node, name, lease_until, alive_until }: MessageHolder) -> Self {
        let alive_until = alive_until.map(|at| at.to_string());
        Self { node, name, lease_until: lease_until.to_string(), alive_until }
    }
}

/// A message in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Listed {
    #[serde(flatten)]
    facts: MessageFacts,
    /// The path of the message.
    href: String,
}

/// Why the last attempt failed.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct LastError {
    pub code: String,
    pub text: Option<String>,
}

/// The result of a message that was sent.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct MessageResult {
    pub at: String,
    /// Status of the receiver's response.
    pub status: Option<u16>,
    /// The receiver's own id, such as a broker's order id.
    pub receipt: Option<String>,
    /// `sha256:` of the canonical result; `sha256:from-conflict` if the receiver had processed it before, `[redacted]` if its queue redacts values.
    pub result_digest: Option<String>,
    /// The receiver's response; null if it was empty, or is not known.
    pub response: Option<ResultResponse>,
}

/// A receiver's response to a message that was sent.
// Spec: D18.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct ResultResponse {
    /// Its media type, with its encoding if it has one.
    pub content_type: String,
    /// Its size, also if it was not kept.
    pub bytes: usize,
    /// True if it has more than `bytes`, because it is larger than the destination's `max_response_bytes`; otherwise left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_more: bool,
    /// Whether it was kept. One that is larger than the queue's `keep_response` is not.
    pub kept: bool,
    /// The response, if it is JSON that common parsers can read: as it was sent. Other text is a string.
    #[schema(value_type = Option<serde_json::Value>)]
    pub body: Option<Box<RawValue>>,
    /// In base64, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

impl ResultResponse {
    fn new(response: &ReceiverResponse, redactor: &Redactor<'_>) -> Self {
        let body = response.body.as_deref().map(|body| redactor.response(body));
        let text = body.as_deref().map(std::str::from_utf8);
        let json = |text: &str| {
            // JSON that a usual parser refuses, such as by its depth, would make the whole message unreadable.
            let is_plain = serde_json::from_str::<serde_json::Value>(text).is_ok();
            let parsed = is_plain.then(|| RawValue::from_string(text.to_owned()).ok()).flatten();
            parsed.or_else(|| serde_json::value::to_raw_value(text).ok())
        };
        Self {
            content_type: response.content_type.clone(),
            bytes: response.bytes,
            has_more: !response.is_whole,
            kept: response.body.is_some(),
            body: text.and_then(Result::ok).and_then(json),
            body_base64: body
                .as_ref()
                .filter(|_| matches!(text, Some(Err(_))))
                .map(|body| STANDARD.encode(body)),
        }
    }
}

impl LastError {
    pub(super) const fn new(code: String, text: Option<String>) -> Self {
        Self { code, text }
    }

    /// Returns an error of a message as people see it.
    pub(super) fn redacted(code: String, text: Option<String>, redactor: &Redactor<'_>) -> Self {
        Self { code, text: redacted(text, redactor) }
    }
}

impl MessageFacts {
    fn new(row: MessageRow, redactor: &Redactor<'_>) -> Self {
        Self {
            id: row.id,
            queue: row.queue,
            identity: row.identity,
            idempotency_key: row.key.as_str().to_owned(),
            content_type: row.content_type,
            request_bytes: row.request.len(),
            request_digest: redactor.digest(row.request_digest.to_string()),
            status: row.status.to_string(),
            effect: row.status.effect_name(row.effect).to_owned(),
            attempts: row.attempts,
            max_attempts: row.max_attempts,
            next_attempt_at: row.next_attempt.map(|at| at.to_string()),
            last_error: row.last_error.map(|code| LastError::redacted(code, row.last_error_text, redactor)),
            priority: row.priority,
            trace: row.trace,
            trace_id: row.trace_id,
            item: row.item,
            replacement_of: row.replacement_of,
            created_at: row.created_at.to_string(),
            updated_at: row.updated_at.to_string(),
        }
    }
}

impl Message {
    pub(super) fn new(
        mut row: MessageRow,
        transitions: &[Transition],
        holder: Option<MessageHolder>,
        cancellation: Option<Cancellation>,
        replays: Option<Replays>,
        redaction: &Redaction,
    ) -> Self {
        let redactor = redaction.of_request(&row.request);
        let last_to_sent = transitions.iter().rev().find(|step| step.to == StateName::Sent);
        let result = last_to_sent.filter(|_| row.status == StateName::Sent).map(|step| MessageResult {
            at: step.at.to_string(),
            status: step.status,
            receipt: redacted(step.receipt.clone(), &redactor),
            result_digest: result_digest(step, &redactor),
            response: step.response.as_ref().map(|response| ResultResponse::new(response, &redactor)),
        });
        let replaced = transitions.iter().rev().find(|step| step.kind == LifecycleEvent::Replaced.name());
        Self {
            hops: row.hops.take(),
            facts: MessageFacts::new(row, &redactor),
            replaced_by: replaced.and_then(|step| step.receipt.clone()),
            held_by: holder.map(Holder::from),
            cancel_requested: cancellation.map(CancelRequest::from),
            result,
            replays: replays.map(ReplayCount::from),
        }
    }
}

impl Listed {
    /// Its error was redacted when it was stored; a list does not parse requests.
    pub(super) fn new(row: MessageRow, redaction: &Redaction) -> Self {
        Self { href: href(row.id), facts: MessageFacts::new(row, &redaction.of_stored()) }
    }
}

/// The events of a message.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the list has its name in the API")]
pub(super) struct Events {
    /// Oldest first.
    events: Vec<Event>,
    /// The `cursor` of the page before this one; null if this one begins with the first event.
    earlier: Option<String>,
    /// The event from which on the effect is what it is now, if it is before this page; only with the newest page.
    basis: Option<Event>,
}

impl Events {
    pub(super) fn new(row: &MessageRow, page: TransitionPage, redaction: &Redaction) -> Self {
        let TransitionPage { transitions, earlier, basis } = page;
        let basis = basis.map(|step| Event::new(row, step, &redaction.of_request(&row.request)));
        let mut events = Event::trail(row, transitions, redaction);
        if earlier.is_some() {
            // The acceptance belongs to the first page.
            events.remove(0);
        }
        Self { events, earlier: earlier.as_ref().map(cursor::encode), basis }
    }
}

/// One transition of a message.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Event {
    pub at: String,
    /// The transition, such as `accepted`, `claimed`, `succeeded` or `requeued`.
    pub kind: String,
    /// Null for the first one: the message was accepted.
    pub from: Option<String>,
    pub to: String,
    pub idempotency_key: String,
    /// The correlation id that the request carries.
    pub trace_id: Option<String>,
    /// The trace context (W3C), as stored with the message.
    pub traceparent: Option<String>,
    pub attempts: u32,
    pub effect: String,
    pub error_code: Option<String>,
    /// Text of the error.
    pub error_text: Option<String>,
    /// Status of the receiver's response.
    pub status: Option<u16>,
    pub receipt: Option<String>,
    pub result_digest: Option<String>,
    /// The fence of its claim.
    pub fence: Option<u64>,
    /// The node that acted.
    pub node: Option<Uuid>,
    /// The person who acted.
    pub actor: Option<String>,
}

impl Event {
    /// Returns a message's trail. Its first entry, the acceptance, is the message's own row, which the audit seals.
    // Spec: D13.
    pub(super) fn trail(row: &MessageRow, transitions: Vec<Transition>, redaction: &Redaction) -> Vec<Self> {
        let redactor = redaction.of_request(&row.request);
        let rest = transitions.into_iter().map(|step| Self::new(row, step, &redactor));
        std::iter::once(Self::accepted(row)).chain(rest).collect()
    }

    fn accepted(row: &MessageRow) -> Self {
        Self {
            at: row.created_at.to_string(),
            kind: "accepted".to_owned(),
            from: None,
            to: StateName::Queued.to_string(),
            idempotency_key: row.key.as_str().to_owned(),
            trace_id: row.trace_id.clone(),
            traceparent: row.trace.clone(),
            attempts: 0,
            effect: Effect::NotDone.to_string(),
            error_code: None,
            error_text: None,
            status: None,
            receipt: None,
            result_digest: None,
            fence: None,
            node: None,
            actor: None,
        }
    }

    fn new(row: &MessageRow, step: Transition, redactor: &Redactor<'_>) -> Self {
        Self {
            at: step.at.to_string(),
            result_digest: result_digest(&step, redactor),
            kind: step.kind,
            from: Some(step.from.to_string()),
            to: step.to.to_string(),
            idempotency_key: row.key.as_str().to_owned(),
            trace_id: row.trace_id.clone(),
            traceparent: row.trace.clone(),
            attempts: step.attempts,
            effect: step.effect.to_string(),
            error_code: step.code,
            error_text: redacted(step.excerpt, redactor),
            status: step.status,
            receipt: redacted(step.receipt, redactor),
            fence: step.fence,
            node: step.node,
            actor: step.actor,
        }
    }
}

fn redacted(text: Option<String>, redactor: &Redactor<'_>) -> Option<String> {
    text.map(|text| redactor.text(&text).into_owned())
}

fn result_digest(step: &Transition, redactor: &Redactor<'_>) -> Option<String> {
    match step.result_digest {
        Some(digest) => Some(redactor.digest(digest.to_string())),
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

/// A queue in its current state.
///
/// A producer sees only its name and whether it is served and paused, since it holds messages of other identities too.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Queue {
    pub name: String,
    /// Whether this server accepts and delivers its messages.
    pub served_here: bool,
    /// Whether its delivery is paused.
    pub paused: bool,
    /// Who paused it; null for a producer.
    pub paused_by: Option<String>,
    /// Since when it is paused.
    pub paused_at: Option<String>,
    /// How many of its messages each worker runs at the same time; null for a producer.
    pub parallelism: Option<Parallelism>,
    /// Number of messages in each state; null for a producer.
    pub counts: Option<Counts>,
    /// Since when the oldest message that is due waits; null for a producer.
    pub oldest_waiting_at: Option<String>,
    /// Its age; null for a producer.
    pub oldest_waiting_seconds: Option<f64>,
}

impl Queue {
    /// Hides what the caller may not see.
    pub(super) fn redacted_for(self, caller: &ApiCaller) -> Self {
        if caller.require_viewer().is_ok() {
            return self;
        }
        let seen = Self { paused_by: None, parallelism: None, counts: None, ..self };
        Self { oldest_waiting_at: None, oldest_waiting_seconds: None, ..seen }
    }
}

/// Number of messages in each state.
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
    pub(super) fn get_mut(&mut self, stage: StateName) -> &mut i64 {
        match stage {
            StateName::Queued => &mut self.queued,
            StateName::Sending => &mut self.sending,
            StateName::Failed => &mut self.failed,
            StateName::Parked => &mut self.parked,
            StateName::Sent => &mut self.sent,
            StateName::Dead => &mut self.dead,
            StateName::Cancelled => &mut self.cancelled,
        }
    }
}

/// All nodes that were ever seen.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<NodeStatus>,
}

/// A node that works on the same store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub(super) struct NodeStatus {
    pub(super) id: Uuid,
    pub(super) name: String,
    /// Whether its last heartbeat is less than 12 s old; a node that stopped or was declared dead is not alive.
    pub(super) alive: bool,
    pub(super) started_at: String,
    pub(super) seen_at: String,
}

/// Whether the server should get requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// `ready`.
    pub(super) status: &'static str,
    /// The checks; only with `?verbose`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checks: Option<Vec<ReadinessCheck>>,
}

/// One check.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Check)]
pub(super) struct ReadinessCheck {
    pub(super) name: &'static str,
    pub(super) ok: bool,
    pub(super) detail: String,
}

/// An error (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProblemDetails {
    /// The path of a page about the error: `/errors/` and the code.
    #[serde(rename = "type")]
    kind: String,
    title: String,
    status: u16,
    /// What is wrong with this request, and how to fix it.
    detail: String,
    /// A stable code.
    code: String,
}
