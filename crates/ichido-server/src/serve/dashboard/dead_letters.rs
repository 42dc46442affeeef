//! The page of dead letters and parked messages.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::Serializer;
use http::{StatusCode, Uri};
use serde::Deserialize;

use super::super::dead_letters::Letter;
use super::super::request::query_pairs;
use super::Dashboard;
use super::marks;
use super::messages::FilterChip;
use super::moments::ShownTime;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::Texts;

/// Maximum letters on a page.
const PAGE: u32 = 50;
/// The parameters that the page takes, and passes on to the API.
const PARAMETERS: [&str; 6] = ["state", "disposition", "queue", "code", "effect", "cursor"];

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct DeadLettersPage {
    shell: Shell,
    state: &'static str,
    chips: Vec<FilterChip>,
    rows: Vec<LetterLine>,
    empty: &'static str,
    newest: Option<String>,
    next: Option<String>,
    bulk_command: String,
}

/// A dead letter in the table.
struct LetterLine {
    id: String,
    short_id: String,
    item: String,
    queue: String,
    mark: &'static str,
    class: &'static str,
    effect: String,
    code: Option<String>,
    error: Option<String>,
    attempts: String,
    at: ShownTime,
    refused: Option<String>,
}

#[derive(Deserialize)]
struct FoundLetters {
    dead_letters: Vec<Letter>,
    next: Option<String>,
}

/// Lists dead letters.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let t = visitor.t();
    let query: Vec<(String, String)> =
        query_pairs(&uri)?.into_iter().filter(|(name, _)| PARAMETERS.contains(&name.as_str())).collect();
    let get = |wanted: &str| query.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let state = if get("state") == Some("parked") { "parked" } else { "dead" };
    let is_discarded = get("disposition") == Some("discarded");
    let target = address("/v1/dead-letters", &query, None, Some(PAGE));
    let found: FoundLetters = dashboard.read(visitor.caller()?, &target).await?;
    let empty = match (state, is_discarded) {
        ("parked", _) => t.no_parked,
        (_, true) => t.no_discarded,
        (_, false) => t.no_dead,
    };
    let mut shell = dashboard.shell(&visitor, t.dead_letters);
    shell.live = Some("/live".to_owned());
    let queue = get("queue").map(|queue| format!(" --queue {queue}")).unwrap_or_default();
    let code = get("code").map(|code| format!(" --code {code}")).unwrap_or_default();
    let parked = if state == "parked" { " --parked" } else { "" };
    let page = DeadLettersPage {
        state,
        chips: chips(t, state, is_discarded),
        rows: found.dead_letters.into_iter().map(|letter| line(&visitor, letter)).collect(),
        empty,
        newest: get("cursor").map(|_| address("/dead-letters", &query, None, None)),
        next: found.next.as_deref().map(|next| address("/dead-letters", &query, Some(next), None)),
        bulk_command: format!("ichido dead requeue{queue}{code}{parked} --dry-run"),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Returns a path with these parameters and another cursor.
fn address(path: &str, query: &[(String, String)], cursor: Option<&str>, limit: Option<u32>) -> String {
    let mut address = Serializer::for_suffix(format!("{path}?"), path.len() + 1);
    for (name, value) in query.iter().filter(|(name, _)| limit.is_some() || name != "cursor") {
        address.append_pair(name, value);
    }
    if let Some(cursor) = cursor {
        address.append_pair("cursor", cursor);
    }
    if let Some(limit) = limit {
        address.append_pair("limit", &limit.to_string());
    }
    address.finish()
}

fn chips(t: &'static Texts, state: &str, is_discarded: bool) -> Vec<FilterChip> {
    let chip = |name, of: &str, href: &str, is_here| {
        let shown = marks::of_state(of);
        FilterChip { name, mark: shown.mark, class: shown.class, href: href.to_owned(), is_here }
    };
    vec![
        chip(t.letters_dead, "dead", "/dead-letters", state == "dead" && !is_discarded),
        chip(t.letters_parked, "parked", "/dead-letters?state=parked", state == "parked"),
        chip(t.letters_discarded, "cancelled", "/dead-letters?disposition=discarded", is_discarded),
    ]
}

fn line(visitor: &Visitor, letter: Letter) -> LetterLine {
    let shown = marks::of_effect(&letter.effect);
    let id = letter.id.to_string();
    let (code, error) = letter.last_error.map_or((None, None), |error| (Some(error.code), error.text));
    LetterLine {
        short_id: id.chars().take(13).collect(),
        id,
        item: letter.item,
        queue: letter.queue,
        mark: shown.mark,
        class: shown.class,
        effect: marks::effect_name(visitor.t(), &letter.effect).to_owned(),
        code,
        error,
        attempts: format!("{}/{}", letter.attempts, letter.max_attempts),
        at: visitor.time(&letter.since),
        refused: letter.requeue_refused,
    }
}
