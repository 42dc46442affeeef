//! Shows, edits and deletes one bookmark.

use std::fmt::Display;
use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use ichido::store::message::Note;
use serde::Deserialize;
use uuid::Uuid;

use super::answer;
use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::bookmarks::Edit;
use crate::problem::{Code, Problem};
use crate::tags::Tags;
use crate::{bookmarks, jobs, reading};

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let id = parsed(id)?;
    let mut pooled = app.database.connect().await?;
    let found = bookmarks::find(&mut pooled.connection(), caller.person.id, id).await?;
    Ok(answer(StatusCode::OK, &found.ok_or_else(Problem::no_bookmark)?.to_json()))
}

/// What a person changes; a member that is missing or `null` stays.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditRequest {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// Changes the title and the tags. It needs no key: sent twice, it does the same.
pub(super) async fn edit(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    id: Result<Path<String>, PathRejection>,
    body: Bytes,
) -> Result<Response, Problem> {
    let id = parsed(id)?;
    let invalid = |why: &dyn Display| {
        let form = r#"{"title": "…", "tags": ["…"]}"#;
        Problem::new(Code::BodyInvalid, format!("the body does not match {form}: {why}"))
    };
    let edit: EditRequest = serde_json::from_slice(&body).map_err(|error| invalid(&error))?;
    let tags = edit.tags.map(|tags| Tags::parse(tags.iter().map(String::as_str)));
    let tags = tags.transpose().map_err(|error| invalid(&error))?;
    let edit = Edit { title: edit.title.map(|title| reading::title(&title).unwrap_or_default()), tags };
    let mut open = app.database.begin().await?;
    let mut connection = open.connection();
    if !bookmarks::edit(&mut connection, caller.person.id, id, &edit).await? {
        return Err(Problem::no_bookmark());
    }
    let edited = bookmarks::find(&mut connection, caller.person.id, id).await?;
    let edited = edited.ok_or_else(Problem::no_bookmark)?;
    open.commit().await?;
    Ok(answer(StatusCode::OK, &edited.to_json()))
}

/// Deletes a bookmark, and cancels its job; a running one is asked to stop.
///
/// A job that is missed here finds no bookmark and does nothing.
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let id = parsed(id)?;
    let mut open = app.database.begin().await?;
    let job = bookmarks::delete(&mut open.connection(), caller.person.id, id).await?;
    let job = job.ok_or_else(Problem::no_bookmark)?;
    open.commit().await?;
    let note = Note { actor: Some(caller.person.name), ..Note::default() };
    // Without a name: a request to stop stays in the audit trail when its person is removed.
    let cancelled = app.store.messages().cancel(job, &Note::default()).await.map(drop);
    let closed = jobs::close_letter(&app.store, job, &note).await;
    if let Err(error) = cancelled.and(closed) {
        tracing::warn!(error = error.with_causes(), "job of deleted bookmark was not cancelled");
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Parses an id; an invalid one is an unknown bookmark.
pub(super) fn parsed(id: Result<Path<String>, PathRejection>) -> Result<Uuid, Problem> {
    id.ok().and_then(|Path(id)| Uuid::parse_str(&id).ok()).ok_or_else(Problem::no_bookmark)
}
