//! The page of one message.
//!
//! Guarantee: at most four requests to the API, whatever the message went through. Its request is shown from the stored bytes, so a number
//! of 64 bits and more is exact.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{Method, StatusCode, Uri};
use ichido_core::settings::size;
use ichido_store::message::IDENTITY_DEFAULT;
use serde::Deserialize;
use uuid::Uuid;

use super::super::dead_letters::Letter;
use super::super::messages::unknown_message;
use super::super::models::{Event, Message, ResultResponse};
use super::super::request::query_pairs;
use super::call::collect;
use super::message_actions::{OfferedAction, offered};
use super::message_texts::{Fact, ShownAnswer, ShownEntry, shown_answer, shown_timeline};
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::{Texts, fill};
use super::timeline::timeline;
use super::was_it_done::was_it_done;
use super::{Dashboard, json_text, marks};

/// Maximum bytes of a request or a response on the page.
const MAX_SHOWN_BYTES: usize = 64 << 10;
/// Maximum bytes of a request inside a command.
const MAX_COMMAND_BYTES: usize = 8 << 10;

#[derive(Template)]
#[template(path = "message.html")]
struct OneMessagePage {
    shell: Shell,
    id: String,
    title: String,
    queue: String,
    state: String,
    state_mark: &'static str,
    state_class: &'static str,
    notice: Option<Notice>,
    answer: ShownAnswer,
    actions: Vec<OfferedAction>,
    decide_not_done: &'static str,
    timeline: Vec<ShownEntry>,
    facts: Vec<Fact>,
    payload: String,
    payload_note: String,
    response: Option<String>,
    response_note: String,
    curl: String,
}

/// What came of an action.
pub(super) struct Notice {
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// What the API says about a message.
struct ReadMessage {
    message: Message,
    events: Vec<Event>,
    request: bytes::Bytes,
    letter: Option<Letter>,
}

#[derive(Deserialize)]
struct ReadEvents {
    events: Vec<Event>,
}

/// Shows a message.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let t = visitor.t();
    let query = query_pairs(&uri)?;
    let did = query.iter().find(|(name, _)| name == "did").and_then(|(_, did)| match did.as_str() {
        "requeue" => Some(t.did_requeue),
        "cancel" => Some(t.did_cancel),
        "discard" => Some(t.did_discard),
        "decide" => Some(t.did_decide),
        _ => None,
    });
    let notice = did.map(|text| Notice { class: "ok", text: text.to_owned() });
    page(&dashboard, &visitor, parse_id(&id)?, StatusCode::OK, notice).await
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

/// Returns the page of a message, with what came of an action.
pub(super) async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    id: Uuid,
    status: StatusCode,
    notice: Option<Notice>,
) -> Result<Response, PageRefusal> {
    let t = visitor.t();
    let read = ReadMessage::read(dashboard, visitor, id).await?;
    let ReadMessage { message, events, request, letter } = &read;
    let facts = &message.facts;
    let in_flight_until = letter.as_ref().and_then(|letter| letter.in_flight_until.as_deref());
    let answer = was_it_done(facts, events, in_flight_until);
    let shown = marks::of_state(&facts.status);
    let title = facts.item.clone().unwrap_or_else(|| facts.idempotency_key.clone());
    let (payload, payload_note) = shown_payload(t, &facts.content_type, request);
    let response = message.result.as_ref().and_then(|result| result.response.as_ref());
    let is_dead = facts.status == "dead";
    let mut shell = dashboard.shell(visitor, &title);
    shell.here = format!("/messages/{id}");
    shell.live = Some(format!("/live?message={id}"));
    let page = OneMessagePage {
        id: id.to_string(),
        title,
        queue: facts.queue.clone(),
        state: marks::state_name(t, &facts.status).to_owned(),
        state_mark: shown.mark,
        state_class: shown.class,
        notice,
        answer: shown_answer(visitor, &answer, message, events, letter.as_ref()),
        actions: if visitor.can_act() { offered(t, message, letter.as_ref()) } else { Vec::new() },
        decide_not_done: if is_dead { t.decide_not_done_dead } else { t.decide_not_done },
        timeline: shown_timeline(visitor, &timeline(message.hops.as_deref(), events)),
        facts: details(visitor, message),
        payload,
        payload_note,
        response: response.map(|response| shown_response(t, response)),
        response_note: response
            .map(|response| note(t, &response.content_type, response.bytes, response.bytes))
            .unwrap_or_default(),
        curl: curl(visitor, message, request),
        shell,
    };
    Ok(html(status, &page))
}

