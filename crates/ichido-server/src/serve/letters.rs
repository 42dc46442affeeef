//! Dead and parked messages as letters that wait for a person: found by what is known of them (SPEC D17, E4).
//!
//! Guarantee: a listing reads one page of an index, and no request; what would stand in the way of each is said beside it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use ichido::letters::Work;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::letter::{LetterFilter, LetterRow, Standing};
use ichido_store::message::LetterState;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::answer::json;
use super::api::Api;
use super::caller::Caller;
use super::cursor;
use super::messages::{no_message, seen};
use super::problem::{Code, Problem};
use super::request::{Segment, parameters};
use super::search::{code, count, moment, queue_name};
use super::show::{LastError, ProblemDetails, effect, href};
use super::steps::refused;
use crate::limits::LIST_MAX;

/// How many letters a page has where nobody says.
const LIST_DEFAULT: u32 = 50;
const KNOWN: [&str; 11] = [
    "state",
    "standing",
    "queue",
    "code",
    "effect",
    "identity",
    "since_from",
    "since_before",
    "text",
    "limit",
    "cursor",
];

/// A page of letters.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Letters {
    /// The last to become one first.
    letters: Vec<Letter>,
    /// The `cursor` of the next page; none when there is nothing more.
    next: Option<String>,
}

/// A dead or parked message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Letter {
    id: Uuid,
    /// `dead` or `parked`.
    state: &'static str,
    /// `open`, `discarded`, or `replaced` by a message that was made from it.
    standing: &'static str,
    queue: String,
    identity: String,
    idempotency_key: String,
    /// The key that its calls carry; none where this server does not serve its queue.
    sent_as: Option<String>,
    /// What is known of its effect: `not_done`, `done` or `unknown`.
    effect: &'static str,
    last_error: Option<LastError>,
    tries: u32,
    tries_allowed: u32,
    created_at: String,
    /// When it died or was parked.
    since: String,
    /// Until when its last call may still be travelling: that it was not done counts only after it.
    travels_until: Option<String>,
    made_from: Option<Uuid>,
    request_bytes: u64,
    /// Why it would not be sent again; none where it would.
    requeue_refused: Option<String>,
    /// Why it would not be discarded; none where it would.
    discard_refused: Option<String>,
    /// Where a list goes on after it.
    cursor: String,
    href: String,
}

impl Letter {
    fn new(api: &Api, row: &LetterRow, now: Timestamp) -> Self {
        let refused = |work: Work| work.judge(&api.policies, row, now).err().map(|why| why.to_string());
        let known = api.queues.get(row.queue.as_str());
        let sent_as =
            known.map(|known| known.key.of(&row.queue, &row.identity, &row.key).as_str().to_owned());
        Self {
            id: row.id,
            state: row.state.as_str(),
            standing: row.standing.as_str(),
            queue: row.queue.as_str().to_owned(),
            identity: row.identity.clone(),
            idempotency_key: row.key.as_str().to_owned(),
            sent_as,
            effect: effect(row.effect),
            last_error: row.code.clone().map(|code| LastError::new(code, row.error.clone())),
            tries: row.history.tries,
            tries_allowed: row.history.tries_allowed.get(),
            created_at: row.created_at.to_string(),
            since: row.since.to_string(),
            travels_until: row.history.doubt.map(|doubt| doubt.travels_until.to_string()),
            made_from: row.made_from,
            request_bytes: row.request_bytes,
            requeue_refused: refused(Work::Requeue { canary: None }),
            discard_refused: refused(Work::Discard),
            cursor: written(row.since, row.id),
            href: href(row.id),
        }
    }
}

