//! `extraction`: fetches a page and stores its content in the bookmark.

use std::sync::Arc;

use ichido::prelude::*;
use ichido::store::message::Note;

use super::{JobPayload, LLM_PROCESSING, ReadPage, Summarise, close_letter, enqueue, llm_processing_queue};
use crate::app::App;
use crate::fetch::Fetcher;
use crate::job_error::{JobErrorCode, JobFailure};
use crate::{bookmarks, icons, reading};

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
    let response = Arc::new(fetcher.get(url, now).await.map_err(JobFailure::failed)?);
    // A long page would block a thread that others wait for.
    let reading = Arc::clone(&response);
    let page = tokio::task::spawn_blocking(move || reading::read(&reading)).await?;
    let icon = match (identity.parse(), &page.icon) {
        (Ok(person), Some(icon)) => {
            icons::of_page(app, fetcher, person, (&response.url, icon.clone()), now).await?
        }
        _ => None,
    };

    // The page and the next job commit together or not at all (SPEC D4).
    let key = format!("{LLM_PROCESSING}-{this}");
    // Its bytes are the same whatever attempt of this job writes them.
    let next = Summarise(JobPayload { attempt: 1, replaces: None, ..task.clone() });
    let next = Draft::new(&next).identity(identity).key(&key).max_attempts(task.max_attempts);
    let next = next.priority(task.priority);
    let mut open = app.database.begin().await?;
    let mut connection = open.connection();
    let is_current = bookmarks::write_page(&mut connection, (task.bookmark_id, this), &page, icon).await?;
    if is_current && page.text.is_some() {
        let next = enqueue(&mut connection, app, next).await?;
        bookmarks::set_job(&mut connection, task.bookmark_id, next).await?;
    }
    open.commit().await?;
    if is_current && page.text.is_none() {
        // Its title is stored. There is nothing to summarise.
        let detail = format!("its media type is {:?}, or it cannot be inflated", response.media);
        return Err(JobFailure::new(JobErrorCode::PageNotText, detail).failed());
    }
    app.store.queues().wake(&llm_processing_queue());
    Ok(())
}
