//! The page of one message.
//!
//! Guarantee: at most six requests to the API, each bounded, and what workers publish about queues, whatever the message went through. Its request is shown from the stored bytes, so a number
//! of 64 bits and more is exact.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use form_urlencoded::Serializer;
use http::{Method, StatusCode, Uri};
use ichido::worker::OutboundKey;
use ichido_core::json::REDACTED;
use ichido_core::key::IdempotencyKey;
use ichido_core::settings::size;
use ichido_core::text::visible_lines;
use ichido_store::message::IDENTITY_DEFAULT;
use serde::Deserialize;
use uuid::Uuid;

use super::super::dead_letters::Letter;
use super::super::destinations::Destinations;
use super::super::keys::{KeyRecord, KeysFound};
use super::super::messages::unknown_message;
use super::super::models::{Event, Message, MessageFacts, ResultResponse};
use super::super::request::query_pairs;
use super::call::collect;
use super::key_texts::Texts as KeyTexts;
use super::keys::key_path;
use super::message_actions::{OfferedAction, offered};
use super::message_texts::{Fact, Receiver, ShownAnswer, ShownEntry, shown_answer, shown_timeline};
use super::moments::full;
use super::shell::{PageRefusal, Shell, Visitor, html, shell_quoted};
use super::texts::{Texts, fill};
use super::timeline::{TimelineEntry, TimelineParts};
use super::was_it_done::was_it_done;
use super::{Dashboard, json_text, marks, timeline};

/// Maximum bytes of a request or a response on the page.
const MAX_SHOWN_BYTES: usize = 64 << 10;
/// Maximum bytes of a request inside a command.
const MAX_COMMAND_BYTES: usize = 8 << 10;

#[derive(Template)]
#[template(path = "message.html")]
struct OneMessagePage {
    shell: Shell,
    k: &'static KeyTexts,
    id: String,
    title: String,
    queue: String,
    state: String,
    state_mark: &'static str,
    state_class: &'static str,
    notice: Option<Notice>,
    answer: ShownAnswer,
    actions: Vec<OfferedAction>,
    /// The decisions, with what each means.
    decisions: Vec<(&'static str, &'static str)>,
    timeline: Vec<ShownEntry>,
    /// Whether the timeline ends with the newest event.
    is_newest: bool,
    facts: Vec<Fact>,
    payload: String,
    payload_note: String,
    response: Option<String>,
    response_note: String,
    is_redacted: bool,
    curl: String,
}

/// What came of an action.
pub(super) struct Notice {
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// The action before the page.
pub(super) enum PriorAction<'a> {
    /// Its name, as the address has it.
    Done(Option<&'a str>),
    Refused(Notice),
}

/// What the API says about a message.
struct ReadMessage {
    message: Message,
    events: ReadEvents,
    request: bytes::Bytes,
    letter: Option<Letter>,
    /// The requests that enqueued it.
    keys: Vec<KeyRecord>,
    /// An earlier page of its events, if the visitor is there.
    earlier: Option<ReadEvents>,
}

/// A page of events.
#[derive(Default, Deserialize)]
pub(super) struct ReadEvents {
    pub(super) events: Vec<Event>,
    pub(super) earlier: Option<String>,
    /// What decides about the effect, if that is before the newest events.
    pub(super) basis: Option<Event>,
}

impl ReadEvents {
    /// Reads the newest events of the message at this path, or those before a position.
    pub(super) async fn read(
        dashboard: &Dashboard,
        visitor: &Visitor,
        path: &str,
        before: Option<&str>,
    ) -> Result<Self, PageRefusal> {
        let prefix = format!("/v1{path}/events?");
        let target = Serializer::for_suffix(prefix.clone(), prefix.len())
            .append_pair("limit", &timeline::PAGE.to_string())
            .extend_pairs(before.map(|before| ("cursor", before)))
            .finish();
        dashboard.read(visitor.caller()?, &target).await
    }
}

/// Shows a message.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let query = query_pairs(&uri)?;
    let did = query.iter().find(|(name, _)| name == "did").map(|(_, did)| did.as_str());
    let before = query.iter().find(|(name, _)| name == "before").map(|(_, before)| before.as_str());
    page(&dashboard, &visitor, parse_id(&id)?, (StatusCode::OK, PriorAction::Done(did)), before).await
}

