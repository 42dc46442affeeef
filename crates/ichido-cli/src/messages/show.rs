//! Shows one message: its state, its history and its request.

use ichido_server::serve::views::{Event, Holder, Message, ResultResponse};
use uuid::Uuid;

use crate::api_client::{ApiClient, List, format};
use crate::exit::Exit;
use crate::out;

pub(super) async fn show(api: &ApiClient, id: Uuid) -> Result<(), Exit> {
    let answer = api.get(&format!("/v1/messages/{id}")).await?;
    api.print(&answer, |message| render_in_full(message).trim_end().to_owned())
}

pub(super) async fn events(api: &ApiClient, id: Uuid) -> Result<(), Exit> {
    let head = [
        "AT", "STATE", "EVENT", "ATTEMPTS", "EFFECT", "STATUS", "RECEIPT", "KEY", "TRACE ID", "BY", "REASON",
    ];
    let row = |event: Event| {
        [
            event.at.clone(),
            format::transition(&event),
            event.kind,
            event.attempts.to_string(),
            format_effect(&event.effect),
            event.status.map(|status| status.to_string()).unwrap_or_default(),
            event.receipt.unwrap_or_default(),
            event.idempotency_key,
            event.trace_id.unwrap_or_default(),
            event.actor.unwrap_or_default(),
            format::error(event.error_code.as_deref(), event.error_text.as_deref()),
        ]
    };
    api.list(List::new(&format!("/v1/messages/{id}/events"), "events", head), row).await.map(drop)
}

/// Prints the request's bytes unchanged and nothing else, fit for a file.
pub(super) async fn request(api: &ApiClient, id: Uuid) -> Result<(), Exit> {
    let answer = api.get(&format!("/v1/messages/{id}/request")).await?;
    out::print_bytes(&answer.body)
}

fn render_in_full(Message { facts, held_by, result, hops }: Message) -> String {
    let result = result.as_ref();
    format::fields([
        ("id", Some(facts.id.to_string())),
        ("state", Some(facts.status)),
        ("queue", Some(facts.queue)),
        ("identity", Some(facts.identity)),
        ("key", Some(facts.idempotency_key)),
        ("item", facts.item),
        ("effect", Some(format_effect(&facts.effect))),
        ("held by", held_by.map(format_holder)),
        ("attempts", Some(format!("{} of {}", facts.attempts, facts.max_attempts))),
        ("next attempt", facts.next_attempt_at),
        ("error", format::last_error_in_full(facts.last_error.as_ref())),
        ("sent at", result.map(|result| result.at.clone())),
        ("status", result.and_then(|result| Some(result.status?.to_string()))),
        ("receipt", result.and_then(|result| result.receipt.clone())),
        ("result", result.and_then(|result| result.result_digest.clone())),
        ("response", result.and_then(|result| result.response.as_ref()).map(format_response)),
        ("priority", Some(facts.priority.to_string())),
        ("request", Some(format!("{} bytes, {}", facts.request_bytes, facts.content_type))),
        ("digest", Some(facts.request_digest)),
        ("hops", hops),
        ("trace", facts.trace),
        ("trace id", facts.trace_id),
        ("replaces", facts.replacement_of.map(|old| old.to_string())),
        ("created", Some(facts.created_at)),
        ("updated", Some(facts.updated_at)),
    ])
}

/// Formats a receiver's response: whole, or why it is not there.
fn format_response(response: &ResultResponse) -> String {
    let ResultResponse { content_type, bytes, has_more, kept, body, body_base64 } = response;
    match (body, body_base64) {
        (Some(body), _) => body.get().to_owned(),
        (None, Some(_)) => format!("{bytes} bytes, {content_type}; --json shows them in base64"),
        (None, None) if *kept => format!("{bytes} bytes, {content_type}"),
        (None, None) if *has_more => {
            format!(
                "more than {bytes} bytes, {content_type}; not kept: larger than the destination's max_response_bytes"
            )
        }
        (None, None) => {
            format!("{bytes} bytes, {content_type}; not kept: larger than the queue's keep_response")
        }
    }
}

/// Formats who holds a message, and when it is rescued if nothing is heard of the node.
fn format_holder(Holder { node, name, lease_until, alive_until }: Holder) -> String {
    match (name, alive_until) {
        (Some(name), Some(alive_until)) => {
            format!("{name} ({node}) until {lease_until}, or {alive_until} without a heartbeat")
        }
        _ => format!("{node} until {lease_until}"),
    }
}

/// Formats an effect such as `not_done` for people.
pub(super) fn format_effect(effect: &str) -> String {
    if effect == "in_flight" { "in flight: not known yet".to_owned() } else { effect.replace('_', " ") }
}
