//! One message: as it stands, what happened to it, and what was asked.

use std::fmt::Write as _;

use ichido_core::text::table;
use ichido_core::text::visible;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::exit::Exit;
use crate::out;
use crate::reach::shown::{self, Event, LastError};
use crate::reach::{self, Reach};

/// A message as the API shows it, in a list or alone.
#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) id: Uuid,
    pub(super) queue: String,
    pub(super) identity: String,
    pub(super) idempotency_key: String,
    content_type: String,
    request_bytes: u64,
    request_digest: String,
    pub(super) status: String,
    pub(super) effect: String,
    pub(super) tries: u32,
    pub(super) tries_allowed: u32,
    next_attempt_at: Option<String>,
    last_error: Option<LastError>,
    /// Not in lists.
    result: Option<Outcome>,
    priority: u8,
    /// Not in lists.
    hops: Option<String>,
    trace: Option<String>,
    made_from: Option<Uuid>,
    pub(super) created_at: String,
    updated_at: String,
}

#[derive(Deserialize)]
struct Outcome {
    at: String,
    status: Option<u16>,
    receipt: Option<String>,
    result_digest: Option<String>,
}

#[derive(Deserialize)]
struct Events {
    events: Vec<Value>,
}

pub(super) async fn show(reach: &Reach, id: Uuid) -> Result<(), Exit> {
    let answer = reach.get(&format!("/v1/messages/{id}")).await?;
    if reach.json {
        out::line(reach::read::<Value>(&answer)?)
    } else {
        out::say(&whole(&reach::read(&answer)?))
    }
}

pub(super) async fn events(reach: &Reach, id: Uuid) -> Result<(), Exit> {
    let Events { events } = reach::read(&reach.get(&format!("/v1/messages/{id}/events")).await?)?;
    if reach.json {
        return events.into_iter().try_for_each(out::line);
    }
    let mut rows = Vec::new();
    for event in events {
        let event: Event = reach::shape(event)?;
        rows.push([
            event.at,
            format!("{} → {}", event.from, event.to),
            event.kind,
            event.tries.to_string(),
            words(&event.effect),
            event.status.map(|status| status.to_string()).unwrap_or_default(),
            event.receipt.unwrap_or_default(),
            event.actor.unwrap_or_default(),
            shown::error(event.error_code.as_deref(), event.error_text.as_deref()),
        ]);
    }
    let head = ["AT", "STEP", "WHAT", "TRIES", "EFFECT", "STATUS", "RECEIPT", "WHO", "WHY"];
    out::say(&table(head, rows.into_iter()))
}

/// The bytes as they were put in, and nothing else: they are the caller's, and a file takes them as they are.
pub(super) async fn request(reach: &Reach, id: Uuid) -> Result<(), Exit> {
    let answer = reach.get(&format!("/v1/messages/{id}/request")).await?;
    let written = out::write(&answer.body);
    written.map_err(|error| Exit::Failed(format!("standard output cannot be written: {error}")))
}

fn whole(message: &Message) -> String {
    let mut out = String::new();
    let mut say = |name: &str, text: &str| {
        // A string takes all that is written to it.
        _ = writeln!(out, "{name:<12} {}", visible(text));
    };
    say("id", &message.id.to_string());
    say("state", &message.status);
    say("queue", &message.queue);
    say("identity", &message.identity);
    say("key", &message.idempotency_key);
    say("effect", &words(&message.effect));
    say("tries", &format!("{} of {}", message.tries, message.tries_allowed));
    if let Some(next) = &message.next_attempt_at {
        say("next try", next);
    }
    if let Some(error) = &message.last_error {
        say("error", &error.in_full());
    }
    if let Some(result) = &message.result {
        say("sent at", &result.at);
        if let Some(status) = result.status {
            say("answer", &status.to_string());
        }
        if let Some(receipt) = &result.receipt {
            say("receipt", receipt);
        }
        if let Some(digest) = &result.result_digest {
            say("result", digest);
        }
    }
    say("priority", &message.priority.to_string());
    say("request", &format!("{} bytes, {}", message.request_bytes, message.content_type));
    say("digest", &message.request_digest);
    if let Some(hops) = &message.hops {
        say("hops", hops);
    }
    if let Some(trace) = &message.trace {
        say("trace", trace);
    }
    if let Some(old) = message.made_from {
        say("made from", &old.to_string());
    }
    say("created", &message.created_at);
    say("updated", &message.updated_at);
    out
}

/// `not_done`, as people write it.
pub(super) fn words(effect: &str) -> String {
    effect.replace('_', " ")
}

pub(super) fn error(message: &Message) -> String {
    message.last_error.as_ref().map(LastError::cut).unwrap_or_default()
}
