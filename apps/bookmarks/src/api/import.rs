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
use ichido_core::time::Timestamp;
use serde::Serialize;
use uuid::{NoContext, Uuid};

use super::{answer, save};
use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::bookmarks::NewBookmark;
use crate::canonical::canonical;
use crate::problem::{Code, Problem};
use crate::settings::limits::IMPORTED_AT_ONCE;
use crate::source::{CreatedFrom, SourceHint};
use crate::tags::Tags;
use crate::transfer::{Link, json, netscape};
use crate::{jobs, reading};

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
        let mut open = app.database.begin().await?;
        for (number, link) in (first..).zip(chunk) {
            let Some(new) = bookmark(link, &caller) else {
                imported.skipped += 1;
                continue;
            };
            let turn = jobs::import_turn(number);
            match save::save_new(&app, &mut open.connection(), &caller.person, &new, turn).await? {
                (_, Some(_)) => imported.created += 1,
                (_, None) => imported.existing += 1,
            }
        }
        open.commit().await?;
    }
    Ok(answer(StatusCode::OK, &imported))
}

/// Returns what to save, if the link leads to a page.
fn bookmark(link: &Link, caller: &AuthenticatedCaller) -> Option<NewBookmark> {
    let url = canonical(&link.url).ok()?;
    let title = link.title.as_deref().and_then(reading::title).filter(|title| *title != link.url);
    let now = caller.now.as_micros();
    let added = link.add_date.map_or(now, |seconds| seconds.saturating_mul(1_000_000).clamp(0, now));
    let added_at = Timestamp::from_micros(added);
    let (seconds, micros) = (added.unsigned_abs() / 1_000_000, added.unsigned_abs() % 1_000_000);
    let nanos = u32::try_from(micros * 1_000).unwrap_or_default();
    // Bookmarks are listed by their ids, so an id says when its link was added.
    let id = Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos));
    Some(NewBookmark {
        id,
        person: caller.person.id,
        title: None,
        edited_title: title,
        tags: Tags::fitting(link.tags.iter().map(String::as_str)),
        idempotency_key: format!("import-{id}"),
        source_hint: SourceHint::detect(&url),
        created_from: Some(CreatedFrom::Import),
        now: added_at,
        url,
    })
}
