//! Shows one message: its state, its history and its request.

use ichido_core::lifecycle::StateName;
use ichido_core::text::table::Column;
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
        // Exact, because the order and the gaps tell what happened.
        Column::text("AT"),
        Column::text("STATE"),
        Column::text("EVENT"),
        Column::text("ATTEMPTS").spare(),
        Column::text("EFFECT").spare(),
        Column::text("STATUS").spare(),
        Column::free("RECEIPT").spare(),
        Column::free("KEY").spare(),
        Column::text("TRACE ID").spare(),
        Column::free("BY"),
        Column::free("REASON"),
    ];
    let row = |event: Event| {
        [
            event.at.clone(),
            format::transition(&event),
            event.kind,
            event.attempts.to_string(),
            format::effect(&event.effect),
            event.status.map(|status| status.to_string()).unwrap_or_default(),
            event.receipt.unwrap_or_default(),
            event.idempotency_key,
            event.trace_id.unwrap_or_default(),
            event.actor.unwrap_or_default(),
            format::error(event.error_code.as_deref(), event.error_text.as_deref()),
        ]
    };
    api.list(List::new(&format!("/v1/messages/{id}/events"), "events", head), row).await
}

/// Prints the request's bytes unchanged and nothing else, fit for a file.
pub(super) async fn request(api: &ApiClient, id: Uuid) -> Result<(), Exit> {
    let answer = api.get(&format!("/v1/messages/{id}/request")).await?;
    out::print_bytes(&answer.body)
}

/// Formats a message: first what an operator looks for, then the rest.
fn render_in_full(
    Message { facts, held_by, replaced_by, cancel_requested, result, hops }: Message,
) -> String {
    let (view, result) = (out::view(), result.as_ref());
    let is_letter = [StateName::Dead, StateName::Parked].map(StateName::as_str).contains(&&*facts.status);
    let now = view.fields([
        (Column::state("state"), Some(facts.status)),
        (Column::text("effect"), Some(format::effect(&facts.effect))),
        (Column::text("held by"), held_by.map(format_holder)),
        (Column::past("cancel requested"), cancel_requested.map(|request| request.at)),
        (Column::next("next attempt"), facts.next_attempt_at),
        (Column::text("error"), format::last_error(facts.last_error.as_ref())),
        (Column::text("attempts"), Some(format!("{} of {}", facts.attempts, facts.max_attempts))),
        (
            Column::text("more"),
            is_letter.then(|| format!("ichido dead show {} (the key that the receiver got)", facts.id)),
        ),
        (Column::past("sent at"), result.map(|result| result.at.clone())),
        (Column::text("status"), result.and_then(|result| Some(result.status?.to_string()))),
        (Column::text("receipt"), result.and_then(|result| result.receipt.clone())),
        (Column::text("result"), result.and_then(|result| result.result_digest.clone())),
        (Column::text("response"), result.and_then(|result| result.response.as_ref()).map(format_response)),
    ]);
    let rest = view.fields([
        (Column::text("id"), Some(facts.id.to_string())),
        (Column::text("queue"), Some(facts.queue)),
        (Column::text("identity"), Some(facts.identity)),
        (Column::text("item"), facts.item),
        (Column::text("key"), Some(facts.idempotency_key)),
        (Column::past("created"), Some(facts.created_at)),
        (Column::past("updated"), Some(facts.updated_at)),
        (Column::text("priority"), Some(facts.priority.to_string())),
        (Column::text("request"), Some(format!("{} bytes, {}", facts.request_bytes, facts.content_type))),
        (Column::text("digest"), Some(facts.request_digest)),
        (Column::text("hops"), hops),
        (Column::text("trace"), facts.trace),
        (Column::text("trace id"), facts.trace_id),
        (Column::text("replaces"), facts.replacement_of.map(|old| old.to_string())),
        (Column::text("replaced by"), replaced_by),
    ]);
    format!("{now}\n{rest}")
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
            format!("{name} ({node}) until {lease_until}; if its heartbeats stop, until {alive_until}")
        }
        _ => format!("{node} until {lease_until}"),
    }
}
