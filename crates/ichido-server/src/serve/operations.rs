//! Bulk operations on dead letters: preview, start, watch and stop.
//!
//! Guarantee: an operation touches only messages that its preview would count, and judges each at the moment it is moved. The
//! audit trail records who started it, with which filter, and how it ended; the API shows these records.

// Spec: D17, E4.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use std::collections::BTreeMap;

use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use ichido::letters::limits::LEASE;
use ichido::letters::{self, Bulk, Canary, Ended, Preflight, Progress, Report, StopAsked, Work, ask_to_stop};
use ichido_store::error::StoreError;
use ichido_store::letter::{LetterFilter, Standing};
use ichido_store::message::LetterState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::api::ApiState;
use super::bulk_history::{self, BulkOperation};
use super::bulk_runner::{BulkStartError, BulkStatus, QueueBusy};
use super::caller::ApiCaller;
use super::json_body::{BodyShape, JsonBody};
use super::problem::{Code, Problem};
use super::request::{AuthorizedRequest, Operator, Segment, Viewer};
use super::response::json;
use super::text;
use crate::limits::OPERATIONS_MAX;

/// What is to be done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Begin {
    action: BulkAction,
    /// Which dead messages.
    #[serde(default)]
    filter: BulkFilter,
    /// All of them, where no filter is given.
    #[serde(default)]
    all: bool,
    /// For a requeue: 1 % first, then 5 %, 25 % and the rest, each when those before were sent; it halts when more than one in ten fail.
    #[serde(default)]
    canary: bool,
    /// Why; a discard needs it. It is kept.
    reason: Option<text::Reason>,
    /// Whether only to say what would happen.
    #[serde(default)]
    preview: bool,
    /// Only what was dead at this moment: `as_of` of the preview that a person agreed to.
    #[schema(value_type = Option<text::Moment>)]
    as_of: Option<String>,
}

impl BodyShape for Begin {
    const EXAMPLE: &'static str = r#"{"action":"requeue" or "discard","filter":{"queue":"…"},"canary":true,"reason":"…","preview":true}"#;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Action)]
enum BulkAction {
    /// Send them again.
    Requeue,
    /// Say that they need no more attention.
    Discard,
}

/// Which dead messages; all members together must fit.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Filter)]
struct BulkFilter {
    /// Of this queue.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::QueueName>, nullable = false)]
    queue: Option<String>,
    /// With this code as the last error.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::ErrorCode>, nullable = false)]
    code: Option<String>,
    /// Of which this is known.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    effect: Option<text::Effect>,
    /// Of this identity.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    identity: Option<text::Identity>,
    /// Dead from this moment on.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::Moment>, nullable = false)]
    since_from: Option<String>,
    /// Dead before this moment.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::Moment>, nullable = false)]
    since_before: Option<String>,
    /// With this text in what the last error said.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    text: Option<text::ErrorText>,
    /// Those that somebody discarded, in place of those that wait.
    #[serde(default, deserialize_with = "text::only_true")]
    #[schema(value_type = text::True, required = false)]
    discarded: bool,
    /// Those that a new message was made from, in place of those that wait. None of them would go.
    #[serde(default, deserialize_with = "text::only_true")]
    #[schema(value_type = text::True, required = false)]
    replaced: bool,
}

/// Returns the constraints between members of [`Begin`] and [`BulkFilter`]: schema, keyword and value.
pub(super) fn constraints() -> [(&'static str, &'static str, Value); 2] {
    let discard = value!({ "properties": { "action": { "const": "discard" } } });
    let explained = value!({ "required": ["reason"], "properties": { "reason": { "type": "string" }, "canary": { "const": false } } });
    let some = value!({ "filter": { "minProperties": 1 }, "all": { "const": false } });
    let all = value!({ "filter": { "maxProperties": 0 }, "all": { "const": true } });
    let some = value!({ "required": ["filter"], "properties": some });
    let either = value!([some, { "required": ["all"], "properties": all }]);
    [
        ("Begin", "allOf", value!([{ "oneOf": either }, { "if": discard, "then": explained }])),
        ("Filter", "not", value!({ "required": ["discarded", "replaced"] })),
    ]
}

/// What would happen, and what was begun.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Begun {
    pub preview: Preview,
    /// None where nothing was begun: it was a preview, or there is nothing to do.
    pub operation: Option<Operation>,
}

/// What would happen.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Preview {
    /// When this was counted. What dies later is not touched by an operation that names this moment.
    pub as_of: String,
    /// How many dead messages the filter finds.
    pub matched: u64,
    /// How many of them would go.
    pub would_go: u64,
    /// Those that would go, by queue.
    pub queues: BTreeMap<String, u64>,
    /// Those that would go, by the code of their last error; without one, by an empty text.
    pub errors: BTreeMap<String, u64>,
    pub refused: Vec<Refused>,
}

