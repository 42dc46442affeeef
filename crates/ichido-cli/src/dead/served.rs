//! The same at a running server: each command is what it is on the store, asked for over the API.
//!
//! Guarantee: nothing is decided here. The server judges each step by its own queues, and who acts is whom the token stands for.

mod many;

use std::fmt::Write as _;

use form_urlencoded::Serializer;
use ichido_core::key::IdempotencyKey;
use ichido_core::text::visible;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::bulk::Args as BulkArgs;
use super::filter::Filter;
use super::one::{self, Edit, Finding};
use super::{Command, once_each};
use crate::body_key;
use crate::exit::Exit;
use crate::faults::Faults;
use crate::out;
use crate::reach::shown::{Event, LastError, error};
use crate::reach::{self, Reach, Whom};
use crate::table::table;

/// What was done to each of those that are named, as a requeue and a discard say it.
pub(super) const REQUEUE: (&str, &str) = ("requeue", "requeued");
pub(super) const DISCARD: (&str, &str) = ("discard", "discarded");

/// A command at a server.
pub(super) struct Served {
    command: &'static str,
    reach: Reach,
}

/// A letter as the API shows it.
#[derive(Deserialize)]
struct Letter {
    id: Uuid,
    state: String,
    standing: String,
    queue: String,
    identity: String,
    idempotency_key: String,
    sent_as: Option<String>,
    effect: String,
    last_error: Option<LastError>,
    tries: u32,
    tries_allowed: u32,
    created_at: String,
    since: String,
    travels_until: Option<String>,
    made_from: Option<Uuid>,
    request_bytes: u64,
    requeue_refused: Option<String>,
    discard_refused: Option<String>,
    cursor: String,
}

#[derive(Deserialize)]
struct Page {
    letters: Vec<Letter>,
    next: Option<String>,
}

/// What a message has that a letter has not.
#[derive(Deserialize)]
struct Message {
    content_type: String,
    request_digest: String,
    trace: Option<String>,
}

/// A message that was made.
#[derive(Deserialize)]
struct New {
    id: Uuid,
}

#[derive(Deserialize)]
struct Events {
    events: Vec<Event>,
}

/// Does as it is told.
pub(super) async fn run(url: String, by: String, json: bool, command: Command) -> Result<(), Exit> {
    let name = command.name();
    let served = Served { command: name, reach: Reach::open(name, Whom::server(url, by, json)).await? };
    match command {
        Command::List { filter, limit, after } => served.list(&filter, limit, after).await,
        Command::Show { id, request } => served.show(id, request).await,
        Command::Requeue(args) => served.many(args, REQUEUE).await,
        Command::Discard(args) => served.many(args, DISCARD).await,
        Command::Edit { id, request, key, yes, reason } => {
            served.edit(id, Edit { request, key, yes, reason }).await
        }
        Command::Decide { finding, ids, reason } => served.decide(finding, &once_each(ids), reason).await,
        Command::Stop { operation } => served.stop(operation).await,
        Command::Bulks => served.bulks().await,
    }
}

impl Served {
    /// Nothing was tried, because what was asked makes no sense.
    fn wrong(&self, place: &str, what: impl Into<String>) -> Exit {
        let mut faults = Faults::default();
        faults.add(place, what);
        Exit::Misconfigured { command: self.command, faults }
    }

