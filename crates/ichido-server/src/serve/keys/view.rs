//! How the API shows a key: of a request, or of a message.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ichido_core::fence::Fence;
use ichido_core::json::Redaction;
use ichido_core::ledger::limits::SETTLE_GRACE_DEFAULT;
use ichido_core::ledger::{self, Expiry, KeyEntry, RecordPhase};
use ichido_core::lifecycle::StateName;
use ichido_store::ledger::{KeyRecord as StoredRecord, StoredResponse};
use ichido_store::message::{MessageRow, Transition};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::models::{Message, ReplayCount, href};
use crate::limits::MAX_RECORD_BODY_BYTES;
use crate::redacted;

/// What was done under a key, by a request or by a message.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct KeyRecord {
    /// `request` (a record of the ledger) or `message`.
    pub kind: String,
    /// The operation of a request.
    pub operation: Option<String>,
    /// The queue of a message.
    pub queue: Option<String>,
    pub identity: String,
    pub idempotency_key: String,
    /// The hash of the key, as in logs.
    pub key_hash: String,
    /// Of a request `claimed` (in flight), `unknown` (its outcome is unknown), `applied` or `refused`; of a message its status.
    pub state: String,
    pub request_digest: String,
    pub result_digest: Option<String>,
    /// When the request was first claimed, or the message enqueued.
    pub created_at: String,
    /// When the outcome was stored; null before.
    pub completed_at: Option<String>,
    /// When the record can be deleted; null while it is in use.
    pub expires_at: Option<String>,
    /// When a request was last claimed.
    pub claimed_at: Option<String>,
    /// When the lease of a request expires, unless it is renewed.
    pub lease_until: Option<String>,
    /// From when on `not_done` can be decided with the default `settle_grace`; null unless its outcome is unknown.
    pub not_done_from: Option<String>,
    /// The path of the message, or of the one that the request enqueued.
    pub message: Option<String>,
    pub hops: Option<String>,
    pub trace: Option<String>,
    /// The response that replays of the request get.
    pub response: Option<ResponseView>,
    /// How often the stored response was sent again, or the message enqueued again; null if it was not. Only in a look-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replays: Option<ReplayCount>,
    /// What happened, oldest first; only in a look-up. Of a message with a long history, the end of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<KeyEvent>,
}

/// A step in the history of a key.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct KeyEvent {
    pub at: String,
    /// Of a request `claimed`, `taken_over`, `unknown`, `settled`, `reconciled` or `decided`; of a message the kind of its event.
    pub kind: String,
    pub from: String,
    pub to: String,
    /// The fence of its claim.
    pub fence: Option<u64>,
    /// The person who acted.
    pub actor: Option<String>,
}

/// A stored response.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct ResponseView {
    pub status: u16,
    /// Null if the body was not stored.
    pub body_bytes: Option<usize>,
    /// In base64; only for operators who name one request, and only up to 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// The header fields that a replay sends, in order; only for operators who name one request. Fields of one connection or one caller,
    /// such as `set-cookie`, are not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<HeaderView>>,
}

/// A stored header field.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = StoredHeader)]
pub struct HeaderView {
    pub name: String,
    /// `[redacted]` if the name says that it is a secret, as in `x-api-key`. A replay sends it.
    pub value: String,
}

impl KeyRecord {
    pub(super) fn of_request(found: StoredRecord, shows_bytes: bool, history: Vec<KeyEntry>) -> Self {
        let (state, lease_until, expires_at) = match found.record.phase {
            RecordPhase::Claimed { lease_until } => ("claimed", Some(lease_until), None),
            RecordPhase::Unknown => ("unknown", None, None),
            RecordPhase::Settled { outcome, expiry, .. } => {
                let at = match expiry {
                    Expiry::At(at) => Some(at),
                    Expiry::HeldByMessage => None,
                };
                (outcome.as_str(), None, at)
            }
        };
        let is_unknown = found.record.phase == RecordPhase::Unknown;
        let not_done_from = is_unknown.then(|| ledger::not_done_from(&found.record, SETTLE_GRACE_DEFAULT));
        Self {
            kind: "request".to_owned(),
            key_hash: found.name.key.log_hash(),
            operation: Some(found.name.operation),
            queue: None,
            identity: found.name.identity,
            idempotency_key: found.name.key.as_str().to_owned(),
            state: state.to_owned(),
            request_digest: found.request_digest.to_string(),
            result_digest: found.result_digest.map(|digest| digest.to_string()),
            created_at: found.record.first_claimed_at.to_string(),
            completed_at: found.completed_at.map(|at| at.to_string()),
            expires_at: expires_at.map(|at| at.to_string()),
            claimed_at: Some(found.record.claimed_at.to_string()),
            lease_until: lease_until.map(|at| at.to_string()),
            not_done_from: not_done_from.map(|at| at.to_string()),
            message: found.message_id.map(href),
            hops: found.hops,
            trace: found.trace,
            response: found.response.map(|response| ResponseView::new(&response, shows_bytes)),
            replays: None,
            history: history.into_iter().map(KeyEvent::of_request).collect(),
        }
    }

    /// `keep_finished` is how long a finished message is kept.
    pub(super) fn of_message(
        row: MessageRow,
        steps: Vec<Transition>,
        keep_finished: Duration,
        redaction: &Redaction,
    ) -> Self {
        let (id, key_hash) = (row.id, row.key.log_hash());
        let is_finished = matches!(row.status, StateName::Sent | StateName::Cancelled);
        let completed_at = Some(row.updated_at).filter(|_| is_finished);
        let Message { facts, result, hops, .. } = Message::new(row, &steps, None, None, None, redaction);
        Self {
            kind: "message".to_owned(),
            operation: None,
            queue: Some(facts.queue),
            identity: facts.identity,
            idempotency_key: facts.idempotency_key,
            key_hash,
            state: facts.status,
            request_digest: facts.request_digest,
            result_digest: result.and_then(|result| result.result_digest),
            created_at: facts.created_at,
            completed_at: completed_at.map(|at| at.to_string()),
            expires_at: completed_at.map(|at| at.plus(keep_finished).to_string()),
            claimed_at: None,
            lease_until: None,
            not_done_from: None,
            message: Some(href(id)),
            hops,
            trace: facts.trace,
            response: None,
            replays: None,
            history: steps.into_iter().map(KeyEvent::of_message).collect(),
        }
    }
}

impl KeyEvent {
    fn of_request(entry: KeyEntry) -> Self {
        let KeyEntry { at, kind, from, to, fence, actor } = entry;
        Self { at: at.to_string(), kind, from, to, fence: fence.map(Fence::get), actor }
    }

    fn of_message(step: Transition) -> Self {
        let (from, to) = (step.from.to_string(), step.to.to_string());
        Self { at: step.at.to_string(), kind: step.kind, from, to, fence: step.fence, actor: step.actor }
    }
}

impl ResponseView {
    fn new(response: &StoredResponse, shows_bytes: bool) -> Self {
        let body = response.body.as_ref();
        let shown = body.filter(|body| shows_bytes && body.len() <= MAX_RECORD_BODY_BYTES);
        Self {
            status: response.status,
            body_bytes: body.map(Vec::len),
            body_base64: shown.map(|body| STANDARD.encode(body)),
            headers: shows_bytes.then(|| response.headers.iter().map(HeaderView::new).collect()),
        }
    }
}

impl HeaderView {
    fn new((name, value): &(String, Vec<u8>)) -> Self {
        Self { value: redacted::header(name, &String::from_utf8_lossy(value)).to_owned(), name: name.clone() }
    }
}
