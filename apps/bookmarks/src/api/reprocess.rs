//! Retries a bookmark on a person's request: `POST /v1/bookmarks/{id}/reprocess`.
// SPEC A12.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use ichido::store::Store;
use ichido::store::message::Note;
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

/// With a key it runs in the layer's transaction, and the same key gets the same response. Without a key it uses its
/// own transaction.
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
        retry_bookmark(&app, &mut guard.connection(), &caller.person, id).await?
    } else {
        let mut open = app.database.begin().await?;
        let retried = retry_bookmark(&app, &mut open.connection(), &caller.person, id).await?;
        open.commit().await?;
        retried
    };
    let mut response = answer(StatusCode::ACCEPTED, &bookmark.to_json());
    if let Some(replaced) = replaced {
        response.extensions_mut().insert(replaced);
    }
    Ok(response)
}

/// A waiting job that a new one has replaced. It is passed on with the response and handled after the transaction has
/// ended.
#[derive(Clone, Copy)]
pub(super) struct Replaced(Uuid);

impl Replaced {
    /// Cancels the replaced job. If that fails, the job runs when due, finds that it was replaced, and does nothing.
    pub(super) async fn cancel(self, store: &Store) {
        // Without a name: a request to stop stays in the audit trail when its person is removed.
        if let Err(error) = store.messages().cancel(self.0, &Note::default()).await {
            tracing::warn!(error = error.with_causes(), "replaced job was not cancelled");
        }
    }
}

/// Starts again with the page. A job that is already running is reused; one that waits for its retry is replaced.
async fn retry_bookmark(
    app: &App,
    connection: &mut DbConnection<'_>,
    person: &Person,
    id: Uuid,
) -> Result<(Bookmark, Option<Replaced>), Problem> {
    let target = bookmarks::count_job(connection, person.id, id).await?.ok_or_else(Problem::no_bookmark)?;
    if target.state != bookmark::State::Processing {
        let task = JobPayload::first(id, &target.url, &target.idempotency_key, &app.settings.retry);
        let replaces = Some(target.job).filter(|_| target.is_dead);
        let task = JobPayload { replaces, priority: jobs::turn(connection, person).await?, ..task };
        let draft = jobs::read_page(person, &task, target.jobs);
        let job = jobs::enqueue(connection, app, draft).await?;
        bookmarks::set_job(connection, id, job).await?;
    }
    let replaced = (target.state == bookmark::State::Retrying).then_some(Replaced(target.job));
    let bookmark = bookmarks::find(connection, person.id, id).await?.ok_or_else(Problem::no_bookmark)?;
    Ok((bookmark, replaced))
}