    async fn list(&self, filter: &Filter, limit: u32, after: Option<String>) -> Result<(), Exit> {
        /// The most letters of one page, as the API has it.
        const PAGE_MAX: u32 = 200;
        let query = filter.query().map_err(|faults| Exit::Misconfigured { command: self.command, faults })?;
        let (mut left, mut next, mut rows) = (limit, after, Vec::new());
        loop {
            let mut target = Serializer::new("/v1/letters?".to_owned());
            target.extend_pairs(&query).append_pair("limit", &left.min(PAGE_MAX).to_string());
            if let Some(cursor) = &next {
                target.append_pair("cursor", cursor);
            }
            let page: Page = reach::read(&self.reach.get(&target.finish()).await?)?;
            for letter in page.letters.into_iter().take(left as usize) {
                left -= 1;
                if self.reach.json {
                    out::line(letter.as_json())?;
                } else {
                    rows.push(letter.row());
                }
            }
            next = page.next;
            if left == 0 || next.is_none() {
                break;
            }
        }
        if self.reach.json {
            return Ok(());
        }
        if rows.is_empty() {
            let state = if filter.is_of_parked() { "parked" } else { "dead" };
            return out::line(format_args!("no {state} letters fit"));
        }
        let head = ["SINCE", "CREATED", "ID", "QUEUE", "IDENTITY", "TRIES", "EFFECT", "ERROR"];
        let mut text = table(head, rows.into_iter());
        if let Some(next) = next {
            // A string takes all that is written to it.
            _ = writeln!(text, "there may be more: --after {next}");
        }
        out::say(&text)
    }

    async fn letter(&self, id: Uuid) -> Result<Letter, Exit> {
        reach::read(&self.reach.get(&format!("/v1/letters/{id}")).await?)
    }

    async fn show(&self, id: Uuid, request: bool) -> Result<(), Exit> {
        if request {
            let answer = self.reach.get(&format!("/v1/messages/{id}/request")).await?;
            let written = out::write(&answer.body);
            return written
                .map_err(|error| Exit::Failed(format!("standard output cannot be written: {error}")));
        }
        let letter = self.letter(id).await?;
        let message: Message = reach::read(&self.reach.get(&format!("/v1/messages/{id}")).await?)?;
        let Events { events } = reach::read(&self.reach.get(&format!("/v1/messages/{id}/events")).await?)?;
        if self.reach.json {
            let mut all = letter.as_json();
            all["sent_as"] = json!(letter.sent_as);
            all["content_type"] = json!(message.content_type);
            all["request_digest"] = json!(message.request_digest);
            all["trace"] = json!(message.trace);
            all["history"] = events.iter().map(Event::as_json).collect();
            return out::line(all);
        }
        out::say(&whole(&letter, &message, &events))
    }

    async fn decide(&self, finding: Finding, ids: &[Uuid], reason: Option<String>) -> Result<(), Exit> {
        let decision = match finding {
            Finding::Done => "sent",
            Finding::NotDone => "queued",
            Finding::GiveUp => "dead",
        };
        let told = json!({ "decision": decision, "reason": reason });
        self.each(ids, "decide", &told, |id, ended| match ended {
            Ok(state) => json!({ "id": id, "decided": true, "told": settled_as(state) }),
            Err(why) => json!({ "id": id, "decided": false, "told": why }),
        })
        .await
    }

    /// Takes a step with each of them, one after the other. What is refused stops no other; what cannot be reached ends it.
    async fn each(
        &self,
        ids: &[Uuid],
        step: &str,
        told: &Value,
        shown: impl Fn(&str, Result<&str, &str>) -> Value,
    ) -> Result<(), Exit> {
        #[derive(Deserialize)]
        struct Now {
            status: String,
        }
        let mut is_refused = false;
        for id in ids {
            let text = id.to_string();
            let shown = match self.reach.post(&format!("/v1/messages/{id}/{step}"), told).await {
                Ok(answer) => shown(&text, Ok(&reach::read::<Now>(&answer)?.status)),
                Err(Exit::Conflict(why) | Exit::Failed(why)) => {
                    is_refused = true;
                    shown(&text, Err(&format!("refused: {why}")))
                }
                Err(exit) => return Err(exit),
            };
            self.say(&text, &shown)?;
        }
        if is_refused { Err(Exit::Found) } else { Ok(()) }
    }

    /// What became of one: an object, or its words.
    fn say(&self, id: &str, shown: &Value) -> Result<(), Exit> {
        if self.reach.json {
            return out::line(shown);
        }
        out::line(format_args!("{id}: {}", shown["told"].as_str().map(visible).unwrap_or_default()))
    }

