//! Replaces a dead letter with a new message.
//!
//! The new message has another request and a new key; the two refer to each other.

// Spec: D17.

use std::num::NonZeroU32;

use axum::extract::Request;
use axum::response::Response;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StepRefusal;
use ichido_core::verdict::Effect;
use ichido_store::dead_letter::ReplaceOutcome;
use ichido_store::message::{MessageFilter, MessageRow, NewMessage, QueueName};
use serde::Deserialize;
use uuid::Uuid;

use super::api::ApiState;
use super::caller::{ApiCaller, unknown_queue};
use super::messages::{content_type, find_visible, read_key, replay_marker};
use super::models::{Accepted, href};
use super::problem::{Code, Problem};
use super::request::{AuthorizedRequest, Operator, Segment, read_body, reject_encoded};
use super::response::json;
use super::steps::{action_refused, lifecycle_refused, note};
use super::text;
use crate::accept::{ParsedSubmission, Submission};
use crate::schedule::Schedule;

/// The reason for a replacement, and whether it may repeat an effect.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReplaceQuery {
    /// The reason, which is stored in the dead message's history.
    reason: Option<text::Reason>,
    /// Whether to replace a dead message that took effect, which repeats the effect.
    #[serde(default)]
    although_done: bool,
}

/// Replaces a dead message with a new one.
///
/// The new message has another request and a new key. To the receiver it is a new action, unrelated to the dead message. Therefore a
/// message of unknown effect cannot be replaced, and one that took effect only with `although_done=true`. The same request gets the
/// same response again.
///
/// A redacted value may stay `[redacted]` in the new request, and is then the old request's value.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/replace",
    params(
        ("id" = Uuid, Path, description = "The dead message's id"),
        ("Idempotency-Key" = text::IdempotencyKeyField, Header, description = "The new message's idempotency key: 1 to 255 visible ASCII characters, never used before"),
        ReplaceQuery,
    ),
    request_body(content = String, content_type = "application/octet-stream", description = "The new request; its content type is the old one's by default"),
    responses(
        (status = 201, description = "The new message is stored, and the old one is closed", body = Accepted,
            headers(("Location" = String), ("Idempotency-Replayed" = Option<String>))),
        (status = 409, description = "The message was not replaced"),
    )
)]
pub(super) async fn replace_message(
    AuthorizedRequest { api, caller, query, .. }: AuthorizedRequest<Operator, ReplaceQuery>,
    Segment(id): Segment,
    request: Request,
) -> Result<Response, Problem> {
    let ReplaceQuery { reason, although_done } = query;
    let (head, body) = request.into_parts();
    let key = read_key(&head.headers)?;
    reject_encoded(&head.headers)?;
    let old = find_visible(&api, &caller, &id).await?;
    let content_type = match head.headers.get(CONTENT_TYPE) {
        Some(_) => content_type(&head.headers)?,
        None => old.content_type.clone(),
    };
    let mut permit = api.bodies.empty(caller.token);
    let body = read_body(&head.headers, body, api.request_limits.max_body_bytes, Some(&mut permit)).await?;
    // The person who edited the request did not see all of it.
    let redaction = api.redaction(&old.queue);
    let body = if redaction.is_empty() {
        body
    } else {
        let restored = redaction.restore(&body, &old.request);
        restored.map_err(|error| Problem::new(Code::BodyUnexpected, error.to_string()))?.into_owned()
    };
    let ParsedSubmission { message: new, schema_error } =
        build_replacement(&api, &caller, &old, key, content_type, body).await?;
    if let Some(schema_error) = schema_error {
        // A replacement that was made under an earlier schema is still valid.
        let found = find_by_key(&api, &new).await?;
        if !found.is_some_and(|found| is_replacement(&found, &old, &new)) {
            return Err(Problem::from_submission(&schema_error));
        }
    }
    if old.effect == Effect::Done && !although_done {
        return Err(action_refused(
            "was_done",
            "the dead message took effect, and a replacement with a new key would repeat it; nothing was enqueued; send although_done=true to \
             repeat the effect, or discard the message",
        ));
    }
    let accepted = |id| {
        let digest = new.request.digest().to_string();
        Accepted::new(id, old.queue.clone(), new.key.as_str().to_owned(), digest)
    };
    let replaced = api.store.dead_letters().replace(old.id, new.clone(), &note(&caller, reason)).await;
    let (accepted, is_replay) = match replaced.map_err(|error| Problem::from_store(&error))? {
        ReplaceOutcome::By { id, .. } => (accepted(id), false),
        refusal => match find_by_key(&api, &new).await? {
            Some(found) if is_replacement(&found, &old, &new) => (accepted(found.id), true),
            found => return Err(replace_refused(refusal, found.as_ref())),
        },
    };
    let mut response = json(StatusCode::CREATED, &accepted);
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(&accepted.href).ok().map(|href| (LOCATION, href)));
    if is_replay {
        headers.extend(replay_marker());
    }
    Ok(response)
}