/// Messages that would not go.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Refused {
    pub queue: String,
    pub reason: String,
    pub count: u64,
    /// The reason for people, with how to mend it.
    pub told: String,
}

impl Preview {
    fn new(found: &Preflight) -> Self {
        let refused = found.refused.iter().map(|((queue, reason), count)| Refused {
            queue: queue.clone(),
            reason: reason.as_str().to_owned(),
            count: *count,
            told: reason.to_string(),
        });
        Self {
            as_of: found.as_of.to_string(),
            matched: found.matched,
            would_go: found.would_go,
            queues: found.queues.clone(),
            errors: found.errors.clone(),
            refused: refused.collect(),
        }
    }
}

/// The last operations.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Operations {
    /// The last one first.
    operations: Vec<Operation>,
}

/// An operation on many messages.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Operation {
    pub id: Uuid,
    /// `requeue`, `requeue_canary` or `discard`.
    pub action: String,
    /// Who began it.
    pub by: String,
    /// `begun`, `stopping`, `ended`, `stopped`, `halted` (by its canary), `failed`, or `abandoned`: it runs no more, as its process was
    /// killed. What it did is done, and begun again, it goes on with the rest.
    pub state: String,
    /// Its filter, and what came of it.
    pub detail: String,
    pub begun_at: String,
    pub updated_at: String,
    /// How far it is; only while it runs in this server.
    pub progress: Option<Far>,
    /// What came of it; only where it ended in this server, and not long ago.
    pub result: Option<OperationResult>,
}

/// How far an operation is.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Far {
    /// How many have gone.
    pub moved: u64,
    /// How many would go when it was counted.
    pub of: u64,
    /// What those of the canary's present step show.
    pub watched: Option<Watched>,
}

#[derive(Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Watched {
    /// Not ended yet.
    pub waiting: u64,
    /// Sent.
    pub well: u64,
    /// Failed at least once.
    pub ill: u64,
}

/// What came of an operation.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct OperationResult {
    /// How many have gone.
    pub moved: u64,
    /// How many somebody else took meanwhile.
    pub gone: u64,
    /// How many did not go, and why.
    pub refused: Vec<NotMoved>,
    /// Who asked it to stop, if somebody did.
    pub stopped_by: Option<String>,
    /// What its canary showed when it halted.
    pub watched: Option<Watched>,
    /// Why it could not go on, if it could not.
    pub error: Option<String>,
}

/// Messages that did not go.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct NotMoved {
    pub reason: String,
    pub count: u64,
    /// The reason for people, with what to do about it.
    pub told: String,
}

impl From<letters::Watched> for Watched {
    fn from(counts: letters::Watched) -> Self {
        Self { waiting: counts.waiting, well: counts.well, ill: counts.ill }
    }
}

impl OperationResult {
    fn new(report: Report, error: Option<String>) -> Self {
        let refused = report.refused.into_iter().map(|(reason, count)| NotMoved {
            reason: reason.as_str().to_owned(),
            count,
            told: reason.to_string(),
        });
        let (stopped_by, watched) = match report.ended {
            Ended::Stopped { by } => (by, None),
            Ended::Halted { watched } => (None, Some(watched.into())),
            Ended::Done | Ended::Abandoned | Ended::Failed => (None, None),
        };
        let (moved, gone) = (report.moved, report.gone);
        Self { moved, gone, refused: refused.collect(), stopped_by, watched, error }
    }
}

