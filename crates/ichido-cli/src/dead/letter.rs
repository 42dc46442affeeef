//! Formats letters, for people and as JSON.

use ichido_core::text::table::{Column, View};
use ichido_core::text::visible;
use ichido_server::serve::views::{Event, Letter, MessageFacts};
use serde_json::{Map, Value};

use crate::api_client::format::{self, error, last_error};
use crate::out;

/// The columns of a list.
pub(super) const HEAD: [Column; 10] = [
    Column::past("SINCE"),
    Column::past("CREATED").spare(),
    Column::id("ID"),
    Column::text("QUEUE"),
    Column::free("IDENTITY").spare(),
    Column::free("ITEM"),
    Column::free("KEY"),
    Column::text("ATTEMPTS").spare(),
    Column::text("EFFECT"),
    Column::free("ERROR"),
];

/// Members of a letter that a list leaves out or renames.
const NOT_LISTED: [&str; 6] =
    ["idempotency_key", "last_error", "outbound_key", "requeue_refused", "discard_refused", "href"];
/// Members of an event that the history leaves out or renames.
const NOT_SHOWN: [&str; 5] = ["error_code", "error_text", "result_digest", "fence", "node"];

pub(super) fn row(letter: Letter) -> [String; 10] {
    // The API names a letter that has no item by its key, which has a column of its own.
    let is_key = letter.item == letter.idempotency_key;
    [
        letter.since,
        letter.created_at,
        letter.id.to_string(),
        letter.queue,
        letter.identity,
        if is_key { String::new() } else { letter.item },
        letter.idempotency_key,
        format!("{}/{}", letter.attempts, letter.max_attempts),
        format::effect(&letter.effect),
        last_error(letter.last_error.as_ref()).unwrap_or_default(),
    ]
}

/// Formats a letter in full, for people.
pub(super) fn render_in_full(
    letter: Letter,
    outbound_key: String,
    message: &MessageFacts,
    events: &[Event],
) -> String {
    let steps = next_steps(&letter);
    let state = match letter.disposition.as_str() {
        "open" => letter.state,
        closed => format!("{}, {closed}", letter.state),
    };
    let travels = |until| format!("until {until}; not-done is refused until then");
    let replaced = events.iter().rev().find(|event| event.kind == "replaced");
    let view = out::view();
    let now = view.fields([
        (Column::state("state"), Some(state)),
        (Column::text("effect"), Some(format::effect(&letter.effect))),
        (Column::text("in transit"), letter.in_flight_until.map(travels)),
        (Column::text("error"), letter.last_error.as_ref().map(format::explained)),
        (Column::text("attempts"), Some(format!("{} of {}", letter.attempts, letter.max_attempts))),
        (Column::past("since"), Some(letter.since)),
    ]);
    let rest = view.fields([
        (Column::text("id"), Some(letter.id.to_string())),
        (Column::text("queue"), Some(letter.queue)),
        (Column::text("identity"), Some(letter.identity)),
        (Column::text("item"), Some(letter.item)),
        (Column::text("key"), Some(letter.idempotency_key)),
        (Column::text("sent as"), Some(outbound_key)),
        (Column::past("created"), Some(letter.created_at)),
        (Column::text("request"), Some(format!("{} bytes, {}", letter.request_bytes, message.content_type))),
        (Column::text("replaces"), letter.replacement_of.map(|old| old.to_string())),
        (Column::text("replaced by"), replaced.and_then(|event| event.receipt.clone())),
    ]);
    format!("{now}\n{rest}\n{}{steps}", history(&view, events))
}

/// Names the commands that settle an open letter.
fn next_steps(letter: &Letter) -> String {
    if letter.disposition != "open" {
        return String::new();
    }
    let (id, is_parked, is_unknown) = (letter.id, letter.state == "parked", letter.effect == "unknown");
    let after_not_done =
        if is_parked { "it did not; send it again" } else { "it did not; it may be requeued" };
    let decisions =
        [("done", "it did"), ("not-done", after_not_done), ("give-up", "nobody can tell; it becomes dead")];
    let mut lines = Vec::new();
    if is_unknown {
        lines.push("Find out whether it took effect: look for the key of `sent as` at the receiver. Then run one of:".to_owned());
        let decide = |(decision, meaning)| format!("  ichido dead decide {decision} {id}  # {meaning}");
        // A dead letter cannot become dead.
        lines.extend(decisions.into_iter().take(if is_parked { 3 } else { 2 }).map(decide));
    }
    match &letter.requeue_refused {
        None => lines.push(format!("To send it again, run:\n  ichido dead requeue {id}")),
        Some(_) if is_parked => lines.push(format!(
            "If a second call does no harm, set `guarantee = \"idempotent\"` for its destination, restart, and run:\n  \
             ichido dead requeue --parked --queue {}",
            letter.queue
        )),
        Some(_) if is_unknown => (),
        Some(why) => lines.push(format!("It cannot be requeued: {}", visible(why))),
    }
    format!("\n{}\n", lines.join("\n"))
}

fn history(view: &View, events: &[Event]) -> String {
    let rows = events.iter().map(|event| {
        [
            event.at.clone(),
            format::transition(event),
            event.kind.clone(),
            event.actor.clone().unwrap_or_default(),
            error(event.error_code.as_deref(), event.error_text.as_deref()),
        ]
    });
    let columns = [
        // Exact, because the order and the gaps tell what happened.
        Column::text("AT"),
        Column::text("STATE"),
        Column::text("EVENT"),
        Column::text("BY"),
        Column::free("REASON"),
    ];
    view.table(columns, rows)
}

/// Formats a letter of a list as JSON.
pub(super) fn to_json(letter: Map<String, Value>) -> Value {
    let error = letter.get("last_error").cloned().unwrap_or_default();
    let added = [
        ("key", letter.get("idempotency_key").cloned()),
        ("error", error.get("code").cloned()),
        ("error_text", error.get("text").cloned()),
    ];
    renamed(letter, &NOT_LISTED, added)
}

/// Formats a letter in full as JSON.
pub(super) fn to_json_in_full(
    letter: Map<String, Value>,
    message: MessageFacts,
    events: Vec<Map<String, Value>>,
) -> Value {
    let outbound_key = letter.get("outbound_key").cloned().unwrap_or_default();
    let event = |event: Map<String, Value>| {
        let added = [("error", event.get("error_code").cloned()), ("text", event.get("error_text").cloned())];
        renamed(event, &NOT_SHOWN, added)
    };
    let mut all = to_json(letter);
    all["outbound_key"] = outbound_key;
    all["content_type"] = message.content_type.into();
    all["request_digest"] = message.request_digest.into();
    all["trace"] = message.trace.into();
    all["history"] = events.into_iter().map(event).collect();
    all
}

/// Replaces some members of an object.
fn renamed<const N: usize>(
    mut object: Map<String, Value>,
    without: &[&str],
    with: [(&str, Option<Value>); N],
) -> Value {
    object.retain(|name, _| !without.contains(&name.as_str()));
    object.extend(with.map(|(name, value)| (name.to_owned(), value.unwrap_or_default())));
    object.into()
}
