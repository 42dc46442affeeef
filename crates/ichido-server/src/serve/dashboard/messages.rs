//! The page of messages: a filter, its presets, and a page of what it finds.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::Serializer;
use http::{StatusCode, Uri};
use ichido_core::lifecycle::StateName;
use serde::Deserialize;

use super::super::models::MessageFacts;
use super::super::request::query_pairs;
use super::super::text::Moment;
use super::Dashboard;
use super::bulk_plan::address;
use super::filter::{FilterError, MessageFilterText, NAMES};
use super::marks;
use super::moments::ShownTime;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::suggestions::Suggestion;
use super::texts::{Texts, fill};

/// Maximum messages on a page.
const PAGE: u32 = 50;
/// The digits of an id that a list shows, from its beginning and its end. The beginning is the time of an id.
const FIRST_ID_CHARS: usize = 8;
const LAST_ID_CHARS: usize = 6;
/// How many messages of a page are watched for changes. The stream limits them.
const MAX_WATCHED: usize = 20;

#[derive(Template)]
#[template(path = "messages.html")]
struct MessagesPage {
    shell: Shell,
    heading: String,
    q: String,
    suggestions: Vec<Suggestion>,
    chips: Vec<FilterChip>,
    error: Option<String>,
    empty: String,
    /// Where a request with this key is, which may have no message.
    key_href: Option<String>,
    rows: Vec<MessageLine>,
    searched_back_to: Option<String>,
    newest: Option<String>,
    next: Option<String>,
}

/// A preset filter.
pub(super) struct FilterChip {
    pub(super) name: &'static str,
    pub(super) mark: &'static str,
    pub(super) class: &'static str,
    pub(super) href: String,
    pub(super) is_here: bool,
}

/// A message in the table.
struct MessageLine {
    id: String,
    short_id: String,
    mark: &'static str,
    class: &'static str,
    state: String,
    note: Option<String>,
    item: Option<String>,
    queue: String,
    key: String,
    attempts: String,
    code: Option<String>,
    error: Option<String>,
    at: ShownTime,
}

/// A page of the API.
#[derive(Default, Deserialize)]
struct FoundMessages {
    messages: Vec<MessageFacts>,
    next: Option<String>,
    searched_back_to: Option<String>,
}

/// Lists messages.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let t = visitor.t();
    let query = query_pairs(&uri)?;
    let parameter =
        |wanted: &str| query.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let (q, cursor) = (parameter("q").unwrap_or_default(), parameter("cursor"));
    let parsed = MessageFilterText::parse(q);
    let filter = parsed.clone().unwrap_or_default();
    let found = match parsed {
        Err(error) => Err(why_not(t, &error)),
        Ok(filter) if wrong_time(&filter).is_some() => Err(why_not_time(t, &filter)),
        Ok(filter) => match find(&dashboard, &visitor, &filter, cursor).await {
            Ok(found) => Ok(found),
            // The filter is wrong, so the page says why beside it.
            Err(refusal) if matches!(refusal.status, 400 | 404) => Err(refusal.detail),
            Err(refusal) => return Err(refusal),
        },
    };
    let status = if found.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let (found, error) = match found {
        Ok(found) => (found, None),
        Err(error) => (FoundMessages::default(), Some(error)),
    };
    let mut shell =
        dashboard.shell(&visitor, if filter.is_empty() { t.messages.to_owned() } else { q.to_owned() });
    shell.live = Some(watched(&found.messages));
    let page = MessagesPage {
        heading: t.messages.to_owned(),
        q: q.to_owned(),
        suggestions: dashboard.suggestions(&visitor).await,
        chips: chips(t, &filter),
        empty: empty(t, &filter),
        key_href: filter.key().map(|key| address("/keys", &[("key", key.to_owned())])),
        rows: found.messages.into_iter().map(|message| line(&visitor, message)).collect(),
        searched_back_to: found
            .searched_back_to
            .map(|at| fill(t.searched_back_to, &[("when", &visitor.time(&at).full)])),
        newest: cursor.map(|_| href(&filter, None)),
        next: found.next.as_deref().map(|next| href(&filter, Some(next))),
        error,
        shell,
    };
    Ok(html(status, &page))
}

/// Asks the API; the first of the queries with a result counts.
async fn find(
    dashboard: &Dashboard,
    visitor: &Visitor,
    filter: &MessageFilterText,
    cursor: Option<&str>,
) -> Result<FoundMessages, PageRefusal> {
    let caller = visitor.caller()?;
    let mut last = FoundMessages::default();
    for (index, query) in filter.queries().iter().enumerate() {
        last = match dashboard.read(caller, &target(query, cursor)).await {
            // What is typed alone is not a receipt where receipts are redacted.
            Err(refusal) if 0 < index && refusal.status == 400 => return Ok(last),
            found => found?,
        };
        if !last.messages.is_empty() {
            break;
        }
    }
    Ok(last)
}

