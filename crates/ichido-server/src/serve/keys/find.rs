//! Looks up a key, or a hash from a log: one answer for requests and messages.
//!
//! Guarantee: a look-up reads a bounded number of rows, and says if there may be more than it found.
// Spec: A6, C5, D10.

use axum::response::Response;
use http::StatusCode;
use ichido_core::key::{IdempotencyKey, KeyHash, KeySyntax};
use ichido_core::ledger::RecordName;
use ichido_store::Replayed;
use ichido_store::message::{MessageMatches, MessageRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::api::ApiState;
use super::super::messages::find_message;
use super::super::models::ReplayCount;
use super::super::problem::{Code, Problem};
use super::super::request::{AuthorizedRequest, Viewer};
use super::super::response::json;
use super::super::text;
use super::KeyRecord;
use crate::limits::{MAX_KEYS_FOUND, MAX_NEWEST_EVENTS};

/// The key to look up.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in super::super) struct KeyQuery {
    /// The idempotency key; or `hash`, or `message`.
    #[param(value_type = Option<text::LedgerKey>)]
    key: Option<String>,
    /// The hash of a key, as in logs.
    hash: Option<text::KeyHash>,
    /// The id of a message: only the requests with its key that enqueued it.
    message: Option<text::MessageId>,
    /// Only requests of this operation.
    operation: Option<text::OperationName>,
    /// Only messages in this queue.
    queue: Option<text::QueueName>,
    /// Only of this identity.
    identity: Option<text::Identity>,
}

/// Everything that was done under a key.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct KeysFound {
    /// Requests first, then messages; at most 100.
    pub keys: Vec<KeyRecord>,
    /// Whether these are all. If not, name the operation or the queue, and the identity.
    pub is_complete: bool,
    /// How far messages were searched for a hash. Their keys are compared one by one, newest first, and at most 100,000.
    pub searched: Option<SearchedMessages>,
}

/// The messages whose keys were compared with a hash.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct SearchedMessages {
    pub messages: u32,
    /// When the oldest of them was enqueued.
    pub since: Option<String>,
}

/// Finds everything that was done under a key, or under the hash of one.
///
/// Name one of `key`, `hash` and `message`. Requests are found by the primary key of the ledger, and messages of a key by their unique index, up to 10,000 pairs of queue and
/// identity. Messages of a hash are compared one by one.
#[utoipa::path(
    get,
    path = "/v1/keys",
    params(KeyQuery),
    responses(
        (status = 200, description = "What was found; nothing is an empty list", body = KeysFound),
    )
)]
pub(in super::super) async fn find_keys(
    AuthorizedRequest { api, caller, query, .. }: AuthorizedRequest<Viewer, KeyQuery>,
) -> Result<Response, Problem> {
    let lookup = match query.message {
        Some(text::MessageId(id)) => Lookup::of_message(&find_message(&api, id).await?, &query)?,
        None => Lookup::new(query)?,
    };
    // A look-up may read many messages, so only a few run at once.
    let _permit = api.listings.acquire(&caller).await;
    let mut found = KeysFound { keys: Vec::new(), is_complete: true, searched: None };
    let mut replayed = lookup.add_requests(&api, caller.require_operator().is_ok(), &mut found).await?;
    replayed.extend(lookup.add_messages(&api, &mut found).await?);
    let replays = api.store.series().replays(&replayed).await?;
    for (key, replays) in found.keys.iter_mut().zip(replays) {
        key.replays = replays.map(ReplayCount::from);
    }
    Ok(json(StatusCode::OK, &found))
}

struct Lookup {
    /// Only requests that enqueued it.
    message: Option<Uuid>,
    key: Option<IdempotencyKey>,
    hash: KeyHash,
    operation: Option<text::OperationName>,
    queue: Option<text::QueueName>,
    identity: Option<String>,
}

impl Lookup {
    /// Looks up the key of a message. A request that enqueued it under another key is not found.
    fn of_message(message: &MessageRow, query: &KeyQuery) -> Result<Self, Problem> {
        let KeyQuery { key: None, hash: None, operation: None, queue: None, identity: None, .. } = query
        else {
            let detail = "message goes with no other filter";
            return Err(Problem::new(Code::ParameterInvalid, detail));
        };
        let (hash, key) = (message.key.hash(), Some(message.key.clone()));
        Ok(Self { message: Some(message.id), key, hash, operation: None, queue: None, identity: None })
    }

