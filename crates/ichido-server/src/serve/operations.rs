//! Bulk operations on dead and parked messages: preview, start, watch and stop.
//!
//! Guarantee: an operation touches only messages that its preview would count, and judges each at the moment it is moved. The
//! audit trail records who started it, with which filter, and how it ended; the API shows these records.

// Spec: D17, E4.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use std::collections::BTreeMap;

use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use ichido::dead_letters::limits::LEASE;
use ichido::dead_letters::{
    self, BulkAction, BulkEnd, BulkOperation, BulkProgress, BulkReport, Canary, Preflight, StopRequest,
    request_stop,
};
use ichido_core::lifecycle::Decision;
use ichido_store::dead_letter::{DeadLetterFilter, Disposition};
use ichido_store::error::StoreError;
use ichido_store::message::DeadLetterState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::api::ApiState;
use super::bulk_history::{self, RecordedBulk};
use super::bulk_runner::{BulkStartError, BulkStatus, QueueBusy};
use super::caller::ApiCaller;
use super::json_body::{BodyShape, JsonBody};
use super::problem::{Code, Problem};
use super::queues::check_known;
use super::request::{AuthorizedRequest, Operator, Segment, Viewer};
use super::response::json;
use super::steps::OperatorDecision;
use super::text;
use crate::limits::MAX_OPERATIONS;

/// A bulk operation to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Begin {
    action: OperationAction,
    /// What happened; required for a decide, and only for it.
    decision: Option<OperatorDecision>,
    /// The messages.
    #[serde(default)]
    filter: BulkFilter,
    /// All dead messages, or for a decide all parked ones; requires an empty filter.
    #[serde(default)]
    all: bool,
    /// For a requeue, or a decide of parked messages as not done: sends 1 % first, then 5 %, 25 % and the rest, each after the previous messages were sent; halts if more than 10 % fail.
    #[serde(default)]
    canary: bool,
    /// The reason, which is stored; required for a discard.
    reason: Option<text::Reason>,
    /// Whether to return only a preview.
    #[serde(default)]
    preview: bool,
    /// Only messages that were dead at this time: `as_of` of the preview that a person confirmed.
    #[schema(value_type = Option<text::Moment>)]
    as_of: Option<String>,
}

