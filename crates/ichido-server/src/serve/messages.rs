//! Messages over HTTP: enqueue and read.
//!
//! Guarantee: a 201 follows the commit. The message itself records the request: it is unique by queue, identity and key for as
//! long as it is kept, so the same request again gets the same response, byte for byte, and enqueues nothing.

// Spec: D1, D3.

use axum::extract::Request;
use axum::response::Response;
use http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER,
};
use http::{HeaderValue, StatusCode};
use ichido_core::audit::entry::EntryId;
use ichido_core::digest::{MEDIA_TYPE_DEFAULT, media_type};
use ichido_core::key::{self, IdempotencyKey, KeyError};
use ichido_core::ledger::Profile;
use ichido_core::lifecycle::StateName;
use ichido_http::clock;
use ichido_http::server::body::BodyError;
use ichido_store::Replayed;
use ichido_store::error::StoreError;
use ichido_store::message::limits::MAX_TRACE_BYTES;
use ichido_store::message::{Enqueued, MessageRow, NewMessage, TransitionPage};
use ichido_store::node::MessageHolder;
use serde::Deserialize;
use uuid::Uuid;

use super::api::ApiState;
use super::arrivals;
use super::caller::ApiCaller;
use super::cursor::Cursor;
use super::hops;
use super::models::{Accepted, Events, Message, href};
use super::problem::{Code, Problem};
use super::request::{Anyone, AuthorizedRequest, Segment, read_body, reject_encoded};
use super::response::{PermittedBody, json};
use super::text;
use crate::accept::{ParsedSubmission, Submission, SubmissionError, find_existing};
use crate::limits::MAX_NEWEST_EVENTS;
use crate::schedule::Schedule;
use crate::traces::{self, Accepting};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const STATUS: HeaderName = HeaderName::from_static("idempotency-status");
/// Why the response does not wait for the message to end.
const WAIT: HeaderName = HeaderName::from_static("ichido-wait");
/// When to ask again for a message that has not ended.
const ASK_AGAIN_AFTER: HeaderValue = HeaderValue::from_static("1");

/// How long the response waits for the message's outcome, and when the message is first sent.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EnqueueQuery {
    /// How long to wait for the outcome, such as `5s`; at most 30s.
    wait: Option<text::Wait>,
    /// Which messages of the queue are sent first: 0 is first, 255 last; 2 by default.
    priority: Option<text::Priority>,
    /// How long to wait before the first attempt, such as `30s`; at most 366d. Not with `run_at`.
    delay: Option<text::Delay>,
    /// When to make the first attempt, by the store's clock; at most 366 days ahead. A time that has passed means now.
    run_at: Option<text::Moment>,
}

impl EnqueueQuery {
    fn schedule(&self) -> Result<Schedule, Problem> {
        let priority = self.priority.as_ref().map(|priority| priority.0);
        let delay = self.delay.as_ref().map(|delay| delay.0);
        let run_at = self.run_at.as_ref().map(|run_at| run_at.0);
        Schedule::new(priority, delay, run_at, clock::now())
            .map_err(|error| Problem::new(Code::ParameterInvalid, error.to_string()))
    }
}

