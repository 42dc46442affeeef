//! A person's retry: `POST /v1/bookmarks/{id}/reprocess` (SPEC A12).

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use ichido_core::lifecycle::Event;
use ichido_store::Store;
use ichido_store::message::Note;
use uuid::Uuid;

use super::{answer, one};
use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::bookmark::{self, Bookmark};
use crate::bookmarks;
use crate::database::{DbConnection, layer_transaction};
use crate::jobs::{self, JobPayload};
use crate::people::Person;
use crate::problem::Problem;

/// With a key it runs in the layer's transaction, and the same key gets the same answer; without one in its own.
pub(super) async fn reprocess(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let id = one::parsed(id)?;
    let (parts, _) = request.into_parts();
    let caller = parts.extensions.get::<AuthenticatedCaller>().ok_or_else(Problem::signed_out)?;
    let (bookmark, replaced) = if let Some(transaction) = layer_transaction(&parts) {
        let mut guard = transaction.lock().await?;
        again(&app, &mut guard.connection(), &caller.person, id).await?
    } else {
        let mut open = app.database.begin().await?;
        let again = again(&app, &mut open.connection(), &caller.person, id).await?;
        open.commit().await?;
        again
    };
    let mut response = answer(StatusCode::ACCEPTED, &bookmark);
    if let Some(replaced) = replaced {
        response.extensions_mut().insert(replaced);
    }
    Ok(response)
}

/// A job that waited for its time, and whose place a new one has taken. It is told to whoever sees the answer after the transaction has ended.
#[derive(Clone, Copy)]
pub(super) struct Replaced(Uuid);

impl Replaced {
    /// Takes it back. Where that fails it comes at its time, finds another job in its place, and does nothing.
    pub(super) async fn take_back(self, store: &Store, person: &Person) {
        let note = Note { actor: Some(person.name.clone()), ..Note::default() };
        if let Err(error) = store.messages().step(self.0, |_| Event::Cancelled, &note).await {
            tracing::warn!(
                error = error.in_full(),
                "a job that was replaced was not cancelled; it will do nothing"
            );
        }
    }
}

/// Begins again at the page; where a job is on its way already, that one is it. One that waits for its time need not any longer.
async fn again(
    app: &App,
    connection: &mut DbConnection<'_>,
    person: &Person,
    id: Uuid,
) -> Result<(Bookmark, Option<Replaced>), Problem> {
    let again = bookmarks::count_job(connection, person.id, id).await?.ok_or_else(Problem::no_bookmark)?;
    if again.state != bookmark::State::Processing {
        let task = JobPayload::first(id, &again.url, &again.idempotency_key, &app.settings.retry);
        let task = JobPayload { replaces: Some(again.job).filter(|_| again.is_dead), ..task };
        let message = jobs::read_page(person, &task, again.jobs, &app.settings.retry);
        let job = jobs::enqueue(connection, &app.store, message).await?;
        bookmarks::set_job(connection, id, job).await?;
    }
    let replaced = (again.state == bookmark::State::Retrying).then_some(Replaced(again.job));
    let bookmark = bookmarks::find(connection, person.id, id).await?.ok_or_else(Problem::no_bookmark)?;
    Ok((bookmark, replaced))
}