impl BodyShape for Begin {
    const EXAMPLE: &'static str = r#"{"action":"requeue" or "discard" or "decide","decision":"done" or "not_done" or "give_up","filter":{"queue":"…"},"canary":true,"reason":"…","preview":true}"#;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Action)]
enum OperationAction {
    /// Sends them again.
    Requeue,
    /// Marks them as needing no more attention.
    Discard,
    /// Decides their unknown effect.
    Decide,
}

/// Filters for dead or parked messages; a message must match all members.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Filter)]
struct BulkFilter {
    /// Dead or parked; `dead` by default, for a decide `parked`. A requeue releases parked messages whose destination's guarantee makes
    /// that safe by now.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    state: Option<text::LetterState>,
    /// In this queue.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::QueueName>, nullable = false)]
    queue: Option<String>,
    /// With this code of the last error.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::ErrorCode>, nullable = false)]
    code: Option<String>,
    /// With this known effect.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    effect: Option<text::Effect>,
    /// With this identity.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    identity: Option<text::Identity>,
    /// Dead or parked since this time, inclusive.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::Moment>, nullable = false)]
    since_from: Option<String>,
    /// Dead or parked before this time.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::Moment>, nullable = false)]
    since_before: Option<String>,
    /// With this text in the last error.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    text: Option<text::ErrorText>,
    /// Discarded messages, instead of open ones.
    #[serde(default, deserialize_with = "text::only_true")]
    #[schema(value_type = text::True, required = false)]
    discarded: bool,
    /// Replaced messages, instead of open ones. None of them can be requeued or discarded.
    #[serde(default, deserialize_with = "text::only_true")]
    #[schema(value_type = text::True, required = false)]
    replaced: bool,
}

/// Returns the constraints between members of [`Begin`] and [`BulkFilter`]: schema, keyword and value.
pub(super) fn constraints() -> [(&'static str, &'static str, Value); 2] {
    let discard = value!({ "properties": { "action": { "const": "discard" } } });
    let explained = value!({ "required": ["reason"], "properties": { "reason": { "type": "string" }, "canary": { "const": false } } });
    let decide = value!({ "properties": { "action": { "const": "decide" } } });
    let decided = value!({ "required": ["decision"], "properties": { "decision": { "type": "string" } } });
    let undecided = value!({ "properties": { "decision": { "type": "null" } } });
    let closed = value!([{ "required": ["discarded"] }, { "required": ["replaced"] }]);
    let parked = value!({ "properties": { "state": { "const": "parked" } } });
    let resent = value!({ "properties": {
        "decision": { "const": "not_done" },
        "filter": { "allOf": [parked, { "not": { "anyOf": closed } }] },
    } });
    let with_canary = value!({ "required": ["canary"], "properties": { "action": { "const": "decide" }, "canary": { "const": true } } });
    let some = value!({ "filter": { "minProperties": 1 }, "all": { "const": false } });
    let all = value!({ "filter": { "maxProperties": 0 }, "all": { "const": true } });
    let some = value!({ "required": ["filter"], "properties": some });
    let either = value!([some, { "required": ["all"], "properties": all }]);
    [
        (
            "Begin",
            "allOf",
            value!([
                { "oneOf": either },
                { "if": discard, "then": explained },
                { "if": decide, "then": decided, "else": undecided },
                { "if": with_canary, "then": resent },
            ]),
        ),
        (
            "Filter",
            "not",
            value!({ "anyOf": [
                { "required": ["discarded", "replaced"] },
                { "required": ["state"], "anyOf": closed, "properties": { "state": { "const": "parked" } } },
            ] }),
        ),
    ]
}

/// The preview, and the operation that was started.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct StartedOperation {
    pub preview: Preview,
    /// Null if nothing was started: it was a preview, or there is nothing to do.
    pub operation: Option<Operation>,
}

/// What a bulk operation would do.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Preview {
    /// When this was counted. An operation with this time leaves out messages that die later.
    pub as_of: String,
    /// Number of messages that match the filter.
    pub matched: u64,
    /// Number of them that would be requeued, discarded or decided.
    pub eligible: u64,
    /// Messages that would be requeued, discarded or decided, by queue.
    pub queues: BTreeMap<String, u64>,
    /// Messages that would be requeued, discarded or decided, by the code of their last error; an empty string if there is none.
    pub errors: BTreeMap<String, u64>,
    pub refused: Vec<RefusedLetters>,
}

/// Messages that would not be requeued, discarded or decided.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct RefusedLetters {
    pub queue: String,
    pub reason: String,
    pub count: u64,
    /// The reason for people, and how to fix it.
    pub detail: String,
}

impl Preview {
    fn new(found: &Preflight) -> Self {
        let refused = found.refused.iter().map(|((queue, reason), count)| RefusedLetters {
            queue: queue.clone(),
            reason: reason.as_str().to_owned(),
            count: *count,
            detail: reason.to_string(),
        });
        Self {
            as_of: found.as_of.to_string(),
            matched: found.matched,
            eligible: found.eligible,
            queues: found.queues.clone(),
            errors: found.errors.clone(),
            refused: refused.collect(),
        }
    }
}

/// The latest bulk operations.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Operations {
    /// Newest first.
    operations: Vec<Operation>,
}

/// A bulk operation.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Operation {
    pub id: Uuid,
    /// `requeue`, `requeue_canary`, `discard`, `decide_done`, `decide_not_done`, `decide_not_done_canary` or `decide_give_up`.
    pub action: String,
    /// Who started it.
    pub by: String,
    /// `started`, `stopping`, `ended`, `stopped`, `halted` (by its canary), `failed`, or `abandoned`: its process was killed. If started
    /// again, it continues with the rest.
    pub state: String,
    /// Its filter, and its outcome.
    pub detail: String,
    pub started_at: String,
    pub updated_at: String,
    /// Its progress; only while it runs in this server.
    pub progress: Option<OperationProgress>,
    /// Its outcome; only if it ended in this server recently.
    pub result: Option<OperationResult>,
}

