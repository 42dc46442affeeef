//! A person's retry: `POST /v1/bookmarks/{id}/reprocess` (SPEC A12).

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use uuid::Uuid;

use super::{answer, one};
use crate::access::Asker;
use crate::app::App;
use crate::bookmark::Bookmark;
use crate::bookmarks;
use crate::database::{Connection, lent};
use crate::jobs::{self, Task};
use crate::people::Person;
use crate::problem::Problem;

/// With a key it runs in the layer's transaction, and the same key gets the same answer; without one in its own.
pub(super) async fn reprocess(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let id = one::parsed(&id)?;
    let (parts, _) = request.into_parts();
    let asker = parts.extensions.get::<Asker>().ok_or_else(Problem::signed_out)?;
    let bookmark = if let Some(transaction) = lent(&parts) {
        let mut guard = transaction.lock().await?;
        again(&app, &mut guard.connection(), &asker.person, id).await?
    } else {
        let mut open = app.database.begin().await?;
        let bookmark = again(&app, &mut open.connection(), &asker.person, id).await?;
        open.commit().await?;
        bookmark
    };
    Ok(answer(StatusCode::ACCEPTED, &bookmark))
}

/// Begins again at the page; where a job is open already, that one is it.
async fn again(
    app: &App,
    connection: &mut Connection<'_>,
    person: &Person,
    id: Uuid,
) -> Result<Bookmark, Problem> {
    let again = bookmarks::count_job(connection, person.id, id).await?.ok_or_else(Problem::no_bookmark)?;
    if !again.state.is_open() {
        let task = Task::first(id, &again.url, &again.idempotency_key, &app.settings.retry);
        let task = Task { replaces: again.dead, ..task };
        let message = jobs::read_page(person, &task, again.jobs, &app.settings.retry);
        let job = jobs::put_in(connection, &app.store, message).await?;
        bookmarks::set_job(connection, id, job).await?;
    }
    bookmarks::find(connection, person.id, id).await?.ok_or_else(Problem::no_bookmark)
}