/// Enqueues a message.
///
/// The same key with the same request gets the same response, with the header `Idempotency-Replayed: true`. JSON requests are compared by
/// meaning, others by their bytes. With `wait`, the server responds when the message is finished or parked, or after that time: 200 with the
/// message, or 202 with `Idempotency-Status: processing`, after which the same request can be sent again. `Ichido-Wait` then says why:
/// `not_in_time`; `too_many_waiters`: too many requests were waiting, so this one did not wait; or `server_stops`.
///
/// `priority`, `delay` and `run_at` are not part of the request that is compared: the first request with a key decides, and a repetition
/// does not change the schedule. A response to a request with one of them shows the `priority` and `run_at` that apply.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/messages",
    tag = "messages",
    params(
        ("queue" = text::QueueName, Path, description = "The queue", example = "demo"),
        ("Idempotency-Key" = text::IdempotencyKeyField, Header, description = "Idempotency key of the action: 1 to 255 visible ASCII characters", example = "order-1"),
        ("Ichido-Identity" = Option<text::IdentityField>, Header, nullable = false, description = "Identity of the message, unless the token determines it; `local` by default"),
        ("Ichido-Hops" = Option<String>, Header, nullable = false, description = "Hop chain of the message; stored, and sent on with the outbox as its last hop"),
        EnqueueQuery,
    ),
    request_body(content = String, content_type = "application/octet-stream", description = "The request, of any content type"),
    responses(
        (status = 201, description = "The message is stored durably", body = Accepted,
            headers(("Location" = String), ("Idempotency-Replayed" = Option<String>))),
        (status = 200, description = "With `wait`: the message is finished, or parked for a person to decide", body = Message),
        (status = 202, description = "With `wait`: the message is stored, but its outcome is not known yet; `Ichido-Wait` says why", body = Accepted,
            headers(("Location" = String), ("Ichido-Wait" = String))),
    )
)]
pub(super) async fn enqueue_message(
    AuthorizedRequest { api, caller, query, .. }: AuthorizedRequest<Anyone, EnqueueQuery>,
    Segment(queue): Segment,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let span = traces::accept(&head.headers);
    let schedule = query.schedule()?;
    let served = api.queue(&queue, &caller)?;
    let identity = caller.identity(&served.name, &head.headers)?;
    let counted = |problem: &Problem| arrivals::count(&queue, &head.headers, Err(problem));
    let key = read_key(&head.headers).inspect_err(counted)?;
    reject_encoded(&head.headers)?;
    let content_type = content_type(&head.headers)?;
    let hops = hops::read(&api, &served.name, &head.headers).await?;
    let mut permit = api.bodies.empty(caller.token);
    let body = read_body(&head.headers, body, api.request_limits.max_body_bytes, Some(&mut permit)).await?;
    let submission = Submission {
        queue: served.name.clone(),
        identity: identity.clone(),
        key: key.clone(),
        content_type: content_type.clone(),
        body,
        hops,
        trace: span.as_ref().map(Accepting::traceparent).or_else(|| read_trace(&head.headers)),
        max_attempts: served.max_attempts,
        schedule,
        intake: served.intake.clone(),
    };
    let ParsedSubmission { message, schema_error } =
        api.parsing.parse(&caller, submission).await.inspect_err(counted)?;
    let digest = message.request.digest().to_string();
    let result = if let Some(schema_error) = schema_error {
        existing_result(&api, &message, &schema_error).await
    } else {
        let admission = api.admission.admit(&queue).inspect_err(counted)?;
        let enqueued = api.store.messages().enqueue(message).await;
        drop(admission);
        enqueue_result(enqueued)
    };
    arrivals::count(&queue, &head.headers, result.as_ref());
    let (id, is_replay) = match result {
        Err(problem) if problem.code == Code::KeyConflict => {
            return Err(match api.store.messages().find(&served.name, &identity, &key).await? {
                Some(first) => with_media_types(&api, problem, first, &content_type).await,
                None => problem,
            });
        }
        result => result?,
    };
    // The message is stored; waiting for its end needs none of this memory.
    drop(permit);
    if let Some(span) = span {
        span.end(&queue, &key, id, is_replay);
    }
    let mut accepted = Accepted::new(id, queue, key.as_str().to_owned(), digest);
    if !schedule.is_empty() {
        let stored = api.store.messages().schedule(id).await.map_err(|error| Problem::from_store(&error))?;
        if let Some(stored) = stored {
            accepted = accepted.with_schedule(stored);
        }
    }
    let mut response = match query.wait {
        None => json(StatusCode::CREATED, &accepted),
        Some(wait) => match api.waiting.wait_for_end(id, wait.0).await {
            Ok(()) => message_response(&api, StatusCode::OK, id).await?,
            Err(why) => {
                let mut response = json(StatusCode::ACCEPTED, &accepted);
                response.headers_mut().insert(STATUS, HeaderValue::from_static("processing"));
                response.headers_mut().insert(WAIT, HeaderValue::from_static(why.as_str()));
                response.headers_mut().insert(RETRY_AFTER, ASK_AGAIN_AFTER);
                response
            }
        },
    };
    let headers = response.headers_mut();
    // An id consists of hexadecimal digits and hyphens.
    headers.extend(HeaderValue::try_from(href(id)).ok().map(|href| (LOCATION, href)));
    if is_replay {
        headers.extend(replay_marker());
    }
    Ok(response)
}