/// The progress of a bulk operation.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct OperationProgress {
    /// Number of messages requeued, discarded or decided.
    pub moved: u64,
    /// Number of messages to requeue, discard or decide when they were counted.
    pub total: u64,
    /// The messages of the canary's current step.
    pub canary: Option<CanaryResult>,
}

#[derive(Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct CanaryResult {
    /// Not finished yet.
    pub pending: u64,
    /// Sent.
    pub succeeded: u64,
    /// Failed at least once.
    pub failed: u64,
}

/// The outcome of a bulk operation.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct OperationResult {
    /// Number of messages requeued, discarded or decided.
    pub moved: u64,
    /// Number of messages that changed meanwhile.
    pub gone: u64,
    /// Messages that were not requeued, discarded or decided, by reason.
    pub refused: Vec<NotMoved>,
    /// Who requested the stop, if anybody.
    pub stopped_by: Option<String>,
    /// The messages of its canary when it halted.
    pub canary: Option<CanaryResult>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// Messages that were not requeued, discarded or decided.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct NotMoved {
    pub reason: String,
    pub count: u64,
    /// The reason for people, and what to do about it.
    pub detail: String,
}

impl From<dead_letters::CanaryCounts> for CanaryResult {
    fn from(counts: dead_letters::CanaryCounts) -> Self {
        Self { pending: counts.pending, succeeded: counts.succeeded, failed: counts.failed }
    }
}

impl OperationResult {
    fn new(report: BulkReport, error: Option<String>) -> Self {
        let refused = report.refused.into_iter().map(|(reason, count)| NotMoved {
            reason: reason.as_str().to_owned(),
            count,
            detail: reason.to_string(),
        });
        let (stopped_by, watched) = match report.ended {
            BulkEnd::Stopped { by } => (by, None),
            BulkEnd::Halted { watched } => (None, Some(watched.into())),
            BulkEnd::Done | BulkEnd::Abandoned | BulkEnd::Failed => (None, None),
        };
        let (moved, gone) = (report.moved, report.gone);
        Self { moved, gone, refused: refused.collect(), stopped_by, canary: watched, error }
    }
}

impl Operation {
    fn new(bulk: RecordedBulk, status: Option<BulkStatus>) -> Self {
        let (progress, result) = match status {
            Some(BulkStatus::Running(BulkProgress { moved, total: of, canary: watched, .. })) => {
                (Some(OperationProgress { moved, total: of, canary: watched.map(CanaryResult::from) }), None)
            }
            Some(BulkStatus::Finished(report, error)) => (None, Some(OperationResult::new(report, error))),
            None => (None, None),
        };
        Self {
            id: bulk.id,
            action: bulk.kind,
            by: bulk.by,
            state: bulk.state,
            detail: bulk.detail,
            started_at: bulk.started_at.to_string(),
            updated_at: bulk.updated_at.to_string(),
            progress,
            result,
        }
    }
}

