//! Looking for messages: by what the store can ask for, and by a field of their requests.
//!
//! Guarantee: a listing looks at a bounded number of messages and holds a bounded number of requests at once, however many there are,
//! and shows no byte of them; where it stops before its page is full, it says where to go on. A producer is shown its own alone.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::Stage;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use ichido_store::message::{MessageFilter, MessageRow, QueueName};
use ichido_store::token::Role;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::answer::json;
use super::api::Api;
use super::caller::{Caller, no_queue};
use super::cursor;
use super::field::Field;
use super::problem::{Code, Problem};
use super::request::parameters;
use super::show::{LastError, effect, href};
use crate::accept;
use crate::limits::{LIST_LOOKED_MAX, LIST_MAX, LIST_PART};

/// How many messages a page has where nobody says.
const LIST_DEFAULT: u32 = 50;
const KNOWN: [&str; 11] = [
    "queue",
    "state",
    "key",
    "identity",
    "code",
    "created_from",
    "created_before",
    "field",
    "value",
    "limit",
    "cursor",
];

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessagePage {
    /// The newest first.
    messages: Vec<Listed>,
    /// The `cursor` of the next page; none when there is nothing more. It is there as well when a page is short because as many
    /// messages were looked at as one request may look at.
    next: Option<String>,
    /// How many messages were looked at for this page.
    looked_at: u32,
}

/// A message in a list.
#[derive(Debug, Serialize, ToSchema)]
struct Listed {
    id: Uuid,
    queue: String,
    identity: String,
    idempotency_key: String,
    content_type: String,
    request_bytes: usize,
    request_digest: String,
    status: &'static str,
    effect: &'static str,
    tries: u32,
    tries_allowed: u32,
    next_attempt_at: Option<String>,
    last_error: Option<LastError>,
    priority: u8,
    trace: Option<String>,
    made_from: Option<Uuid>,
    created_at: String,
    updated_at: String,
    /// Where all of it is shown.
    href: String,
}

impl Listed {
    fn new(row: MessageRow) -> Self {
        Self {
            id: row.id,
            queue: row.queue,
            identity: row.identity,
            idempotency_key: row.key.as_str().to_owned(),
            content_type: row.content_type,
            request_bytes: row.request.len(),
            request_digest: row.request_digest.to_string(),
            status: row.status.as_str(),
            effect: effect(row.effect),
            tries: row.tries,
            tries_allowed: row.tries_allowed,
            next_attempt_at: row.next_attempt.map(|at| at.to_string()),
            last_error: row.last_error.map(|code| LastError::new(code, row.last_error_text)),
            priority: row.priority,
            trace: row.trace,
            made_from: row.made_from,
            created_at: row.created_at.to_string(),
            updated_at: row.updated_at.to_string(),
            href: href(row.id),
        }
    }
}

