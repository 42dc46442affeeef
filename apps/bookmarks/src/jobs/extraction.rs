//! `extraction`: fetches a page and stores its content in the bookmark.

use ichido::prelude::*;
use ichido_store::message::Note;

use super::{JobPayload, LLM_PROCESSING, ReadPage, Summarise, close_letter, enqueue, llm_processing_queue};
use crate::app::App;
use crate::bookmarks;
use crate::fetch::Fetcher;
use crate::job_error::JobFailure;
use crate::reading;

pub(super) async fn run(app: &App, fetcher: &Fetcher, job: Job<ReadPage>) -> Result<(), JobError> {
    let Job { payload: ReadPage(task), message: this, identity, attempt, .. } = job;
    let task = task.counted(attempt);
    if let Some(dead) = task.replaces {
        // Closed here and not in the request for the retry: that is one transaction, and this can be repeated.
        let note = Note { receipt: Some(this.to_string()), ..Note::default() };
        close_letter(&app.store, dead, &note).await?;
    }
    let url = &task.original_request.url;
    let now = app.store.now().await?;
    let response = fetcher.get(url, now).await.map_err(JobFailure::failed)?;
    // A long page would block a thread that others wait for.
    let page = tokio::task::spawn_blocking(move || reading::read(&response)).await?;

    // The page and the next job commit together or not at all (SPEC D4).
    let key = format!("{LLM_PROCESSING}-{this}");
    // Its bytes are the same whatever attempt of this job writes them.
    let next = Summarise(JobPayload { attempt: 1, replaces: None, ..task.clone() });
    let next = Draft::new(&next).identity(identity).key(&key).max_attempts(task.max_attempts);
    let mut open = app.database.begin().await?;
    let mut connection = open.connection();
    if bookmarks::write_page(&mut connection, (task.bookmark_id, this), &page).await? {
        let next = enqueue(&mut connection, app, next).await?;
        bookmarks::set_job(&mut connection, task.bookmark_id, next).await?;
    }
    open.commit().await?;
    app.store.queues().wake(&llm_processing_queue());
    Ok(())
}