/// Returns the bytes of a request, as a download.
pub(super) async fn download(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, PageRefusal> {
    let target = format!("/v1/messages/{}/request", parse_id(&id)?);
    dashboard.call(visitor.caller()?, Method::GET, &target, String::new()).await
}

/// Parses an id; anything else is not a message.
pub(super) fn parse_id(text: &str) -> Result<Uuid, PageRefusal> {
    Uuid::try_parse(text).map_err(|_| unknown_message().into())
}

/// Returns the page of a message, with what came of an action, and its timeline up to a position.
pub(super) async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    id: Uuid,
    (status, prior): (StatusCode, PriorAction<'_>),
    before: Option<&str>,
) -> Result<Response, PageRefusal> {
    let (t, k) = (visitor.t(), visitor.key_texts());
    let read = ReadMessage::read(dashboard, visitor, id, before).await?;
    let ReadMessage { message, events, request, letter, .. } = &read;
    let facts = &message.facts;
    let in_flight_until = letter.as_ref().and_then(|letter| letter.in_flight_until.as_deref());
    let answer = was_it_done(facts, &events.events, events.basis.as_ref(), in_flight_until);
    let shown = marks::of_state(&facts.status);
    let title = facts.item.clone().unwrap_or_else(|| facts.idempotency_key.clone());
    let (payload, payload_note) = shown_payload(t, &facts.content_type, request);
    let response = message.result.as_ref().and_then(|result| result.response.as_ref());
    let is_dead = facts.status == "dead";
    let path = format!("/messages/{id}");
    let receiver = receiver(dashboard, facts).await?;
    let notice = match prior {
        PriorAction::Refused(notice) => Some(notice),
        PriorAction::Done(did) => did.and_then(|did| did_notice(visitor, did, &read)),
    };
    let mut answer = shown_answer(visitor, &answer, message, events, letter.as_ref(), &receiver);
    if let Some(paused) = paused(dashboard, visitor, facts, &receiver).await? {
        answer.next = Some(paused);
    }
    let mut shell = dashboard.shell(visitor, &title);
    shell.here.clone_from(&path);
    shell.live = Some(format!("/live?message={id}"));
    let page = OneMessagePage {
        k,
        id: id.to_string(),
        title,
        queue: facts.queue.clone(),
        state: marks::state_name(t, &facts.status).to_owned(),
        state_mark: shown.mark,
        state_class: shown.class,
        notice,
        answer,
        actions: if visitor.can_act() {
            offered(t, k, message, letter.as_ref(), visitor.local_name())
        } else {
            Vec::new()
        },
        decisions: decisions(t, is_dead),
        timeline: shown_timeline(visitor, &read.timeline(), &path),
        is_newest: before.is_none(),
        facts: details(visitor, &read),
        payload,
        payload_note,
        response: response.map(|response| shown_response(t, response)),
        response_note: response
            .map(|response| note(t, &response.content_type, response.bytes, response.bytes))
            .unwrap_or_default(),
        is_redacted: is_redacted(request),
        curl: curl(visitor, message, request),
        shell,
    };
    Ok(html(status, &page))
}

impl ReadMessage {
    async fn read(
        dashboard: &Dashboard,
        visitor: &Visitor,
        id: Uuid,
        before: Option<&str>,
    ) -> Result<Self, PageRefusal> {
        let (caller, path) = (visitor.caller()?, format!("/messages/{id}"));
        let message: Message = dashboard.read(caller, &format!("/v1{path}")).await?;
        let events = ReadEvents::read(dashboard, visitor, &path, None).await?;
        let earlier = match before {
            Some(_) => Some(ReadEvents::read(dashboard, visitor, &path, before).await?),
            None => None,
        };
        let target = format!("/v1{path}/request");
        let request = collect(dashboard.call(caller, Method::GET, &target, String::new()).await?).await?;
        let letter = if matches!(message.facts.status.as_str(), "dead" | "parked") {
            // It may have been requeued since.
            dashboard.read(caller, &format!("/v1/dead-letters/{id}")).await.ok()
        } else {
            None
        };
        let found: KeysFound = dashboard.read(caller, &format!("/v1/keys?message={id}")).await?;
        Ok(Self { message, events, request, letter, keys: found.keys, earlier })
    }

    fn timeline(&self) -> Vec<TimelineEntry> {
        let page = self.earlier.as_ref().unwrap_or(&self.events);
        let of_request = self.keys.iter().find_map(|key| key.hops.as_deref());
        timeline::timeline(&TimelineParts {
            hops: self.message.hops.as_deref().or(of_request),
            keys: &self.keys,
            accepted_at: page.earlier.as_ref().map(|_| self.message.facts.created_at.as_str()),
            replays: self.message.replays.as_ref(),
            events: &page.events,
            earlier: page.earlier.as_deref(),
        })
    }
}

/// Returns what a person can decide. A dead message that cannot be found out stays what it is.
fn decisions(t: &'static Texts, is_dead: bool) -> Vec<(&'static str, &'static str)> {
    if is_dead {
        vec![("done", t.decide_done_dead), ("not_done", t.decide_not_done_dead)]
    } else {
        vec![("done", t.decide_done), ("not_done", t.decide_not_done), ("give_up", t.decide_give_up)]
    }
}

/// Returns the receiver of a message, and the key that its calls carry.
async fn receiver(dashboard: &Dashboard, facts: &MessageFacts) -> Result<Receiver, PageRefusal> {
    let destination = dashboard.api.destinations.iter().find_map(|known| known.receiver_of(&facts.queue));
    let destination = destination.map(|(name, address)| (name.to_owned(), address.to_owned()));
    // They change only when a worker starts, so the last sample has them, however old.
    let latest = dashboard.sampler.latest();
    let read = if latest.is_none() { dashboard.api.store.facts().list().await? } else { Vec::new() };
    let all = latest.as_ref().map_or(&read, |sample| &sample.facts);
    let published = all.iter().find(|known| known.queue.as_str() == facts.queue);
    let kind = published.and_then(|known| Some((&known.queue, OutboundKey::parse(&known.key_kind)?)));
    let key = IdempotencyKey::parse(&facts.idempotency_key).ok();
    let key = kind.zip(key).map(|((queue, kind), key)| kind.key_for(queue, &facts.identity, &key));
    Ok(Receiver { destination, key: key.map(|key| key.as_str().to_owned()) })
}

/// Says what was done, unless the message has changed since: an address can be opened later.
fn did_notice(visitor: &Visitor, did: &str, read: &ReadMessage) -> Option<Notice> {
    let (t, ReadMessage { message, events, letter, .. }) = (visitor.t(), read);
    let status = message.facts.status.as_str();
    let is_closed = |by: &str| letter.as_ref().is_some_and(|letter| letter.disposition == by);
    let (is_so, text) = match did {
        "requeue" => (matches!(status, "queued" | "sending" | "sent" | "failed"), t.did_requeue),
        "cancel" => (status == "cancelled" || message.cancel_requested.is_some(), t.did_cancel),
        "discard" => (is_closed("discarded"), t.did_discard),
        "decide" => (events.events.iter().any(|event| event.kind == "decided"), t.did_decide),
        "replace" => (message.facts.replacement_of.is_some(), visitor.key_texts().did_replace),
        _ => (false, ""),
    };
    is_so.then(|| Notice { class: "ok", text: text.to_owned() })
}

/// Says who stopped a message that waits: somebody paused its queue, or its receiver.
async fn paused(
    dashboard: &Dashboard,
    visitor: &Visitor,
    facts: &MessageFacts,
    receiver: &Receiver,
) -> Result<Option<String>, PageRefusal> {
    if !matches!(facts.status.as_str(), "queued" | "failed") {
        return Ok(None);
    }
    let t = visitor.t();
    let said = |text, name: &str, by: Option<&str>, at: &str| {
        fill(text, &[("name", name), ("who", by.unwrap_or(t.a_person)), ("when", &full(at))])
    };
    let pauses = dashboard.api.store.queues().pauses().await?;
    if let Some(pause) = pauses.iter().find(|pause| pause.paused && pause.queue == facts.queue) {
        let since = pause.since.to_string();
        return Ok(Some(said(t.next_queue_paused, &facts.queue, pause.by.as_deref(), &since)));
    }
    let Some((name, _)) = &receiver.destination else { return Ok(None) };
    let found: Destinations = dashboard.read(visitor.caller()?, "/v1/destinations").await?;
    let destination = found.destinations.iter().find(|known| known.name == *name && known.paused);
    Ok(destination.map(|known| {
        let since = known.paused_at.as_deref().unwrap_or_default();
        said(t.next_destination_paused, name, known.paused_by.as_deref(), since)
    }))
}

fn details(visitor: &Visitor, ReadMessage { message, keys, .. }: &ReadMessage) -> Vec<Fact> {
    let (t, k, facts) = (visitor.t(), visitor.key_texts(), &message.facts);
    let link = |name, id: String| Fact { href: Some(format!("/messages/{id}")), ..Fact::code(name, id) };
    let mut shown = vec![
        Fact::code("ID", facts.id.to_string()),
        Fact {
            href: Some(format!("/messages?q=queue:{}", facts.queue)),
            ..Fact::text(t.queue, &*facts.queue)
        },
        Fact { href: Some(key_href(keys, facts)), ..Fact::code(t.key, &*facts.idempotency_key) },
        Fact::text(t.identity, &*facts.identity),
        Fact::text(t.accepted_at, visitor.time(&facts.created_at).full),
        Fact::text(t.updated_at, visitor.time(&facts.updated_at).full),
        Fact::text(t.priority, facts.priority.to_string()),
        Fact::code(t.digest, &*facts.request_digest),
    ];
    shown.extend(facts.trace_id.clone().map(|trace| Fact::code(t.trace_id, trace)));
    shown.extend(facts.replacement_of.map(|id| link(t.replaces, id.to_string())));
    shown.extend(message.replaced_by.clone().map(|id| link(t.replaced_by, id)));
    shown
        .push(Fact { href: Some(format!("/audit?subject={}", facts.id)), ..Fact::text(k.audit, k.in_audit) });
    shown
}

/// Returns the page of the request that enqueued a message, or of everything under its key.
fn key_href(keys: &[KeyRecord], facts: &MessageFacts) -> String {
    match keys {
        [KeyRecord { operation: Some(operation), identity, idempotency_key, .. }] => {
            key_path(operation, identity, idempotency_key)
        }
        _ => Serializer::for_suffix("/keys?".to_owned(), "/keys?".len())
            .append_pair("key", &facts.idempotency_key)
            .finish(),
    }
}

/// Whether values of a request are redacted. If the caller's own text looks like it, a hint is shown for nothing.
pub(super) fn is_redacted(request: &[u8]) -> bool {
    std::str::from_utf8(request).is_ok_and(|text| text.contains(REDACTED))
}

/// Returns a request as text, from its stored bytes.
fn shown_payload(t: &Texts, content_type: &str, request: &[u8]) -> (String, String) {
    let note = |shown| note(t, content_type, request.len(), shown);
    let cut = request.get(..MAX_SHOWN_BYTES).unwrap_or(request);
    match std::str::from_utf8(cut) {
        Ok(text) => (shown_text(text), note(cut.len())),
        // A character may be cut in two.
        Err(error) if cut.len() < request.len() && cut.len() - error.valid_up_to() < 4 => {
            let whole = cut.get(..error.valid_up_to()).unwrap_or_default();
            (visible_lines(&String::from_utf8_lossy(whole)), note(whole.len()))
        }
        Err(_) => (t.payload_binary.to_owned(), note(request.len())),
    }
}

/// Returns JSON with line breaks, and other text as it is, without characters that hide or turn others around.
fn shown_text(text: &str) -> String {
    visible_lines(&json_text::indented(text).unwrap_or_else(|| text.to_owned()))
}

fn note(t: &Texts, content_type: &str, bytes: usize, shown: usize) -> String {
    let text = if shown < bytes { t.payload_cut } else { t.payload_note };
    let (bytes, shown) = (size::format_in_text(bytes), size::format_in_text(shown));
    fill(text, &[("type", content_type), ("bytes", &bytes), ("shown", &shown)])
}

fn shown_response(t: &Texts, response: &ResultResponse) -> String {
    match (&response.body, &response.body_base64) {
        (Some(body), _) => {
            let text = json_text::indented(body.get()).unwrap_or_else(|| body.get().to_owned());
            visible_lines(&text.chars().take(MAX_SHOWN_BYTES).collect::<String>())
        }
        (None, Some(base64)) => base64.chars().take(MAX_SHOWN_BYTES).collect(),
        (None, None) => t.response_not_kept.to_owned(),
    }
}

/// Returns a command that sends the same request under the same key.
fn curl(visitor: &Visitor, message: &Message, request: &[u8]) -> String {
    let facts = &message.facts;
    let mut lines = Vec::new();
    let text = std::str::from_utf8(request)
        .ok()
        .filter(|text| text.len() <= MAX_COMMAND_BYTES && !text.contains('\0'));
    if text.is_none() {
        lines.push(visitor.curl("-s -o request.bin", &format!("/v1/messages/{}/request", facts.id)));
    }
    let mut command = vec![visitor.curl("-i", &format!("/v1/queues/{}/messages", facts.queue))];
    command.push(format!("-H {}", shell_quoted(&format!("Idempotency-Key: {}", facts.idempotency_key))));
    command.push(format!("-H {}", shell_quoted(&format!("Content-Type: {}", facts.content_type))));
    if facts.identity != IDENTITY_DEFAULT {
        command.push(format!("-H {}", shell_quoted(&format!("Ichido-Identity: {}", facts.identity))));
    }
    command.push(text.map_or_else(
        || "--data-binary @request.bin".to_owned(),
        // With --data-binary, a text that begins with @ would name a file.
        |text| format!("--data-raw {}", shell_quoted(text)),
    ));
    lines.push(command.join(" \\\n    "));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::dashboard::language::Language;

    #[test]
    fn a_request_is_shown_exactly_or_not_at_all() {
        let t = Texts::of(Language::English);
        let (text, note) = shown_payload(t, "application/json", br#"{"id":9007199254740993}"#);
        assert_eq!(text, "{\n  \"id\": 9007199254740993\n}");
        assert!(note.starts_with("application/json, 23 bytes"), "{note}");
        let (text, _) = shown_payload(t, "text/plain", b"not {json");
        assert_eq!(text, "not {json");
        let (text, _) = shown_payload(t, "image/png", &[0xff, 0xd8, 0xff]);
        assert_eq!(text, t.payload_binary);
        let long = "é".repeat(MAX_SHOWN_BYTES);
        let (text, note) = shown_payload(t, "text/plain", &long.as_bytes()[1..]);
        assert_eq!(text, t.payload_binary, "it begins within a character");
        assert!(!note.contains("first"), "{note}");
        let odd = format!("a{long}");
        let (text, note) = shown_payload(t, "text/plain", odd.as_bytes());
        assert_eq!(text.len(), MAX_SHOWN_BYTES - 1);
        assert!(note.contains("the first"), "{note}");
    }
}
