//! Looking at letters: lists, and all of one.

use std::fmt::Write as _;

use ichido_core::key::IdempotencyKey;
use ichido_core::text::visible;
use ichido_core::verdict::Effect;
use ichido_store::letter::{LetterRow, Standing};
use ichido_store::message::{MessageRow, Transition};
use serde_json::{Value, json};
use uuid::Uuid;

use super::filter::Filter;
use super::settings::{Settings, failed};
use super::{bulks, cursor, parse_cursor};
use crate::exit::Exit;
use crate::out;
use crate::reach::shown::{error, error_in_full};
use crate::table::table;

pub(super) async fn list(
    settings: &Settings,
    filter: &Filter,
    limit: u32,
    after: Option<&str>,
) -> Result<(), Exit> {
    let after = after
        .map(|text| {
            let end = "is no end of a page; give what the page before said: MOMENT,ID";
            parse_cursor(text).ok_or_else(|| settings.wrong("--after", end))
        })
        .transpose()?;
    let store = settings.open().await?;
    let now = store.now().await.map_err(failed("the store cannot be read"))?;
    let filter =
        filter.read(now).map_err(|faults| Exit::Misconfigured { command: settings.command, faults })?;
    let page = store.letter_page(&filter, after, limit).await;
    let page = page.map_err(failed("the letters cannot be read"))?;
    let more = page.last().filter(|_| page.len() == limit as usize).map(|last| cursor((last.since, last.id)));
    if settings.json {
        for letter in &page {
            out::line(as_json(letter))?;
        }
        return Ok(());
    }
    if page.is_empty() {
        return out::line(format_args!("no {} letters fit", filter.state.as_str()));
    }
    let rows = page.iter().map(|letter| {
        [
            letter.since.to_string(),
            letter.created_at.to_string(),
            letter.id.to_string(),
            letter.queue.as_str().to_owned(),
            letter.identity.clone(),
            format!("{}/{}", letter.history.tries, letter.history.tries_allowed),
            effect(letter.effect).to_owned(),
            error(letter.code.as_deref(), letter.error.as_deref()),
        ]
    });
    let mut text = table(["SINCE", "CREATED", "ID", "QUEUE", "IDENTITY", "TRIES", "EFFECT", "ERROR"], rows);
    if let Some(more) = more {
        // A string takes all that is written to it.
        _ = writeln!(text, "there may be more: --after {more}");
    }
    out::say(&text)
}

pub(super) async fn show(settings: &Settings, id: Uuid, request: bool) -> Result<(), Exit> {
    let store = settings.open().await?;
    let cannot = failed("the letter cannot be read");
    let letter = store.letter_find(&[id]).await.map_err(&cannot)?.pop();
    let message = store.message_get(id).await.map_err(&cannot)?;
    let (Some(letter), Some(message)) = (letter, message) else { return Err(no_letter(id)) };
    if request {
        let written = out::write(&message.request);
        return written.map_err(|error| Exit::Failed(format!("standard output cannot be written: {error}")));
    }
    let steps = store.message_transitions(id).await.map_err(&cannot)?;
    let sent_as = settings.sent_as(&letter);
    if settings.json {
        let mut all = as_json(&letter);
        all["sent_as"] = json!(sent_as.as_ref().ok().map(IdempotencyKey::as_str));
        all["content_type"] = json!(message.content_type);
        all["request_digest"] = json!(message.request_digest.to_string());
        all["trace"] = json!(message.trace);
        all["history"] = steps.iter().map(step_json).collect();
        out::line(all)
    } else {
        out::say(&whole(&letter, &message, &steps, sent_as))
    }
}

pub(super) fn no_letter(id: Uuid) -> Exit {
    Exit::Failed(format!(
        "{id} is no dead or parked letter; `ichido dead list` lists those that are, perhaps with --parked or --discarded"
    ))
}