/// Starts a bulk operation on dead or parked messages, or previews it.
///
/// It runs in this server and continues if the caller disconnects. A server that stops halts it; started again, it continues with the rest.
/// Only one operation at a time works on a queue. One without a queue in its filter works on all queues, so it must be the only one.
#[utoipa::path(
    post,
    path = "/v1/operations",
    request_body = Begin,
    responses(
        (status = 202, description = "The operation was started", body = StartedOperation, headers(("Location" = String))),
        (status = 200, description = "Nothing was started: it was a preview, or there is nothing to do", body = StartedOperation),
        (status = 409, description = "Too many operations run, or one works on the same queue"),
    )
)]
pub(super) async fn start_bulk_operation(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    JsonBody(body): JsonBody<Begin>,
) -> Result<Response, Problem> {
    let is_preview = body.preview;
    let as_of = member("as_of", body.as_of.as_deref(), text::Moment::read)?;
    let bulk = plan(&api, &caller, body).await?;
    let found = match as_of {
        Some(as_of) => bulk.preflight_as_of(as_of).await?,
        None => bulk.preflight().await?,
    };
    if found.matched == 0 {
        check_known(&api, &caller, bulk.filter.queue.as_ref()).await?;
    }
    let preview = Preview::new(&found);
    if is_preview || found.eligible == 0 {
        return Ok(json(StatusCode::OK, &StartedOperation { preview, operation: None }));
    }
    let begun = api.operations.start(bulk, found).map_err(|why| match why {
        BulkStartError::TooMany => Problem::new(
            Code::OperationRefused,
            format!(
                "{MAX_OPERATIONS} bulk operations run here, the maximum; nothing was started; wait for one, or stop it"
            ),
        ),
        BulkStartError::Stopping => Problem::new(Code::NotReady, "the server is stopping; nothing was started"),
    })?;
    let start_unknown = || {
        Problem::new(
            Code::StoreUnavailable,
            "it is unknown whether the operation was started; check GET /v1/operations",
        )
    };
    let id = begun.await.map_err(|_| start_unknown())?.map_err(queue_busy)?;
    let operation = operation(&api, id).await?.ok_or_else(start_unknown)?;
    let mut response = json(StatusCode::ACCEPTED, &StartedOperation { preview, operation: Some(operation) });
    let location = HeaderValue::try_from(format!("/v1/operations/{id}"));
    response.headers_mut().extend(location.ok().map(|location| (LOCATION, location)));
    Ok(response)
}

/// Lists the latest bulk operations, with the progress or outcome of those in this server.
#[utoipa::path(
    get,
    path = "/v1/operations",
    responses(
        (status = 200, description = "Up to 50 operations", body = Operations),
    )
)]
pub(super) async fn list_bulk_operations(
    AuthorizedRequest { api, .. }: AuthorizedRequest<Viewer>,
) -> Result<Response, Problem> {
    let operations = bulk_history::recent(&api.store).await?.into_iter().map(|bulk| {
        let status = api.operations.status(bulk.id);
        Operation::new(bulk, status)
    });
    Ok(json(StatusCode::OK, &Operations { operations: operations.collect() }))
}

/// Returns a bulk operation.
#[utoipa::path(
    get,
    path = "/v1/operations/{id}",
    params(("id" = Uuid, Path, description = "The operation's id")),
    responses(
        (status = 200, description = "The operation", body = Operation),
    )
)]
pub(super) async fn get_bulk_operation(
    AuthorizedRequest { api, .. }: AuthorizedRequest<Viewer>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let operation = find(&api, &id).await?;
    Ok(json(StatusCode::OK, &operation))
}

/// Stops a bulk operation, wherever it runs.
///
/// Messages that it has requeued, discarded or decided stay so.
#[utoipa::path(
    post,
    path = "/v1/operations/{id}/stop",
    params(("id" = Uuid, Path, description = "The operation's id")),
    responses(
        (status = 202, description = "It stops before its next batch, if it still runs", body = Operation),
        (status = 409, description = "The operation has ended"),
    )
)]
pub(super) async fn stop_bulk_operation(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let operation = find(&api, &id).await?.id;
    match request_stop(&api.store, operation, &caller.name).await? {
        StopRequest::Accepted => Ok(json(StatusCode::ACCEPTED, &find(&api, &id).await?)),
        StopRequest::Ended => Err(Problem::new(
            Code::OperationRefused,
            "the operation has ended, or its process is gone; there is nothing to stop",
        )),
        StopRequest::Unknown => Err(unknown_operation()),
    }
}

fn queue_busy(QueueBusy { by }: QueueBusy) -> Problem {
    let detail = format!(
        "the bulk operation {by} works on messages of the same queue; nothing was started; wait for it, or stop it; an operation \
         whose process was killed is abandoned after {} s",
        LEASE.as_secs()
    );
    Problem::new(Code::OperationRefused, detail)
        .with("operation", serde_json::json!(format!("/v1/operations/{by}")))
}

async fn find(api: &ApiState, id: &str) -> Result<Operation, Problem> {
    let id = Uuid::try_parse(id).map_err(|_| unknown_operation())?;
    operation(api, id).await?.ok_or_else(unknown_operation)
}