/// Returns the header field that marks a replay, the same as the tower layer's.
pub(super) fn replay_marker() -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(Profile::Ichido.numbers().replay_marker).ok()?;
    Some((name, HeaderValue::from_static("true")))
}

/// Returns the message under a key, and whether it is a replay.
pub(super) fn enqueue_result(enqueued: Result<Enqueued, StoreError>) -> Result<(Uuid, bool), Problem> {
    match enqueued {
        Ok(Enqueued::New { id }) => Ok((id, false)),
        Ok(Enqueued::Replay { id } | Enqueued::SameContent { id }) => Ok((id, true)),
        Err(error) => Err(Problem::from_store(&error)),
    }
}

/// Adds to a conflict that the first request had another media type, which is easy to overlook.
pub(super) async fn with_media_types(
    api: &ApiState,
    conflict: Problem,
    first: Uuid,
    content_type: &str,
) -> Problem {
    // A conflict is one without this help, too.
    let Ok(first) = find_message(api, first).await else { return conflict };
    let (was, is) = (media_type(&first.content_type), media_type(content_type));
    if was == is {
        return conflict;
    }
    let detail = format!("{}; the first request's media type is {was}, this one's {is}", conflict.detail);
    Problem { detail: detail.into(), ..conflict }
}

/// Returns the message under the key of a submission that violates the schema.
///
/// One that was accepted under an earlier schema is replayed.
pub(super) async fn existing_result(
    api: &ApiState,
    message: &NewMessage,
    schema_error: &SubmissionError,
) -> Result<(Uuid, bool), Problem> {
    match find_existing(&api.store, message).await.transpose() {
        Some(enqueued) => enqueue_result(enqueued),
        None => Err(Problem::from_submission(schema_error)),
    }
}

/// Reads the key of a request, which is required.
pub(super) fn read_key(headers: &HeaderMap) -> Result<IdempotencyKey, Problem> {
    let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    key::read(fields).and_then(|key| key.ok_or(KeyError::Missing)).map_err(Problem::from_key)
}

pub(super) fn content_type(headers: &HeaderMap) -> Result<String, Problem> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(MEDIA_TYPE_DEFAULT.to_owned()),
        (Some(line), None) => match line.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Problem::new(
                Code::MediaTypeUnsupported,
                "the Content-Type has characters other than visible ASCII; remove them",
            )),
        },
        (Some(_), Some(_)) => {
            Err(Problem::new(Code::MediaTypeUnsupported, "the Content-Type is repeated; send it once"))
        }
    }
}

/// Reads the trace, if it can be stored.
///
/// An invalid one must not stop a message.
fn read_trace(headers: &HeaderMap) -> Option<String> {
    let mut lines = headers.get_all(TRACEPARENT).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    line.to_str().ok().filter(|text| !text.is_empty() && text.len() <= MAX_TRACE_BYTES).map(str::to_owned)
}

/// Returns a message in its current state.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}",
    params(("id" = Uuid, Path, description = "The message's id")),
    responses(
        (status = 200, description = "The message", body = Message),
    )
)]
pub(super) async fn get_message(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Anyone>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let row = find_visible(&api, &caller, &id).await?;
    // A producer sees no node.
    let is_held = row.status == StateName::Sending && caller.require_viewer().is_ok();
    let holder = if is_held { api.store.messages().holder(row.id).await? } else { None };
    Ok(json(StatusCode::OK, &current_message(&api, row, holder).await?))
}

/// The page of a message's events.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Maximum recorded events on a page, the newest ones; all of them if neither this nor `cursor` is given. An attempt is recorded
    /// once, and listed as two events: its claim and its end.
    limit: Option<text::Limit>,
    /// Cursor of the page: `earlier` of the page after it. `limit` is then 50 by default.
    #[param(value_type = Option<text::PageCursor>)]
    cursor: Option<Cursor<EntryId>>,
}