/// Lists messages, the newest first.
///
/// All filters together must fit. `field` and `value` look into requests that are clear JSON, whatever their content type: the value at
/// the pointer is the same JSON value, or a string of this text. That is looked for message by message, so that a page may be short and
/// still have a `next`.
#[utoipa::path(
    get,
    path = "/v1/messages",
    operation_id = "listMessages",
    tag = "messages",
    params(
        ("queue" = Option<String>, Query, description = "Of this queue"),
        ("state" = Option<String>, Query, description = "`queued`, `sending`, `failed`, `parked`, `sent`, `dead` or `cancelled`"),
        ("key" = Option<String>, Query, description = "With this idempotency key"),
        ("identity" = Option<String>, Query, description = "Of this identity"),
        ("code" = Option<String>, Query, description = "With this code as the last error, such as `BROKER_5XX`"),
        ("created_from" = Option<String>, Query, description = "Put in from this moment on: RFC 3339 in UTC, such as `2026-11-15T03:00:00Z`"),
        ("created_before" = Option<String>, Query, description = "Put in before this moment"),
        ("field" = Option<String>, Query, description = "A JSON pointer into the request, such as `/symbol`; with `value`"),
        ("value" = Option<String>, Query, description = "What stands there: a JSON value, or the bare text of a string"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "At most so many; 50 if left out"),
        ("cursor" = Option<String>, Query, description = "Where to go on: `next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page of the messages that you may see", body = MessagePage),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Problem> {
    let asked = Asked::read(&uri, &caller)?;
    // Requests may be large, and a listing holds some of them: only a few listings at a time.
    let _turn = api.listings.turn(&caller).await;
    let page = asked.look(&api, &caller).await?;
    Ok(json(StatusCode::OK, &page))
}

/// What is asked for.
struct Asked {
    filter: MessageFilter,
    field: Option<Arc<Field>>,
    limit: u32,
}

impl Asked {
    fn read(uri: &Uri, caller: &Caller) -> Result<Self, Problem> {
        let mut filter = MessageFilter::default();
        let (mut pointer, mut value, mut limit) = (None, None, LIST_DEFAULT);
        for (name, text) in parameters(uri, &KNOWN)? {
            match name.as_str() {
                "queue" => filter.queue = Some(queue(&text, caller)?),
                "state" => filter.status = Some(state(&text)?),
                "key" => filter.key = Some(IdempotencyKey::parse(&text).map_err(Problem::of_key)?),
                "identity" => filter.identity = Some(text),
                "code" => filter.code = Some(code(&text)?),
                "created_from" => filter.created_from = Some(moment(&name, &text)?),
                "created_before" => filter.created_before = Some(moment(&name, &text)?),
                "field" => pointer = Some(text),
                "value" => value = Some(text),
                "limit" => limit = count(&text, LIST_MAX)?,
                _ => filter.after = Some(Uuid::from_bytes(cursor::read(&text)?)),
            }
        }
        if let Role::Producer { identity, .. } = &caller.role {
            let own = filter.identity.get_or_insert_with(|| identity.clone());
            if own != identity {
                let detail = "the token looks at the messages of its own identity alone; leave identity out";
                return Err(Problem::new(Code::RoleInsufficient, detail));
            }
        }
        let field = match (pointer, value) {
            (None, None) => None,
            (Some(pointer), Some(value)) => Some(Arc::new(Field::read(&pointer, value)?)),
            _ => return Err(wrong("field and value go together; give both, or neither")),
        };
        Ok(Self { filter, field, limit })
    }

    async fn look(mut self, api: &Api, caller: &Caller) -> Result<MessagePage, Problem> {
        let mut page = MessagePage { messages: Vec::new(), next: None, looked_at: 0 };
        loop {
            let room = self.limit - u32::try_from(page.messages.len()).unwrap_or(self.limit);
            // Where each one fits, no more are read than are wanted.
            let part = if self.field.is_some() { LIST_PART } else { LIST_PART.min(room) };
            let rows = api.store.messages().list(&self.filter, part).await;
            let rows = rows.map_err(|error| Problem::of_store(&error))?;
            let is_last = rows.len() < part as usize;
            let judged = self.judged(rows).await?;
            let mut left = judged.len();
            for (row, fits) in judged {
                left -= 1;
                page.looked_at += 1;
                self.filter.after = Some(row.id);
                if fits && caller.sees(&row.queue, &row.identity) {
                    page.messages.push(Listed::new(row));
                }
                if page.messages.len() == self.limit as usize {
                    break;
                }
            }
            if is_last && left == 0 {
                return Ok(page);
            }
            if page.messages.len() == self.limit as usize || LIST_LOOKED_MAX <= page.looked_at {
                page.next = self.filter.after.map(|id| cursor::write(id.as_bytes()));
                return Ok(page);
            }
        }
    }

    /// Which of them have the field; looked at aside, because understanding large requests takes its time.
    async fn judged(&self, rows: Vec<MessageRow>) -> Result<Vec<(MessageRow, bool)>, Problem> {
        let Some(field) = self.field.clone() else {
            return Ok(rows.into_iter().map(|row| (row, true)).collect());
        };
        let judge = move || {
            let judged = rows.into_iter().map(|row| {
                let fits = field.is_in(&row.request);
                (row, fits)
            });
            judged.collect()
        };
        tokio::task::spawn_blocking(judge).await.map_err(|error| {
            tracing::error!(%error, "requests could not be looked at");
            Problem::new(Code::StoreRefused, "the requests could not be looked at")
        })
    }
}

fn wrong(detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(Code::ParameterInvalid, detail)
}

fn queue(text: &str, caller: &Caller) -> Result<QueueName, Problem> {
    let name = queue_name("queue", text)?;
    if caller.sees_queue(text) { Ok(name) } else { Err(no_queue()) }
}

pub(super) fn queue_name(name: &str, text: &str) -> Result<QueueName, Problem> {
    accept::queue_name(text).map_err(|what| wrong(format!("{name} {what}")))
}

fn state(text: &str) -> Result<Stage, Problem> {
    Stage::parse(text).ok_or_else(|| {
        let all: Vec<&str> = Stage::ALL.into_iter().map(Stage::as_str).collect();
        wrong(format!("state is none; there are {}", all.join(", ")))
    })
}

pub(super) fn code(text: &str) -> Result<ErrorCode, Problem> {
    ErrorCode::parse(text).ok_or_else(|| {
        let all: Vec<&str> = ErrorCode::ALL.into_iter().map(ErrorCode::as_str).collect();
        wrong(format!("code is no error's code; there are {}", all.join(", ")))
    })
}

pub(super) fn moment(name: &str, text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).ok_or_else(|| {
        wrong(format!("{name} is no moment; write it in UTC, as 2026-11-15T03:00:00Z, a fraction of 1 to 6 digits if any"))
    })
}

/// A whole number from 1 to so many.
pub(super) fn count(text: &str, most: u32) -> Result<u32, Problem> {
    let count = text.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| wrong(format!("limit is a whole number from 1 to {most}")))
}
