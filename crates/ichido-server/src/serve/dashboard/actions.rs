//! The forms: each sends one request to the API, and returns to the page.
//!
//! Guarantee: an action is the API's own, with its checks and its entry in the audit trail. A refused one changes nothing, and the page
//! says why.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{Method, StatusCode};
use ichido_store::message::QueueName;
use serde_json::{Map, Value};

use super::super::caller::unknown_queue;
use super::super::dead_letters::Letter;
use super::message::{Notice, PriorAction, page, parse_id};
use super::shell::{PageRefusal, Visitor};
use super::sign_in::read_form;
use super::texts::fill;
use super::{Dashboard, see_other};

/// Requeues a dead or parked message, or makes a failed one due.
pub(super) async fn requeue(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    act(&dashboard, &visitor, &id, "requeue", request).await
}

/// Cancels a message.
pub(super) async fn cancel(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    act(&dashboard, &visitor, &id, "cancel", request).await
}

/// Discards a dead message.
pub(super) async fn discard(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    act(&dashboard, &visitor, &id, "discard", request).await
}

/// Decides a message of unknown effect.
pub(super) async fn decide(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    act(&dashboard, &visitor, &id, "decide", request).await
}

async fn act(
    dashboard: &Dashboard,
    visitor: &Visitor,
    id: &str,
    action: &'static str,
    request: Request,
) -> Result<Response, PageRefusal> {
    let id = parse_id(id)?;
    let (head, body) = request.into_parts();
    let form = read_form(&head.headers, body).await?;
    let refused = async |status: u16, text: String| {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT);
        let prior = PriorAction::Refused(Notice { class: "refused", text });
        page(dashboard, visitor, id, (status, prior), None).await
    };
    if action == "discard" {
        if form.get("reason").unwrap_or_default().trim().is_empty() {
            return refused(422, visitor.t().reason_needed.to_owned()).await;
        }
        // The API allows to repeat a discard, and records only the first.
        let letter: Letter = dashboard.read(visitor.caller()?, &format!("/v1/dead-letters/{id}")).await?;
        if letter.disposition == "discarded" {
            return refused(409, visitor.t().discarded_before.to_owned()).await;
        }
    }
    // Only members that the API knows, and none that the form left empty.
    let members = ["decision", "reason"].into_iter().filter_map(|name| {
        let value = form.get(name).map(str::trim).filter(|value| !value.is_empty())?;
        Some((name.to_owned(), Value::from(value)))
    });
    let body = Value::Object(members.collect::<Map<String, Value>>()).to_string();
    let target = format!("/v1/messages/{id}/{action}");
    match dashboard.call(visitor.caller()?, Method::POST, &target, body).await {
        Ok(_) => Ok(see_other(&dashboard.base, &format!("/messages/{id}?did={action}"))),
        Err(refusal) if matches!(refusal.status, 400 | 409 | 422) => {
            let text = fill(visitor.t().not_done_notice, &[("why", &refusal.detail)]);
            refused(refusal.status, text).await
        }
        Err(refusal) => Err(refusal),
    }
}

/// Pauses a queue.
pub(super) async fn pause(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(queue): Path<String>,
) -> Result<Response, PageRefusal> {
    set_paused(&dashboard, &visitor, &queue, "pause").await
}

/// Resumes a queue.
pub(super) async fn resume(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(queue): Path<String>,
) -> Result<Response, PageRefusal> {
    set_paused(&dashboard, &visitor, &queue, "resume").await
}

async fn set_paused(
    dashboard: &Dashboard,
    visitor: &Visitor,
    queue: &str,
    action: &'static str,
) -> Result<Response, PageRefusal> {
    let queue = QueueName::parse(queue).ok_or_else(unknown_queue)?;
    let target = format!("/v1/queues/{}/{action}", queue.as_str());
    dashboard.call(visitor.caller()?, Method::POST, &target, String::new()).await?;
    Ok(see_other(&dashboard.base, &format!("/queues/{}?did={action}", queue.as_str())))
}
