//! Shows one message: its state, its history and its request.

use ichido_core::lifecycle::StateName;
use ichido_core::settings::duration;
use ichido_core::text::table::{Column, View};
use ichido_server::serve::views::{Attempt, Event, Holder, Message, MessageFacts, ResultResponse};
use serde_json::Value;
use uuid::Uuid;

use crate::api_client::{ApiClient, List, decode, format};
use crate::exit::Exit;
use crate::out;

pub(super) async fn show(api: &ApiClient, id: Uuid) -> Result<(), Exit> {
    let answer = api.get(&format!("/v1/messages/{id}")).await?;
    if api.json {
        return out::print_line(decode::<Value>(&answer)?);
    }
    let events: Vec<Event> = api.items(&format!("/v1/messages/{id}/events"), "events").await?;
    out::print(&render_in_full(decode(&answer)?, &events))
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

/// Formats a message: first what an operator looks for, then the rest, then its attempts.
fn render_in_full(
    Message { facts, held_by, replaced_by, cancel_requested, result, hops, replays }: Message,
    events: &[Event],
) -> String {
    let (view, result) = (out::view(), result.as_ref());
    let error = error(&facts, events);
    let is_letter = [StateName::Dead, StateName::Parked].map(StateName::as_str).contains(&&*facts.status);
    let now = view.fields([
        (Column::state("state"), Some(facts.status)),
        (Column::text("effect"), Some(format::effect(&facts.effect))),
        (Column::text("held by"), held_by.map(format_holder)),
        (Column::past("cancel requested"), cancel_requested.map(|request| request.at)),
        (Column::next("next attempt"), facts.next_attempt_at),
        error,
        (Column::text("attempts"), Some(format!("{} of {}", facts.attempts, facts.max_attempts))),
        (
            Column::text("more"),
            is_letter.then(|| {
                format!("ichido dead show {} (what to do, and the key that the receiver got)", facts.id)
            }),
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
        (Column::text("sent again"), replays.map(|replays| format!("{}×", replays.count))),
        (Column::text("priority"), Some(facts.priority.to_string())),
        (Column::text("request"), Some(format!("{} bytes, {}", facts.request_bytes, facts.content_type))),
        (Column::text("digest"), Some(facts.request_digest)),
        (Column::text("hops"), hops),
        (Column::text("trace"), facts.trace),
        (Column::text("trace id"), facts.trace_id),
        (Column::text("replaces"), facts.replacement_of.map(|old| old.to_string())),
        (Column::text("replaced by"), replaced_by),
    ]);
    format!("{now}\n{rest}{}", attempts(&view, events))
}

/// Formats the last error, and says so if a later attempt or a person has settled it.
fn error(facts: &MessageFacts, events: &[Event]) -> (Column, Option<String>) {
    let text = facts.last_error.as_ref().map(format::explained);
    let failed = events.iter().rfind(|event| event.error_code.is_some());
    match (&*facts.status, failed) {
        ("failed" | "dead" | "parked", _) | (_, None) => (Column::text("error"), text),
        // The receiver had done it before: not an error.
        ("sent", Some(event)) if event.to == "sent" => (Column::text("note"), text),
        (status, Some(event)) => {
            let before = if status == "sent" { ", before it was sent" } else { "" };
            let attempt = match (event.attempts, facts.attempts) {
                (failed, all) if failed < all => format!("{failed} of {all}"),
                // A requeue has set the count back.
                (failed, _) => failed.to_string(),
            };
            (Column::text("last error"), text.map(|text| format!("{text} (attempt {attempt}{before})")))
        }
    }
}

/// Formats the attempts, oldest first; nothing if there was none.
fn attempts(view: &View, events: &[Event]) -> String {
    let attempts = Attempt::list(events);
    let head = [
        Column::text("ATTEMPT"),
        Column::past("STARTED"),
        Column::text("TOOK"),
        Column::id("NODE").spare(),
        Column::state("OUTCOME"),
        Column::text("STATUS").spare(),
        Column::free("ERROR"),
    ];
    if attempts.is_empty() {
        return String::new();
    }
    let rows = attempts.into_iter().map(|attempt| {
        [
            attempt.number.to_string(),
            attempt.started_at,
            attempt.took.map(duration::format).unwrap_or_default(),
            attempt.node.map(|node| node.to_string()).unwrap_or_default(),
            attempt.outcome,
            attempt.status.map(|status| status.to_string()).unwrap_or_default(),
            format::last_error(attempt.error.as_ref()).unwrap_or_default(),
        ]
    });
    format!("\n{}", view.table(head, rows))
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
