//! One message: as it stands, what happened to it, and what was asked.

use serde::Deserialize;
use uuid::Uuid;

use crate::exit::Exit;
use crate::out;
use crate::reach::shown::{self, Event, LastError};
use crate::reach::{List, Reach};

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

#[derive(Default, Deserialize)]
struct Outcome {
    at: Option<String>,
    status: Option<u16>,
    receipt: Option<String>,
    result_digest: Option<String>,
}

pub(super) async fn show(reach: &Reach, id: Uuid) -> Result<(), Exit> {
    let answer = reach.get(&format!("/v1/messages/{id}")).await?;
    reach.say(&answer, |message| whole(message).trim_end().to_owned())
}

pub(super) async fn events(reach: &Reach, id: Uuid) -> Result<(), Exit> {
    let head = ["AT", "STEP", "WHAT", "TRIES", "EFFECT", "STATUS", "RECEIPT", "WHO", "WHY"];
    let row = |event: Event| {
        [
            event.at,
            format!("{} → {}", event.from, event.to),
            event.kind,
            event.tries.to_string(),
            words(&event.effect),
            event.status.map(|status| status.to_string()).unwrap_or_default(),
            event.receipt.unwrap_or_default(),
            event.actor.unwrap_or_default(),
            shown::error(event.error_code.as_deref(), event.error_text.as_deref()),
        ]
    };
    reach.list(List::new(&format!("/v1/messages/{id}/events"), "events", head), row).await.map(drop)
}

/// The bytes as they were put in, and nothing else: they are the caller's, and a file takes them as they are.
pub(super) async fn request(reach: &Reach, id: Uuid) -> Result<(), Exit> {
    let answer = reach.get(&format!("/v1/messages/{id}/request")).await?;
    out::bytes(&answer.body)
}

fn whole(message: Message) -> String {
    let Outcome { at, status, receipt, result_digest } = message.result.unwrap_or_default();
    shown::fields([
        ("id", Some(message.id.to_string())),
        ("state", Some(message.status)),
        ("queue", Some(message.queue)),
        ("identity", Some(message.identity)),
        ("key", Some(message.idempotency_key)),
        ("effect", Some(words(&message.effect))),
        ("tries", Some(format!("{} of {}", message.tries, message.tries_allowed))),
        ("next try", message.next_attempt_at),
        ("error", message.last_error.map(|error| error.in_full())),
        ("sent at", at),
        ("answer", status.map(|status| status.to_string())),
        ("receipt", receipt),
        ("result", result_digest),
        ("priority", Some(message.priority.to_string())),
        ("request", Some(format!("{} bytes, {}", message.request_bytes, message.content_type))),
        ("digest", Some(message.request_digest)),
        ("hops", message.hops),
        ("trace", message.trace),
        ("made from", message.made_from.map(|old| old.to_string())),
        ("created", Some(message.created_at)),
        ("updated", Some(message.updated_at)),
    ])
}

/// `not_done`, as people write it.
pub(super) fn words(effect: &str) -> String {
    effect.replace('_', " ")
}

pub(super) fn error(message: &Message) -> String {
    message.last_error.as_ref().map(LastError::cut).unwrap_or_default()
}