/// Returns the target of a query.
fn target(query: &str, cursor: Option<&str>) -> String {
    let mut target = Serializer::for_suffix(format!("/v1/messages?{query}"), "/v1/messages?".len());
    target.append_pair("limit", &PAGE.to_string());
    if let Some(cursor) = cursor {
        target.append_pair("cursor", cursor);
    }
    target.finish()
}

fn why_not(t: &Texts, error: &FilterError) -> String {
    match error {
        FilterError::UnknownName(name) => fill(t.filter_unknown, &[("name", name), ("names", NAMES)]),
        FilterError::Repeated(name) => fill(t.filter_repeated, &[("name", name)]),
        FilterError::TwoBare => t.filter_two.to_owned(),
    }
}

/// Returns the first term that should be a time and is not.
fn wrong_time(filter: &MessageFilterText) -> Option<(&'static str, &str)> {
    let terms = ["since", "before"].into_iter().filter_map(|name| Some((name, filter.get(name)?)));
    terms.into_iter().find(|(_, value)| Moment::read(value).is_err())
}

fn why_not_time(t: &Texts, filter: &MessageFilterText) -> String {
    let (name, value) = wrong_time(filter).unwrap_or_default();
    fill(t.filter_time, &[("term", &format!("{name}:{value}")), ("name", name)])
}

fn empty(t: &Texts, filter: &MessageFilterText) -> String {
    if filter.is_empty() { fill(t.none_yet, &[("queue", "{queue}")]) } else { t.none_match.to_owned() }
}

/// Returns the address of a filter.
fn href(filter: &MessageFilterText, cursor: Option<&str>) -> String {
    let mut query = Serializer::for_suffix("/messages?".to_owned(), "/messages?".len());
    if !filter.is_empty() {
        query.append_pair("q", &filter.to_string());
    }
    if let Some(cursor) = cursor {
        query.append_pair("cursor", cursor);
    }
    query.finish()
}

/// Returns one preset for each state, beside the other terms of the filter.
fn chips(t: &'static Texts, filter: &MessageFilterText) -> Vec<FilterChip> {
    let here = filter.get("state");
    let all = FilterChip {
        name: t.chip_all,
        mark: "",
        class: "quiet",
        href: href(&filter.with("state", None), None),
        is_here: here.is_none(),
    };
    let states = StateName::WORDS.iter().map(|state| {
        let shown = marks::of_state(state);
        FilterChip {
            name: marks::state_name(t, state),
            mark: shown.mark,
            class: shown.class,
            href: href(&filter.with("state", Some(state)), None),
            is_here: here == Some(*state),
        }
    });
    std::iter::once(all).chain(states).collect()
}

/// Returns the stream of changes to these messages.
fn watched(messages: &[MessageFacts]) -> String {
    let target = "/live?".to_owned();
    let mut query = Serializer::for_suffix(target, "/live?".len());
    for message in messages.iter().take(MAX_WATCHED) {
        query.append_pair("message", &message.id.to_string());
    }
    query.finish()
}

/// Returns an id as a list shows it.
pub(super) fn short_id(id: &str) -> String {
    let last = id.len().saturating_sub(LAST_ID_CHARS);
    format!("{}…{}", id.get(..FIRST_ID_CHARS).unwrap_or(id), id.get(last..).unwrap_or_default())
}

fn line(visitor: &Visitor, message: MessageFacts) -> MessageLine {
    let t = visitor.t();
    let shown = marks::of_state(&message.status);
    let id = message.id.to_string();
    let text = if message.status == "failed" { t.retries_at } else { t.first_at };
    let due = message.next_attempt_at.filter(|_| matches!(message.status.as_str(), "failed" | "queued"));
    let note = due.map(|at| visitor.time(&at)).map(|at| fill(text, &[("when", &at.short)]));
    // An error of an earlier attempt is not what became of the message.
    let is_over = matches!(message.status.as_str(), "sent" | "cancelled");
    let last_error = message.last_error.filter(|_| !is_over);
    let (code, error) = last_error.map_or((None, None), |error| (Some(error.code), error.text));
    MessageLine {
        short_id: short_id(&id),
        id,
        mark: shown.mark,
        class: shown.class,
        state: marks::state_name(t, &message.status).to_owned(),
        // A message that is due at once has nothing to say.
        note: note.filter(|_| {
            message.status == "failed" || message.attempts == 0 && message.created_at != message.updated_at
        }),
        item: message.item,
        queue: message.queue,
        key: message.idempotency_key,
        attempts: format!("{}/{}", message.attempts, message.max_attempts),
        code,
        error,
        at: visitor.time(&message.created_at),
    }
}
