//! Dead letters and parked messages, found by their known properties.
//!
//! Guarantee: a listing reads one page of an index and no request; each entry says what would prevent a requeue or a discard.

// Spec: D17, E4.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use std::collections::HashMap;

use axum::response::Response;
use http::StatusCode;
use ichido::dead_letters::{BulkAction, RequeuePolicies};
use ichido::worker::{OutboundKey, limits};
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::dead_letter::{DeadLetterFilter, DeadLetterRow, Disposition};
use ichido_store::facts::PublishedQueue;
use ichido_store::message::{DeadLetterState, QueueName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::api::ApiState;
use super::caller::ApiCaller;
use super::cursor::{self, Cursor};
use super::messages::find_visible;
use super::models::{LastError, href};
use super::problem::Problem;
use super::queues::check_known;
use super::request::{AuthorizedRequest, Segment, Viewer};
use super::response::json;
use super::steps::action_refused;
use super::text;

/// Filters for dead letters.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeadLetterQuery {
    /// `dead` by default.
    state: Option<text::LetterState>,
    /// `open` by default.
    disposition: Option<text::LetterStanding>,
    /// In this queue.
    queue: Option<text::QueueName>,
    /// With this code of the last error.
    code: Option<text::ErrorCode>,
    /// With this known effect.
    effect: Option<text::Effect>,
    /// With this identity.
    identity: Option<text::Identity>,
    /// Dead or parked since this time, inclusive.
    since_from: Option<text::Moment>,
    /// Dead or parked before this time.
    since_before: Option<text::Moment>,
    /// With this text in the last error.
    text: Option<text::ErrorText>,
    /// Of this failure group.
    group: Option<text::GroupId>,
    /// Maximum dead letters on a page; 50 by default.
    limit: Option<text::Limit>,
    /// Cursor of the page: `next` of the previous page.
    #[param(value_type = Option<text::PageCursor>)]
    cursor: Option<Cursor<(Timestamp, Uuid)>>,
}

/// A page of dead letters.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Letters {
    /// Newest first.
    dead_letters: Vec<Letter>,
    /// The `cursor` of the next page; null on the last one.
    next: Option<String>,
}

/// A dead or parked message.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Letter {
    pub id: Uuid,
    /// `dead` or `parked`.
    pub state: String,
    /// `open`, `discarded`, or `replaced` by a new message.
    pub disposition: String,
    pub queue: String,
    pub identity: String,
    pub idempotency_key: String,
    /// What it is about, for people: a title or URL in its request, else its key.
    pub item: String,
    /// The idempotency key that its calls carry; null while no worker has published its queue.
    pub outbound_key: Option<String>,
    /// What is known of its effect: `not_done`, `done` or `unknown`.
    pub effect: String,
    pub last_error: Option<LastError>,
    /// The id of its failure group; null if an earlier release stored it.
    pub failure_group: Option<Uuid>,
    pub attempts: u32,
    pub max_attempts: u32,
    pub created_at: String,
    /// When it died or was parked.
    pub since: String,
    /// Until when its last call may still arrive; null if it cannot. Until then, it cannot be decided as not done.
    pub in_flight_until: Option<String>,
    /// How often workers ask the receiver about its unknown effect, as soon as no call can arrive any more; null if they do not, by this
    /// server's configuration.
    pub asked_every_seconds: Option<u64>,
    /// When a worker last asked, and did not learn it; null if none has.
    pub asked_at: Option<String>,
    pub replacement_of: Option<Uuid>,
    pub request_bytes: u64,
    /// Why it cannot be requeued; null if it can.
    pub requeue_refused: Option<String>,
    /// Why it cannot be discarded; null if it can.
    pub discard_refused: Option<String>,
    /// The `cursor` of a page that begins after it.
    pub cursor: String,
    pub href: String,
}