    fn new(KeyQuery { key, hash, operation, queue, identity, .. }: KeyQuery) -> Result<Self, Problem> {
        let parse = |key: &str| IdempotencyKey::parse_as(key, KeySyntax::AnyString);
        let key = key.as_deref().map(parse).transpose().map_err(Problem::from_key)?;
        let hash = match (&key, hash) {
            (Some(key), None) => key.hash(),
            (None, Some(hash)) => hash.0,
            _ => {
                let detail = "name one of key, hash and message";
                return Err(Problem::new(Code::ParameterInvalid, detail));
            }
        };
        let identity = identity.map(|identity| identity.0);
        Ok(Self { message: None, key, hash, operation, queue, identity })
    }

    fn is_of_identity(&self, identity: &str) -> bool {
        self.identity.as_deref().is_none_or(|own| own == identity)
    }

    /// Adds the records of the ledger, unless a queue is named. Returns their names.
    async fn add_requests(
        &self,
        api: &ApiState,
        is_operator: bool,
        found: &mut KeysFound,
    ) -> Result<Vec<Replayed>, Problem> {
        let mut added = Vec::new();
        if self.queue.is_some() {
            return Ok(added);
        }
        let exact = match (&self.key, &self.operation, &self.identity) {
            (Some(key), Some(operation), Some(identity)) => Some(RecordName {
                operation: operation.0.clone(),
                identity: identity.clone(),
                key: key.clone(),
            }),
            _ => None,
        };
        // The bytes of many responses would be too many.
        let shows_bytes = is_operator && exact.is_some();
        let names = match exact {
            Some(name) => vec![name],
            None => api.store.keys().list_of_hash(self.hash, MAX_KEYS_FOUND + 1).await?,
        };
        found.is_complete = names.len() <= MAX_KEYS_FOUND as usize;
        for name in names.iter().take(MAX_KEYS_FOUND as usize).filter(|name| self.selects(name)) {
            // It may be deleted meanwhile.
            let Some(record) = api.store.keys().get(name).await? else { continue };
            if self.message.is_some() && record.message_id != self.message {
                continue;
            }
            let history = api.store.keys().history(&record).await?;
            added.push(Replayed::Key(name.clone()));
            found.keys.push(KeyRecord::of_request(record, shows_bytes, history));
        }
        Ok(added)
    }

    fn selects(&self, name: &RecordName) -> bool {
        self.key.as_ref().is_none_or(|key| *key == name.key)
            && self.operation.as_ref().is_none_or(|operation| operation.0 == name.operation)
            && self.is_of_identity(&name.identity)
    }

    /// Adds the messages, unless an operation or a message is named. Returns their ids.
    async fn add_messages(&self, api: &ApiState, found: &mut KeysFound) -> Result<Vec<Replayed>, Problem> {
        let mut added = Vec::new();
        if self.operation.is_some() || self.message.is_some() {
            return Ok(added);
        }
        let matches = self.messages(api).await?;
        if self.key.is_none() {
            let since = matches.since.map(|at| at.to_string());
            found.searched = Some(SearchedMessages { messages: matches.scanned, since });
        }
        found.is_complete &= matches.is_complete;
        for id in matches.ids {
            if found.keys.len() == MAX_KEYS_FOUND as usize {
                found.is_complete = false;
                break;
            }
            let Some(row) = api.store.messages().get(id).await? else { continue };
            let is_in_queue = self.queue.as_ref().is_none_or(|queue| queue.0.as_str() == row.queue);
            if is_in_queue && self.is_of_identity(&row.identity) {
                let newest = api.store.messages().transition_page(id, None, MAX_NEWEST_EVENTS).await?;
                let (steps, redaction) = (newest.transitions, api.redaction(&row.queue));
                added.push(Replayed::Message(id));
                found.keys.push(KeyRecord::of_message(row, steps, api.keep_finished, redaction));
            }
        }
        Ok(added)
    }

    async fn messages(&self, api: &ApiState) -> Result<MessageMatches, Problem> {
        let messages = api.store.messages();
        Ok(match (&self.key, &self.queue, &self.identity) {
            (Some(key), Some(queue), Some(identity)) => {
                let ids = messages.find(&queue.0, identity, key).await?.into_iter().collect();
                MessageMatches { ids, is_complete: true, ..MessageMatches::default() }
            }
            (Some(key), ..) => messages.find_by_key(key).await?,
            (None, ..) => messages.find_by_hash(self.hash).await?,
        })
    }
}