/// Builds the new message from the old one, with another request and key.
async fn build_replacement(
    api: &ApiState,
    caller: &ApiCaller,
    old: &MessageRow,
    key: IdempotencyKey,
    content_type: String,
    body: Vec<u8>,
) -> Result<ParsedSubmission, Problem> {
    let submission = Submission {
        // A stored queue is a valid name, and a stored message allows at least one attempt.
        queue: QueueName::parse(&old.queue).ok_or_else(unknown_queue)?,
        identity: old.identity.clone(),
        key,
        content_type,
        body,
        hops: old.hops.clone(),
        trace: old.trace.clone(),
        max_attempts: NonZeroU32::new(old.max_attempts).unwrap_or(NonZeroU32::MIN),
        schedule: Schedule::default(),
        intake: api.queues.get(&old.queue).map(|known| known.intake.clone()).unwrap_or_default(),
    };
    let ParsedSubmission { message, schema_error } = api.parsing.parse(caller, submission).await?;
    Ok(ParsedSubmission { message: NewMessage { priority: old.priority, ..message }, schema_error })
}

/// Whether a message is the requested replacement of the old one.
fn is_replacement(found: &MessageRow, old: &MessageRow, new: &NewMessage) -> bool {
    found.replacement_of == Some(old.id) && found.request_digest == *new.request.digest()
}

/// Returns the message under the new key, if there is one.
async fn find_by_key(api: &ApiState, new: &NewMessage) -> Result<Option<MessageRow>, Problem> {
    let filter = MessageFilter {
        queue: Some(new.queue.clone()),
        identity: Some(new.identity.clone()),
        key: Some(new.key.clone()),
        ..MessageFilter::default()
    };
    Ok(api.store.messages().list(&filter, 1).await?.pop())
}

fn replace_refused(refusal: ReplaceOutcome, existing: Option<&MessageRow>) -> Problem {
    match (refusal, existing) {
        (ReplaceOutcome::KeyUsed { id } | ReplaceOutcome::By { id, .. }, None) => key_used(id),
        (_, Some(found)) => key_used(found.id),
        (ReplaceOutcome::Refused(StepRefusal::CouldDoItTwice | StepRefusal::WrongState), None) => {
            action_refused(
                "effect_unknown",
                "the effect of the dead message is unknown; nothing was enqueued; decide it first",
            )
        }
        (ReplaceOutcome::Refused(why), None) => lifecycle_refused(why),
        (ReplaceOutcome::NoLetter, None) => {
            action_refused("not_dead", "only a dead message can be replaced; nothing was enqueued")
        }
    }
}

fn key_used(by: Uuid) -> Problem {
    let detail = "this idempotency key was used before in this queue; nothing was enqueued; use a new key";
    Problem::new(Code::KeyConflict, detail).with("first", serde_json::json!(href(by)))
}