impl Letter {
    /// Its error was redacted when it was stored; a list reads no requests.
    fn new(api: &ApiState, published: &PublishedQueues, row: &DeadLetterRow, now: Timestamp) -> Self {
        let redactor = api.redaction(row.queue.as_str()).of_stored();
        let is_asked = row.effect == Effect::Unknown
            && row.disposition == Disposition::Open
            && api.destinations.iter().any(|destination| destination.is_asked_about(row.queue.as_str()));
        let asked_every = match row.state {
            DeadLetterState::Parked => limits::ASK_PARKED_EVERY,
            DeadLetterState::Dead => limits::ASK_DEAD_EVERY,
        };
        let traits = row.traits();
        let refused =
            |work: BulkAction| work.judge(&published.policies, &traits, now).err().map(|why| why.to_string());
        let in_flight_until = row.history.doubt.map(|doubt| doubt.in_flight_until);
        let key = published.keys.get(&row.queue);
        let outbound_key =
            key.map(|key| key.key_for(&row.queue, &row.identity, &row.key).as_str().to_owned());
        Self {
            id: row.id,
            state: row.state.to_string(),
            disposition: row.disposition.to_string(),
            queue: row.queue.as_str().to_owned(),
            identity: row.identity.clone(),
            idempotency_key: row.key.as_str().to_owned(),
            item: row.item.clone().unwrap_or_else(|| row.key.as_str().to_owned()),
            outbound_key,
            effect: row.effect.to_string(),
            last_error: row.code.clone().map(|code| LastError::redacted(code, row.error.clone(), &redactor)),
            failure_group: row.group,
            attempts: row.history.attempts,
            max_attempts: row.history.max_attempts.get(),
            created_at: row.created_at.to_string(),
            since: row.since.to_string(),
            in_flight_until: in_flight_until.filter(|until| now < *until).map(|until| until.to_string()),
            asked_every_seconds: is_asked.then_some(asked_every.as_secs()),
            asked_at: row.asked_at.map(|at| at.to_string()),
            replacement_of: row.replacement_of,
            request_bytes: row.request_bytes,
            requeue_refused: refused(BulkAction::Requeue { canary: None }),
            discard_refused: refused(BulkAction::Discard),
            cursor: cursor::encode(&(row.since, row.id)),
            href: href(row.id),
        }
    }
}

/// What workers have published about the queues of dead letters.
struct PublishedQueues {
    policies: RequeuePolicies,
    keys: HashMap<QueueName, OutboundKey>,
}

impl PublishedQueues {
    async fn read(api: &ApiState) -> Result<Self, Problem> {
        let published = api.store.facts().list().await?;
        let policies = published.iter().collect();
        let key = |queue: PublishedQueue| Some((queue.queue, OutboundKey::parse(&queue.key_kind)?));
        Ok(Self { policies, keys: published.into_iter().filter_map(key).collect() })
    }
}

/// Lists dead or parked messages, newest first.
///
/// A message must match all filters.
#[utoipa::path(
    get,
    path = "/v1/dead-letters",
    params(DeadLetterQuery),
    responses(
        (status = 200, description = "A page", body = Letters),
    )
)]
pub(super) async fn list_dead_letters(
    AuthorizedRequest { api, caller, query, .. }: AuthorizedRequest<Viewer, DeadLetterQuery>,
) -> Result<Response, Problem> {
    let limit = query.limit.map_or(text::PAGE_DEFAULT, |limit| limit.0);
    let filter = DeadLetterFilter {
        state: query.state.map(|state| state.0).unwrap_or_default(),
        disposition: query.disposition.map(|disposition| disposition.0).unwrap_or_default(),
        queue: query.queue.map(|queue| queue.0),
        code: query.code.map(|code| code.0),
        effect: query.effect.map(|effect| effect.0),
        identity: query.identity.map(|identity| identity.0),
        since_from: query.since_from.map(|moment| moment.0),
        since_before: query.since_before.map(|moment| moment.0),
        text: query.text.map(|text| text.0),
        group: query.group.map(|group| group.0),
    };
    let now = api.store.now().await?;
    let page = api.store.dead_letters().page(&filter, query.cursor.map(|cursor| cursor.0), limit).await?;
    if page.is_empty() {
        check_known(&api, &caller, filter.queue.as_ref()).await?;
    }
    let published = PublishedQueues::read(&api).await?;
    let letter = |row: &DeadLetterRow| Letter::new(&api, &published, row, now);
    let dead_letters: Vec<Letter> = page.iter().map(letter).collect();
    let next = cursor::next(&page, limit, |last| (last.since, last.id));
    Ok(json(StatusCode::OK, &Letters { dead_letters, next }))
}

/// Returns a dead or parked message, with what prevents a requeue or a discard.
#[utoipa::path(
    get,
    path = "/v1/dead-letters/{id}",
    params(("id" = Uuid, Path, description = "The message's id")),
    responses(
        (status = 200, description = "The dead letter", body = Letter),
        (status = 409, description = "The message is neither dead nor parked"),
    )
)]
pub(super) async fn get_dead_letter(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Viewer>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let (row, now) = find_letter(&api, &caller, &id).await?;
    let published = PublishedQueues::read(&api).await?;
    Ok(json(StatusCode::OK, &Letter::new(&api, &published, &row, now)))
}

/// Returns a dead or parked message that the caller may see.
///
/// Also returns the time at which it was read.
pub(super) async fn find_letter(
    api: &ApiState,
    caller: &ApiCaller,
    id: &str,
) -> Result<(DeadLetterRow, Timestamp), Problem> {
    let message = find_visible(api, caller, id).await?;
    let now = api.store.now().await?;
    match api.store.dead_letters().find(&[message.id]).await?.pop() {
        Some(row) => Ok((row, now)),
        None => Err(action_refused(
            "not_dead",
            format!("only a dead or parked message allows this; this one is {}", message.status.as_str()),
        )),
    }
}