fn whole(
    letter: &LetterRow,
    message: &MessageRow,
    steps: &[Transition],
    sent_as: Result<IdempotencyKey, String>,
) -> String {
    let mut out = String::new();
    let standing = match letter.standing {
        Standing::Open => String::new(),
        closed => format!(", {}", closed.as_str()),
    };
    let mut say = |name: &str, text: String| {
        // A string takes all that is written to it.
        _ = writeln!(out, "{name:<12} {}", visible(&text));
    };
    say("id", letter.id.to_string());
    say("state", format!("{}{standing}", letter.state.as_str()));
    say("queue", letter.queue.as_str().to_owned());
    say("identity", letter.identity.clone());
    say("key", letter.key.as_str().to_owned());
    say("sent as", sent_as.map_or_else(|why| why, |key| key.as_str().to_owned()));
    say("effect", effect(letter.effect).to_owned());
    say("tries", format!("{} of {}", letter.history.tries, letter.history.tries_allowed));
    say("error", error_in_full(letter.code.as_deref(), letter.error.as_deref()));
    say("created", letter.created_at.to_string());
    say("since", letter.since.to_string());
    if let Some(doubt) = letter.history.doubt {
        say("travels", format!("until {}; that it was not done counts only after it", doubt.travels_until));
    }
    say("request", format!("{} bytes, {}", letter.request_bytes, message.content_type));
    if let Some(old) = letter.made_from {
        say("made from", old.to_string());
    }
    if let Some(new) = successor(steps) {
        say("replaced by", new.to_owned());
    }
    out.push('\n');
    let rows = steps.iter().map(|step| {
        [
            step.at.to_string(),
            format!("{} → {}", step.from, step.to),
            step.kind.clone(),
            step.actor.clone().unwrap_or_default(),
            error(step.code.as_deref(), step.excerpt.as_deref()),
        ]
    });
    out += &table(["AT", "STEP", "WHAT", "WHO", "WHY"], rows);
    out
}

/// The message that was made from it.
fn successor(steps: &[Transition]) -> Option<&str> {
    steps.iter().rev().find(|step| step.kind == "replaced")?.receipt.as_deref()
}

/// What was done to many letters, the last one first: each by its beginning and its last word.
pub(super) async fn bulks(settings: &Settings) -> Result<(), Exit> {
    const NAMES: [&str; 6] = ["BEGUN", "ID", "WHAT", "WHO", "STATE", "DETAIL"];
    let store = settings.open().await?;
    let told = bulks::bulks(&store).await.map_err(failed("the trail cannot be read"))?;
    let rows: Vec<[String; 6]> = told
        .into_iter()
        .map(|bulk| {
            [bulk.begun_at.to_string(), bulk.id.to_string(), bulk.kind, bulk.by, bulk.state, bulk.detail]
        })
        .collect();
    if settings.json {
        for row in rows {
            let members = NAMES.iter().map(|name| name.to_lowercase()).zip(row.map(Value::from));
            out::line(Value::Object(members.collect()))?;
        }
        Ok(())
    } else if rows.is_empty() {
        out::line("nothing was done to many letters at once")
    } else {
        out::say(&table(NAMES, rows.into_iter()))
    }
}

pub(super) const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::NotDone => "not done",
        Effect::Done => "done",
        Effect::Unknown => "unknown",
    }
}

fn as_json(letter: &LetterRow) -> Value {
    json!({
        "id": letter.id.to_string(),
        "state": letter.state.as_str(),
        "standing": letter.standing.as_str(),
        "queue": letter.queue.as_str(),
        "identity": letter.identity,
        "key": letter.key.as_str(),
        "effect": effect(letter.effect).replace(' ', "_"),
        "error": letter.code,
        "error_text": letter.error,
        "tries": letter.history.tries,
        "tries_allowed": letter.history.tries_allowed,
        "created_at": letter.created_at.to_string(),
        "since": letter.since.to_string(),
        "travels_until": letter.history.doubt.map(|doubt| doubt.travels_until.to_string()),
        "made_from": letter.made_from.map(|id| id.to_string()),
        "request_bytes": letter.request_bytes,
        "cursor": cursor((letter.since, letter.id)),
    })
}

fn step_json(step: &Transition) -> Value {
    json!({
        "at": step.at.to_string(),
        "from": step.from.as_str(),
        "to": step.to.as_str(),
        "kind": step.kind,
        "tries": step.tries,
        "effect": effect(step.effect).replace(' ', "_"),
        "error": step.code,
        "text": step.excerpt,
        "status": step.status,
        "receipt": step.receipt,
        "actor": step.actor,
    })
}