async fn operation(api: &ApiState, id: Uuid) -> Result<Option<Operation>, StoreError> {
    // Read the trail first, so an operation that has ended is not shown as running for long.
    Ok(bulk_history::find(&api.store, id).await?.map(|bulk| Operation::new(bulk, api.operations.status(id))))
}

fn unknown_operation() -> Problem {
    let detail = "the bulk operation does not exist; GET /v1/operations lists the latest";
    Problem::new(Code::OperationUnknown, detail)
}

async fn plan(api: &ApiState, caller: &ApiCaller, body: Begin) -> Result<BulkOperation, Problem> {
    let unexpected = |detail: &'static str| Err(Problem::new(Code::BodyUnexpected, detail));
    if body.all == (body.filter != BulkFilter::default()) {
        return unexpected("send either a filter or \"all\":true; nothing was started");
    }
    let canary = body.canary.then_some(Canary::DEFAULT);
    let work = match (body.action, body.decision) {
        (OperationAction::Requeue, None) => BulkAction::Requeue { canary },
        (OperationAction::Discard, None) => BulkAction::Discard,
        (OperationAction::Decide, Some(decision)) => {
            BulkAction::Decide { decision: decision.about_message(), canary }
        }
        (OperationAction::Decide, None) => {
            return unexpected(
                "a decide requires a \"decision\": \"done\", \"not_done\" or \"give_up\"; nothing was started; add it",
            );
        }
        (OperationAction::Requeue | OperationAction::Discard, Some(_)) => {
            return unexpected("only a decide has a \"decision\"; nothing was started; remove it");
        }
    };
    if work == BulkAction::Discard && body.reason.is_none() {
        return unexpected("a discard requires a \"reason\"; nothing was started; add it");
    }
    let filter = filter(body.filter, body.action)?;
    let sends = match work {
        BulkAction::Requeue { .. } => true,
        BulkAction::Discard => false,
        BulkAction::Decide { decision, .. } => {
            decision == Decision::NotDone && filter.state == DeadLetterState::Parked
        }
    };
    if body.canary && !sends {
        return unexpected(
            "only a requeue, and a decide of parked messages as not done, send messages and can have a canary; nothing was started; remove canary",
        );
    }
    Ok(BulkOperation {
        store: api.store.clone(),
        policies: api.policies().await?,
        action: work,
        filter,
        actor: caller.name.clone(),
        reason: body.reason.map(|reason| reason.0),
    })
}

fn filter(body: BulkFilter, action: OperationAction) -> Result<DeadLetterFilter, Problem> {
    let unexpected = |detail: &'static str| Err(Problem::new(Code::BodyUnexpected, detail));
    let standing = match (body.discarded, body.replaced) {
        (false, false) => Disposition::Open,
        (true, false) => Disposition::Discarded,
        (false, true) => Disposition::Replaced,
        (true, true) => {
            return unexpected("the filter has both discarded and replaced, which no message is; remove one");
        }
    };
    let state = match (body.state, action, standing) {
        (Some(text::LetterState(state)), ..) => state,
        (None, OperationAction::Decide, Disposition::Open) => DeadLetterState::Parked,
        (None, ..) => DeadLetterState::Dead,
    };
    if state == DeadLetterState::Parked && standing != Disposition::Open {
        return unexpected("a parked message is neither discarded nor replaced; remove state or the other");
    }
    Ok(DeadLetterFilter {
        state,
        disposition: standing,
        queue: member("the filter's queue", body.queue.as_deref(), text::QueueName::read)?,
        code: member("code", body.code.as_deref(), text::ErrorCode::read)?,
        effect: body.effect.map(|effect| effect.0),
        identity: body.identity.map(|identity| identity.0),
        since_from: member("since_from", body.since_from.as_deref(), text::Moment::read)?,
        since_before: member("since_before", body.since_before.as_deref(), text::Moment::read)?,
        text: body.text.map(|text| text.0),
    })
}

/// Reads an optional member of the body.
fn member<T>(
    name: &str,
    text: Option<&str>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Problem> {
    text.map(read).transpose().map_err(|what| Problem::new(Code::ParameterInvalid, what).about(name))
}
