//! Imports the bookmarks of a file: `POST /v1/import`.
//!
//! Guarantee: each link is one bookmark, however often the file is sent, and whenever an import was interrupted: links
//! are saved in small transactions, and one that is already saved is left as it is. So no key is needed; with one, the
//! same response is repeated.
// SPEC A7.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use ichido::time::Timestamp;
use serde::Serialize;
use uuid::{NoContext, Uuid};

use super::answer;
use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::bookmarks::{self, NewBookmark};
use crate::canonical::canonical;
use crate::problem::{Code, Problem};
use crate::settings::limits::IMPORTED_AT_ONCE;
use crate::source::{CreatedFrom, SourceHint};
use crate::tags::Tags;
use crate::transfer::{Link, json, netscape};
use crate::{jobs, reading, saving, summary};

/// What became of the links of a file.
#[derive(Debug, Default, Serialize)]
struct Imported {
    found: usize,
    created: usize,
    /// Saved before, or earlier in the file.
    existing: usize,
    /// Not the address of a page.
    skipped: usize,
}

pub(super) async fn import(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let is_json =
        headers.get(CONTENT_TYPE).is_some_and(|media| media.as_bytes().starts_with(b"application/json"));
    // A large file would block a thread that others wait for.
    let reading = move || if is_json { json::read(&body) } else { netscape::read(&body) };
    let links = tokio::task::spawn_blocking(reading)
        .await
        .map_err(|_| Problem::new(Code::Failed, "the file could not be read"))?;
    let links = links.map_err(|error| Problem::new(Code::BodyInvalid, error.to_string()))?;
    let mut imported = Imported { found: links.len(), ..Imported::default() };
    for (first, chunk) in (0..).step_by(IMPORTED_AT_ONCE).zip(links.chunks(IMPORTED_AT_ONCE)) {
        let turns = (first..).map(jobs::import_turn);
        let links = chunk.iter().zip(turns).filter_map(|(link, turn)| Some((bookmark(link, &caller)?, turn)));
        let links: Vec<_> = links.collect();
        let mut open = app.database.begin().await?;
        let created = saving::save_many(&app, &mut open, &caller.person, &links).await?;
        open.commit().await?;
        imported.created += created;
        imported.existing += links.len() - created;
        imported.skipped += chunk.len() - links.len();
    }
    Ok(answer(StatusCode::OK, &imported))
}

/// Returns what to save, if the link leads to a page.
fn bookmark(link: &Link, caller: &AuthenticatedCaller) -> Option<NewBookmark> {
    let url = canonical(&link.url).ok()?;
    let title = |text: Option<&str>| text.and_then(reading::title).filter(|title| *title != link.url);
    let shown = title(link.title.as_deref());
    let added = link.added_at.unwrap_or(caller.now).as_micros().clamp(0, caller.now.as_micros());
    let (seconds, micros) = (added.unsigned_abs() / 1_000_000, added.unsigned_abs() % 1_000_000);
    let nanos = u32::try_from(micros * 1_000).unwrap_or_default();
    // Bookmarks are listed by their ids, so an id says when its link was added.
    let id = Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos));
    let new = NewBookmark {
        id,
        person: caller.person.id,
        title: None,
        edited_title: shown.clone(),
        tags: Tags::fitting(link.tags.iter().map(String::as_str)),
        idempotency_key: format!("import-{id}"),
        source_hint: SourceHint::detect(&url),
        created_from: Some(CreatedFrom::Import),
        now: Timestamp::from_micros(added),
        summary: None,
        is_done: false,
        url,
    };
    let Some(saved) = &link.saved else { return Some(new) };
    let own = saved.source_hint.as_deref().and_then(SourceHint::parse);
    let from = saved.created_from.as_deref().and_then(CreatedFrom::parse);
    let is_edited = saved.page_title.is_some();
    Some(NewBookmark {
        title: if is_edited { title(saved.page_title.as_deref()) } else { shown.clone() },
        edited_title: shown.filter(|_| is_edited),
        source_hint: own.unwrap_or(new.source_hint),
        created_from: from,
        summary: saved.summary.as_ref().and_then(|(text, by)| Some((summary::fitting(text)?, author(by)?))),
        // What was not done is tried again.
        is_done: saved.is_done(),
        ..new
    })
}

fn author(by: &str) -> Option<&'static str> {
    [bookmarks::MODEL, bookmarks::EXTRACT].into_iter().find(|author| *author == by)
}