    async fn edit(&self, id: Uuid, edit: Edit) -> Result<(), Exit> {
        let key = edit.key.unwrap_or_else(|| Uuid::now_v7().to_string());
        let key = IdempotencyKey::parse(&key).map_err(|error| self.wrong("--key", error.to_string()))?;
        let request = one::read(&edit.request).map_err(|why| self.wrong("--request", why))?;
        body_key::agrees(&key, &request).map_err(|why| self.wrong("--request", why))?;
        let old: Message = reach::read(&self.reach.get(&format!("/v1/messages/{id}")).await?)?;
        let mut target = Serializer::new(format!("/v1/messages/{id}/replace?"));
        target.append_pair("although_done", if edit.yes { "true" } else { "false" });
        if let Some(reason) = &edit.reason {
            target.append_pair("reason", reason);
        }
        let answer = self.reach.put_in(&target.finish(), key.clone(), &old.content_type, request).await;
        let answer = answer.map_err(|exit| match exit {
            // The server's words name its parameter, and not our flag.
            Exit::Conflict(why) if why.contains("although_done") => self.wrong("--yes", why),
            other => other,
        })?;
        let New { id: new } = reach::read(&answer)?;
        let warning = format!(
            "this is a new action under a new key: whoever receives it cannot tell that it replaces {id}"
        );
        if self.reach.json {
            let told = json!({ "id": new.to_string(), "made_from": id.to_string(), "key": key.as_str(), "warning": warning });
            return out::line(told);
        }
        out::line(format_args!("{new} is queued, made from {id}\nwarning: {warning}"))
    }
}

impl Letter {
    fn row(self) -> [String; 8] {
        let error = self.last_error.as_ref().map(LastError::cut).unwrap_or_default();
        let tries = format!("{}/{}", self.tries, self.tries_allowed);
        let effect = self.effect.replace('_', " ");
        [self.since, self.created_at, self.id.to_string(), self.queue, self.identity, tries, effect, error]
    }

    /// As `ichido dead` tells programs on the store.
    fn as_json(&self) -> Value {
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

fn whole(letter: &Letter, message: &Message, events: &[Event]) -> String {
    let mut out = String::new();
    let mut say = |name: &str, text: &str| {
        // A string takes all that is written to it.
        _ = writeln!(out, "{name:<12} {}", visible(text));
    };
    let standing = match letter.standing.as_str() {
        "open" => String::new(),
        closed => format!(", {closed}"),
    };
    say("id", &letter.id.to_string());
    say("state", &format!("{}{standing}", letter.state));
    say("queue", &letter.queue);
    say("identity", &letter.identity);
    say("key", &letter.idempotency_key);
    say(
        "sent as",
        letter.sent_as.as_deref().unwrap_or("not known there: the server does not serve this queue"),
    );
    say("effect", &letter.effect.replace('_', " "));
    say("tries", &format!("{} of {}", letter.tries, letter.tries_allowed));
    say("error", &letter.last_error.as_ref().map(LastError::in_full).unwrap_or_default());
    say("created", &letter.created_at);
    say("since", &letter.since);
    if let Some(until) = &letter.travels_until {
        say("travels", &format!("until {until}; that it was not done counts only after it"));
    }
    say("request", &format!("{} bytes, {}", letter.request_bytes, message.content_type));
    if let Some(old) = letter.made_from {
        say("made from", &old.to_string());
    }
    if let Some(new) =
        events.iter().rev().find(|event| event.kind == "replaced").and_then(|event| event.receipt.as_ref())
    {
        say("replaced by", new);
    }
    out.push('\n');
    let rows = events.iter().map(|event| {
        [
            event.at.clone(),
            format!("{} → {}", event.from, event.to),
            event.kind.clone(),
            event.actor.clone().unwrap_or_default(),
            error(event.error_code.as_deref(), event.error_text.as_deref()),
        ]
    });
    out += &table(["AT", "STEP", "WHAT", "WHO", "WHY"], rows);
    out
}

/// What a decision came to, in the words of a command that works on the store itself.
fn settled_as(state: &str) -> String {
    match state {
        "sent" => "it was done, and counts as sent".to_owned(),
        "queued" => "it was not done, and is sent again".to_owned(),
        state => format!("it is {state} now, and stays so"),
    }
}
