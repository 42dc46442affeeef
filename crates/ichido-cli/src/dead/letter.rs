//! A letter as the API shows it, and as it is told to people and to programs.

use std::fmt::Write as _;

use ichido_core::text::table;
use ichido_core::text::visible;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::reach::shown::{Event, LastError, error};

#[derive(Deserialize)]
pub(super) struct Letter {
    pub(super) id: Uuid,
    state: String,
    standing: String,
    pub(super) queue: String,
    identity: String,
    pub(super) idempotency_key: String,
    pub(super) sent_as: Option<String>,
    pub(super) effect: String,
    last_error: Option<LastError>,
    tries: u32,
    tries_allowed: u32,
    created_at: String,
    since: String,
    travels_until: Option<String>,
    made_from: Option<Uuid>,
    request_bytes: u64,
    pub(super) requeue_refused: Option<String>,
    pub(super) discard_refused: Option<String>,
    cursor: String,
}

/// What a message has that a letter has not.
#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) content_type: String,
    request_digest: String,
    trace: Option<String>,
}

/// The columns of a list.
pub(super) const HEAD: [&str; 8] =
    ["SINCE", "CREATED", "ID", "QUEUE", "IDENTITY", "TRIES", "EFFECT", "ERROR"];

impl Letter {
    pub(super) fn row(self) -> [String; 8] {
        let error = self.last_error.as_ref().map(LastError::cut).unwrap_or_default();
        let tries = format!("{}/{}", self.tries, self.tries_allowed);
        let effect = self.effect.replace('_', " ");
        [self.since, self.created_at, self.id.to_string(), self.queue, self.identity, tries, effect, error]
    }

    pub(super) fn as_json(&self) -> Value {
        json!({
            "id": self.id.to_string(),
            "state": self.state,
            "standing": self.standing,
            "queue": self.queue,
            "identity": self.identity,
            "key": self.idempotency_key,
            "effect": self.effect,
            "error": self.last_error.as_ref().map(|last| &last.code),
            "error_text": self.last_error.as_ref().and_then(|last| last.text.as_ref()),
            "tries": self.tries,
            "tries_allowed": self.tries_allowed,
            "created_at": self.created_at,
            "since": self.since,
            "travels_until": self.travels_until,
            "made_from": self.made_from.map(|id| id.to_string()),
            "request_bytes": self.request_bytes,
            "cursor": self.cursor,
        })
    }

    /// All of it, for programs.
    pub(super) fn whole_json(&self, message: &Message, events: &[Event]) -> Value {
        let mut all = self.as_json();
        all["sent_as"] = json!(self.sent_as);
        all["content_type"] = json!(message.content_type);
        all["request_digest"] = json!(message.request_digest);
        all["trace"] = json!(message.trace);
        all["history"] = events.iter().map(Event::as_json).collect();
        all
    }

    /// All of it, for people.
    pub(super) fn whole(&self, sent_as: &str, message: &Message, events: &[Event]) -> String {
        let mut out = String::new();
        let mut say = |name: &str, text: &str| {
            // A string takes all that is written to it.
            _ = writeln!(out, "{name:<12} {}", visible(text));
        };
        let standing = match self.standing.as_str() {
            "open" => String::new(),
            closed => format!(", {closed}"),
        };
        say("id", &self.id.to_string());
        say("state", &format!("{}{standing}", self.state));
        say("queue", &self.queue);
        say("identity", &self.identity);
        say("key", &self.idempotency_key);
        say("sent as", sent_as);
        say("effect", &self.effect.replace('_', " "));
        say("tries", &format!("{} of {}", self.tries, self.tries_allowed));
        say("error", &self.last_error.as_ref().map(LastError::in_full).unwrap_or_default());
        say("created", &self.created_at);
        say("since", &self.since);
        if let Some(until) = &self.travels_until {
            say("travels", &format!("until {until}; that it was not done counts only after it"));
        }
        say("request", &format!("{} bytes, {}", self.request_bytes, message.content_type));
        if let Some(old) = self.made_from {
            say("made from", &old.to_string());
        }
        let replaced = events.iter().rev().find(|event| event.kind == "replaced");
        if let Some(new) = replaced.and_then(|event| event.receipt.as_ref()) {
            say("replaced by", new);
        }
        out.push('\n');
        out += &history(events);
        out
    }
}

fn history(events: &[Event]) -> String {
    let rows = events.iter().map(|event| {
        [
            event.at.clone(),
            format!("{} → {}", event.from, event.to),
            event.kind.clone(),
            event.actor.clone().unwrap_or_default(),
            error(event.error_code.as_deref(), event.error_text.as_deref()),
        ]
    });
    table(["AT", "STEP", "WHAT", "WHO", "WHY"], rows)
}

impl Event {
    fn as_json(&self) -> Value {
        json!({
            "at": self.at,
            "from": self.from,
            "to": self.to,
            "kind": self.kind,
            "tries": self.tries,
            "effect": self.effect,
            "error": self.error_code,
            "text": self.error_text,
            "status": self.status,
            "receipt": self.receipt,
            "actor": self.actor,
        })
    }
}
