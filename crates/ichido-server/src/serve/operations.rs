//! Bulk operations on dead and parked messages: preview, start, watch and stop.
//!
//! Guarantee: an operation touches only messages that its preview would count, and judges each at the moment it is moved. The
//! audit trail records who started it, with which filter, and how it ended; the API shows these records.

// Spec: D17, E4.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

mod begin;
mod view;

use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use ichido::dead_letters::limits::LEASE;
use ichido::dead_letters::{StopRequest, request_stop};
use ichido_store::error::StoreError;
use uuid::Uuid;

use super::api::ApiState;
use super::bulk_history;
use super::bulk_runner::{BulkStartError, QueueBusy};
use super::json_body::JsonBody;
use super::problem::{Code, Problem};
use super::queues::check_known;
use super::request::{AuthorizedRequest, Operator, Segment, Viewer};
use super::response::json;
use super::text;
use crate::limits::MAX_OPERATIONS;
pub(super) use begin::constraints;
use begin::{Begin, member, plan};
use view::Operations;
pub use view::{
    CanaryResult, NotMoved, Operation, OperationFilter, OperationProgress, OperationResult, OperationStart,
    Preview, RefusedLetters, StartedOperation,
};

/// The largest number that every JSON parser reads exactly.
const MAX_CONFIRMED: u64 = 9_007_199_254_740_991;

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
        (status = 409, description = "Too many operations run, one works on the same queue, or more messages match than were confirmed"),
    )
)]
pub(super) async fn start_bulk_operation(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    JsonBody(body): JsonBody<Begin>,
) -> Result<Response, Problem> {
    let (is_preview, confirmed) = (body.preview, body.confirmed);
    if confirmed.is_some_and(|confirmed| MAX_CONFIRMED < confirmed) {
        let detail = format!("more than {MAX_CONFIRMED}; send `eligible` of the preview");
        return Err(Problem::new(Code::ParameterInvalid, detail).about("confirmed"));
    }
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
    if is_preview || found.moves_nothing() {
        return Ok(json(StatusCode::OK, &StartedOperation { preview, operation: None }));
    }
    if let Some(confirmed) = confirmed.filter(|_| found.has_more) {
        let detail = format!(
            "more than {} messages match, and no more are counted, so they cannot be compared with the {confirmed} that were confirmed; nothing \
             was started; narrow the filter, or leave out `confirmed` to move all that match",
            found.matched
        );
        return Err(Problem::new(Code::OperationRefused, detail));
    }
    if let Some(confirmed) = confirmed.filter(|confirmed| *confirmed < found.eligible) {
        let detail = format!(
            "{} messages match by now, more than the {confirmed} that were confirmed; nothing was started; look at the preview again",
            found.eligible
        );
        return Err(Problem::new(Code::OperationRefused, detail));
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
