//! A letter as the API shows it, and as it is told to people and to programs.

use ichido_core::text::table;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::reach::shown::{self, Event, LastError, error};

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

/// What of a letter is not for lists, or has a name of its own there.
const NOT_LISTED: [&str; 6] =
    ["idempotency_key", "last_error", "sent_as", "requeue_refused", "discard_refused", "href"];
/// The same of an event.
const NOT_TOLD: [&str; 5] = ["error_code", "error_text", "result_digest", "fence", "node"];

impl Letter {
    pub(super) fn row(self) -> [String; 8] {
        let error = self.last_error.as_ref().map(LastError::cut).unwrap_or_default();
        let tries = format!("{}/{}", self.tries, self.tries_allowed);
        let effect = self.effect.replace('_', " ");
        [self.since, self.created_at, self.id.to_string(), self.queue, self.identity, tries, effect, error]
    }

    /// All of it, for people.
    pub(super) fn whole(self, sent_as: String, message: &Message, events: &[Event]) -> String {
        let state = match self.standing.as_str() {
            "open" => self.state,
            closed => format!("{}, {closed}", self.state),
        };
        let error = self.last_error.as_ref().map(LastError::in_full).unwrap_or_default();
        let travels = |until| format!("until {until}; that it was not done counts only after it");
        let replaced = events.iter().rev().find(|event| event.kind == "replaced");
        let all = shown::fields([
            ("id", Some(self.id.to_string())),
            ("state", Some(state)),
            ("queue", Some(self.queue)),
            ("identity", Some(self.identity)),
            ("key", Some(self.idempotency_key)),
            ("sent as", Some(sent_as)),
            ("effect", Some(self.effect.replace('_', " "))),
            ("tries", Some(format!("{} of {}", self.tries, self.tries_allowed))),
            ("error", Some(error)),
            ("created", Some(self.created_at)),
            ("since", Some(self.since)),
            ("travels", self.travels_until.map(travels)),
            ("request", Some(format!("{} bytes, {}", self.request_bytes, message.content_type))),
            ("made from", self.made_from.map(|old| old.to_string())),
            ("replaced by", replaced.and_then(|event| event.receipt.clone())),
        ]);
        format!("{all}\n{}", history(events))
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

/// A letter of a list, for programs.
pub(super) fn for_programs(letter: Map<String, Value>) -> Value {
    let error = letter.get("last_error").cloned().unwrap_or_default();
    let told = [
        ("key", letter.get("idempotency_key").cloned()),
        ("error", error.get("code").cloned()),
        ("error_text", error.get("text").cloned()),
    ];
    renamed(letter, &NOT_LISTED, told)
}

/// All of a letter, for programs.
pub(super) fn whole_for_programs(
    letter: Map<String, Value>,
    message: Message,
    events: Vec<Map<String, Value>>,
) -> Value {
    let sent_as = letter.get("sent_as").cloned().unwrap_or_default();
    let event = |event: Map<String, Value>| {
        let told = [("error", event.get("error_code").cloned()), ("text", event.get("error_text").cloned())];
        renamed(event, &NOT_TOLD, told)
    };
    let mut all = for_programs(letter);
    all["sent_as"] = sent_as;
    all["content_type"] = message.content_type.into();
    all["request_digest"] = message.request_digest.into();
    all["trace"] = message.trace.into();
    all["history"] = events.into_iter().map(event).collect();
    all
}

/// An object without some members, and with others in their place.
fn renamed<const N: usize>(
    mut object: Map<String, Value>,
    without: &[&str],
    with: [(&str, Option<Value>); N],
) -> Value {
    object.retain(|name, _| !without.contains(&name.as_str()));
    object.extend(with.map(|(name, value)| (name.to_owned(), value.unwrap_or_default())));
    object.into()
}