/// Lists the events of a message.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/events",
    params(("id" = Uuid, Path, description = "The message's id"), EventsQuery),
    responses(
        (status = 200, description = "Its events, in order", body = Events),
    )
)]
pub(super) async fn list_message_events(
    AuthorizedRequest { api, caller, query, .. }: AuthorizedRequest<Anyone, EventsQuery>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let row = find_visible(&api, &caller, &id).await?;
    let messages = api.store.messages();
    let page = match query {
        EventsQuery { limit: None, cursor: None } => {
            TransitionPage { transitions: messages.transitions(row.id).await?, earlier: None, basis: None }
        }
        EventsQuery { limit, cursor } => {
            let limit = limit.map_or(text::PAGE_DEFAULT, |limit| limit.0);
            messages.transition_page(row.id, cursor.map(|cursor| cursor.0), limit).await?
        }
    };
    Ok(json(StatusCode::OK, &Events::new(&row, page, api.redaction(&row.queue))))
}

/// Returns the request of a message: byte for byte, unless its queue redacts values.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/request",
    params(("id" = Uuid, Path, description = "The message's id")),
    responses(
        (status = 200, description = "The request's bytes, with its content type", body = serde_json::Value, content_type = "*/*"),
    )
)]
pub(super) async fn get_message_request(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Anyone>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let row = find_visible(&api, &caller, &id).await?;
    let mut permit = api.bodies.empty(caller.token);
    let grown = permit.try_grow(row.request.len());
    grown.map_err(|full| Problem::from_body(BodyError::NoMemory(full)))?;
    let redaction = api.redaction(&row.queue);
    let request =
        if redaction.is_empty() { row.request } else { redaction.request(&row.request).into_owned() };
    let mut response = Response::new(PermittedBody::body(request, permit));
    let headers = response.headers_mut();
    let content_type = HeaderValue::try_from(row.content_type);
    headers.insert(CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static(MEDIA_TYPE_DEFAULT)));
    // These bytes come from the caller: a browser must neither show them as our page nor run them.
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    Ok(response)
}

/// Returns a message that the caller may see.
pub(super) async fn find_visible(
    api: &ApiState,
    caller: &ApiCaller,
    id: &str,
) -> Result<MessageRow, Problem> {
    let id = Uuid::try_parse(id).map_err(|_| unknown_message())?;
    let row = find_message(api, id).await?;
    if caller.can_see(&row.queue, &row.identity) { Ok(row) } else { Err(unknown_message()) }
}

pub(super) async fn find_message(api: &ApiState, id: Uuid) -> Result<MessageRow, Problem> {
    api.store.messages().get(id).await?.ok_or_else(unknown_message)
}

/// Returns the current state of a message.
pub(super) async fn message_response(
    api: &ApiState,
    status: StatusCode,
    id: Uuid,
) -> Result<Response, Problem> {
    let row = find_message(api, id).await?;
    Ok(json(status, &current_message(api, row, None).await?))
}

/// Reads what a message's row does not say.
async fn current_message(
    api: &ApiState,
    row: MessageRow,
    holder: Option<MessageHolder>,
) -> Result<Message, Problem> {
    let messages = api.store.messages();
    let is_in_flight = row.status == StateName::Sending;
    let cancellation = if is_in_flight { messages.cancellation(row.id).await? } else { None };
    // The result of a sent message and the replacement of a dead one are among the newest events.
    let newest = if matches!(row.status, StateName::Sent | StateName::Dead) {
        messages.transition_page(row.id, None, MAX_NEWEST_EVENTS).await?.transitions
    } else {
        Vec::new()
    };
    let replays = api.store.series().replays(&[Replayed::Message(row.id)]).await?.pop().flatten();
    let redaction = api.redaction(&row.queue);
    Ok(Message::new(row, &newest, holder, cancellation, replays, redaction))
}

pub(super) fn unknown_message() -> Problem {
    let detail = "the message does not exist, or you may not see it; sent and cancelled messages are deleted after their retention";
    Problem::new(Code::MessageUnknown, detail)
}