impl ReadMessage {
    async fn read(dashboard: &Dashboard, visitor: &Visitor, id: Uuid) -> Result<Self, PageRefusal> {
        let caller = visitor.caller()?;
        let message: Message = dashboard.read(caller, &format!("/v1/messages/{id}")).await?;
        let events: ReadEvents = dashboard.read(caller, &format!("/v1/messages/{id}/events")).await?;
        let target = format!("/v1/messages/{id}/request");
        let request = collect(dashboard.call(caller, Method::GET, &target, String::new()).await?).await?;
        let letter = if matches!(message.facts.status.as_str(), "dead" | "parked") {
            // It may have been requeued since.
            dashboard.read(caller, &format!("/v1/dead-letters/{id}")).await.ok()
        } else {
            None
        };
        Ok(Self { message, events: events.events, request, letter })
    }
}

fn details(visitor: &Visitor, message: &Message) -> Vec<Fact> {
    let (t, facts) = (visitor.t(), &message.facts);
    let link = |name, id: String| Fact { href: Some(format!("/messages/{id}")), ..Fact::code(name, id) };
    let mut shown = vec![
        Fact::code("ID", facts.id.to_string()),
        Fact {
            href: Some(format!("/messages?q=queue:{}", facts.queue)),
            ..Fact::text(t.queue, &*facts.queue)
        },
        Fact::code(t.key, &*facts.idempotency_key),
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
            (String::from_utf8_lossy(whole).into_owned(), note(whole.len()))
        }
        Err(_) => (t.payload_binary.to_owned(), note(request.len())),
    }
}

/// Returns JSON with line breaks, and other text as it is.
fn shown_text(text: &str) -> String {
    json_text::indented(text).unwrap_or_else(|| text.to_owned())
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
            text.chars().take(MAX_SHOWN_BYTES).collect()
        }
        (None, Some(base64)) => base64.chars().take(MAX_SHOWN_BYTES).collect(),
        (None, None) => t.response_not_kept.to_owned(),
    }
}

/// Returns a command that sends the same request under the same key.
fn curl(visitor: &Visitor, message: &Message, request: &[u8]) -> String {
    let (facts, host) = (&message.facts, &visitor.host);
    let mut lines = Vec::new();
    let text = std::str::from_utf8(request)
        .ok()
        .filter(|text| text.len() <= MAX_COMMAND_BYTES && !text.contains('\0'));
    let token = visitor.caller.as_ref().is_some_and(|caller| caller.token.is_some());
    let token = if token { " -H \"Authorization: Bearer $ICHIDO_TOKEN\"" } else { "" };
    if text.is_none() {
        lines.push(format!("curl -s http://{host}/v1/messages/{}/request{token} -o request.bin", facts.id));
    }
    let mut command = vec![format!("curl -i http://{host}/v1/queues/{}/messages{token}", facts.queue)];
    command.push(format!("-H {}", shell_quoted(&format!("Idempotency-Key: {}", facts.idempotency_key))));
    command.push(format!("-H {}", shell_quoted(&format!("Content-Type: {}", facts.content_type))));
    if facts.identity != IDENTITY_DEFAULT {
        command.push(format!("-H {}", shell_quoted(&format!("Ichido-Identity: {}", facts.identity))));
    }
    command.push(text.map_or_else(
        || "--data-binary @request.bin".to_owned(),
        |text| format!("--data-binary {}", shell_quoted(text)),
    ));
    lines.push(command.join(" \\\n    "));
    lines.join("\n")
}

/// Quotes a text for a POSIX shell.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
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

    #[test]
    fn a_text_in_a_command_cannot_end_its_quotes() {
        assert_eq!(shell_quoted("a'; rm -rf / #"), r"'a'\''; rm -rf / #'");
    }
}