/// Lists dead or parked messages, the last to become one first.
///
/// All filters together must fit.
#[utoipa::path(
    get,
    path = "/v1/letters",
    operation_id = "listDeadLetters",
    tag = "letters",
    params(
        ("state" = Option<String>, Query, description = "`dead` or `parked`; `dead` if left out"),
        ("standing" = Option<String>, Query, description = "`open`, `discarded` or `replaced`; `open` if left out"),
        ("queue" = Option<String>, Query, description = "Of this queue"),
        ("code" = Option<String>, Query, description = "With this code as the last error, such as `BROKER_5XX`"),
        ("effect" = Option<String>, Query, description = "Of which this is known: `not_done`, `done` or `unknown`"),
        ("identity" = Option<String>, Query, description = "Of this identity"),
        ("since_from" = Option<String>, Query, description = "Dead or parked from this moment on: RFC 3339 in UTC, such as `2026-11-15T03:00:00Z`"),
        ("since_before" = Option<String>, Query, description = "Dead or parked before this moment"),
        ("text" = Option<String>, Query, description = "With this text in what the last error said"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "At most so many; 50 if left out"),
        ("cursor" = Option<String>, Query, description = "Where to go on: `next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page", body = Letters),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.views()?;
    let (filter, after, limit) = asked(&uri)?;
    let now = api.store.now().await.map_err(|error| Problem::of_store(&error))?;
    let page = api.store.dead_letters().page(&filter, after, limit).await;
    let page = page.map_err(|error| Problem::of_store(&error))?;
    let letters: Vec<Letter> = page.iter().map(|row| Letter::new(&api, row, now)).collect();
    let next = letters.last().filter(|_| letters.len() == limit as usize).map(|last| last.cursor.clone());
    Ok(json(StatusCode::OK, &Letters { letters, next }))
}

/// A dead or parked message, with what would stand in the way of a requeue or a discard.
#[utoipa::path(
    get,
    path = "/v1/letters/{id}",
    operation_id = "getDeadLetter",
    tag = "letters",
    params(("id" = Uuid, Path, description = "The message's id")),
    responses(
        (status = 200, description = "The letter", body = Letter),
        (status = 409, description = "The message is neither dead nor parked", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Segment(id): Segment,
    uri: Uri,
) -> Result<Response, Problem> {
    parameters(&uri, &[])?;
    caller.views()?;
    Uuid::try_parse(&id).map_err(|_| no_message())?;
    let message = seen(&api, &caller, &id).await?;
    let now = api.store.now().await.map_err(|error| Problem::of_store(&error))?;
    let found =
        api.store.dead_letters().find(&[message.id]).await.map_err(|error| Problem::of_store(&error))?;
    let Some(row) = found.first() else {
        let is = message.status.as_str();
        return Err(refused(
            "no_letter",
            format!("only dead and parked messages are letters, and this one is {is}"),
        ));
    };
    Ok(json(StatusCode::OK, &Letter::new(&api, row, now)))
}

type Asked = (LetterFilter, Option<(Timestamp, Uuid)>, u32);

fn asked(uri: &Uri) -> Result<Asked, Problem> {
    let wrong = |detail: &'static str| Problem::new(Code::ParameterInvalid, detail);
    let mut filter = LetterFilter::default();
    let (mut after, mut limit) = (None, LIST_DEFAULT);
    for (name, text) in parameters(uri, &KNOWN)? {
        match name.as_str() {
            "state" => {
                filter.state = match text.as_str() {
                    "dead" => LetterState::Dead,
                    "parked" => LetterState::Parked,
                    _ => return Err(wrong("state is dead or parked")),
                }
            }
            "standing" => {
                let standing = Standing::parse(&text);
                filter.standing = standing.ok_or_else(|| wrong("standing is open, discarded or replaced"))?;
            }
            "queue" => filter.queue = Some(queue_name(&name, &text)?),
            "code" => filter.code = Some(code(&text)?),
            "effect" => {
                filter.effect = Some(match text.as_str() {
                    "not_done" => Effect::NotDone,
                    "done" => Effect::Done,
                    "unknown" => Effect::Unknown,
                    _ => return Err(wrong("effect is not_done, done or unknown")),
                });
            }
            "identity" => filter.identity = Some(text),
            "since_from" => filter.since_from = Some(moment(&name, &text)?),
            "since_before" => filter.since_before = Some(moment(&name, &text)?),
            "text" => filter.text = Some(text),
            "limit" => limit = count(&text, LIST_MAX)?,
            _ => after = Some(read(&text)?),
        }
    }
    Ok((filter, after, limit))
}

/// Where a list goes on: the moment, and the id.
fn written(since: Timestamp, id: Uuid) -> String {
    cursor::write(&[since.as_micros().to_be_bytes().as_slice(), id.as_bytes()].concat())
}

fn read(text: &str) -> Result<(Timestamp, Uuid), Problem> {
    let place: [u8; 24] = cursor::read(text)?;
    let (since, id) = place.split_at(8);
    let micros = i64::from_be_bytes(since.try_into().unwrap_or_default());
    Ok((Timestamp::from_micros(micros), Uuid::from_slice(id).unwrap_or_default()))
}