impl Operation {
    fn new(bulk: BulkOperation, status: Option<BulkStatus>) -> Self {
        let (progress, result) = match status {
            Some(BulkStatus::Running(Progress { moved, of, watched, .. })) => {
                (Some(Far { moved, of, watched: watched.map(Watched::from) }), None)
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
            begun_at: bulk.begun_at.to_string(),
            updated_at: bulk.updated_at.to_string(),
            progress,
            result,
        }
    }
}

/// Begins an operation on many dead messages, or says what it would do.
///
/// It runs in this server, and goes on when the caller hangs up; a server that stops halts it. Begun again, it goes on with the rest.
/// One at a time works on a queue, and one without a queue on none that another works on.
#[utoipa::path(
    post,
    path = "/v1/operations",
    request_body = Begin,
    responses(
        (status = 202, description = "It was begun", body = Begun, headers(("Location" = String))),
        (status = 200, description = "Nothing was begun: it was a preview, or nothing would go", body = Begun),
        (status = 409, description = "Too many run already, or one works on messages of the same queue"),
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
    let preview = Preview::new(&found);
    if is_preview || found.would_go == 0 {
        return Ok(json(StatusCode::OK, &Begun { preview, operation: None }));
    }
    let begun = api.operations.start(bulk, found).map_err(|why| match why {
        BulkStartError::TooMany => Problem::new(
            Code::OperationRefused,
            format!(
                "{OPERATIONS_MAX} operations run here already; nothing was begun; wait for one, or stop it"
            ),
        ),
        BulkStartError::Stopping => Problem::new(Code::NotReady, "the server stops; nothing was begun"),
    })?;
    let start_unknown = || {
        Problem::new(
            Code::StoreUnavailable,
            "it is not known whether it was begun; look at GET /v1/operations",
        )
    };
    let id = begun.await.map_err(|_| start_unknown())?.map_err(queue_busy)?;
    let operation = operation(&api, id).await?.ok_or_else(start_unknown)?;
    let mut response = json(StatusCode::ACCEPTED, &Begun { preview, operation: Some(operation) });
    let location = HeaderValue::try_from(format!("/v1/operations/{id}"));
    response.headers_mut().extend(location.ok().map(|location| (LOCATION, location)));
    Ok(response)
}

/// The last operations, with how far those are that run in this server, and what came of those that ended in it.
#[utoipa::path(
    get,
    path = "/v1/operations",
    responses(
        (status = 200, description = "At most 50", body = Operations),
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

/// One operation.
#[utoipa::path(
    get,
    path = "/v1/operations/{id}",
    params(("id" = Uuid, Path, description = "The operation's id")),
    responses(
        (status = 200, description = "How it stands", body = Operation),
    )
)]
pub(super) async fn get_bulk_operation(
    AuthorizedRequest { api, .. }: AuthorizedRequest<Viewer>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let operation = find(&api, &id).await?;
    Ok(json(StatusCode::OK, &operation))
}

/// Asks an operation to stop, wherever it runs. What it did is done.
#[utoipa::path(
    post,
    path = "/v1/operations/{id}/stop",
    params(("id" = Uuid, Path, description = "The operation's id")),
    responses(
        (status = 202, description = "It stops before its next batch, if it still runs", body = Operation),
        (status = 409, description = "It has ended"),
    )
)]
pub(super) async fn stop_bulk_operation(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let operation = find(&api, &id).await?.id;
    match ask_to_stop(&api.store, operation, &caller.name).await? {
        StopAsked::Asked => Ok(json(StatusCode::ACCEPTED, &find(&api, &id).await?)),
        StopAsked::Over => Err(Problem::new(
            Code::OperationRefused,
            "it has ended, or its process is gone; there is nothing to stop",
        )),
        StopAsked::Unknown => Err(unknown_operation()),
    }
}

fn queue_busy(QueueBusy { by }: QueueBusy) -> Problem {
    let detail = format!(
        "the operation {by} works on messages of the same queue, and two would count each other's; nothing was begun; wait for it, or stop it; \
         one whose process was killed is given up after {} s",
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
    let detail = "there is no operation of this id; GET /v1/operations lists those that there are";
    Problem::new(Code::OperationUnknown, detail)
}

async fn plan(api: &ApiState, caller: &ApiCaller, body: Begin) -> Result<Bulk, Problem> {
    let unexpected = |detail: &'static str| Err(Problem::new(Code::BodyUnexpected, detail));
    if body.all == (body.filter != BulkFilter::default()) {
        return unexpected("name messages by a filter, or say \"all\":true, and not both; nothing was begun");
    }
    let work = match (body.action, body.canary) {
        (BulkAction::Requeue, canary) => Work::Requeue { canary: canary.then_some(Canary::DEFAULT) },
        (BulkAction::Discard, false) => Work::Discard,
        (BulkAction::Discard, true) => {
            return unexpected("a canary is for a requeue; a discard sends nothing; nothing was begun");
        }
    };
    if work == Work::Discard && body.reason.is_none() {
        return unexpected("say why these messages need no more attention, as \"reason\"; nothing was begun");
    }
    let filter = filter(body.filter)?;
    Ok(Bulk {
        store: api.store.clone(),
        policies: api.policies().await?,
        work,
        filter,
        actor: caller.name.clone(),
        reason: body.reason.map(|reason| reason.0),
    })
}

fn filter(body: BulkFilter) -> Result<LetterFilter, Problem> {
    let standing = match (body.discarded, body.replaced) {
        (false, false) => Standing::Open,
        (true, false) => Standing::Discarded,
        (false, true) => Standing::Replaced,
        (true, true) => {
            let detail = "a message is discarded or replaced, not both; leave one of them out of the filter";
            return Err(Problem::new(Code::BodyUnexpected, detail));
        }
    };
    Ok(LetterFilter {
        state: LetterState::Dead,
        standing,
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
